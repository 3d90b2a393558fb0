//! How many calls a caller may make in a time.

use base::envelope::{Failure, duration};
use base::principal::Principal;
use config::Remedies;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;

/// Callers that are remembered; beyond these, those who have been quiet long enough are forgotten.
const CALLERS: usize = 1000;

/// The calls of each caller: so many at once as in a minute, then as many as the time gives back.
pub(crate) struct Rates {
    per_minute: u64,
    remedies: Remedies,
    limiter: DefaultKeyedRateLimiter<Principal>,
    clock: DefaultClock,
}

impl Rates {
    pub(crate) fn new(per_minute: u64, remedies: Remedies) -> Self {
        let quota = u32::try_from(per_minute).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
        Self {
            per_minute,
            remedies,
            limiter: RateLimiter::keyed(Quota::per_minute(quota)),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a call.
    ///
    /// # Errors
    ///
    /// When there were too many; it is not counted then.
    pub(crate) fn check(&self, caller: &Principal) -> Result<(), Failure> {
        if self.limiter.len() > CALLERS {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(caller).map_err(|until| {
            let wait = duration(until.wait_time_from(self.clock.now()).max(Duration::from_millis(1)));
            let instead = format!("try again in {wait}");
            let hint = self.remedies.raise("limits.calls_per_minute", self.per_minute, &instead);
            Failure::limit(format!("limit: {} calls a minute", self.per_minute)).hint(hint)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::envelope::Kind;

    #[test]
    fn each_caller_has_a_minute_of_calls_at_once_and_no_more() {
        let rates = Rates::new(3, Remedies::default());
        for caller in ["a", "b"] {
            for _ in 0..3 {
                assert!(rates.check(&caller.into()).is_ok());
            }
            let refusal = rates.check(&caller.into()).unwrap_err();
            assert_eq!((refusal.kind, refusal.message.as_str()), (Kind::Limit, "limit: 3 calls a minute"));
            assert!(refusal.hint.unwrap().contains("`calls_per_minute` under [limits]"));
        }
    }

    #[test]
    fn callers_that_come_and_go_are_forgotten() {
        let rates = Rates::new(1_000_000_000, Remedies::default());
        for caller in 0..10_000 {
            rates.check(&caller.to_string().into()).unwrap();
        }
        assert!(rates.limiter.len() < 5000, "{}", rates.limiter.len());
    }
}
