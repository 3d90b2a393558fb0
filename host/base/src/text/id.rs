//! Names that nobody can guess.

use std::cell::RefCell;

/// Random bytes that are fetched at a time: each fetch is a system call.
const FETCHED: usize = 512;

thread_local! {
    /// Those that are not used yet.
    static POOL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns 128 random bits in hex.
pub fn random_id() -> String {
    POOL.with_borrow_mut(|pool| {
        if pool.is_empty() {
            // Only what was fetched gets there: without it, each call fails anew.
            let mut fetched = [0; FETCHED];
            getrandom::fill(&mut fetched).expect("the system has random numbers");
            pool.extend_from_slice(&fetched);
        }
        // None is used twice.
        let id = hex::encode(&pool[pool.len() - 16..]);
        pool.truncate(pool.len() - 16);
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn none_comes_twice_on_any_thread() {
        let of_a_thread = || (0..10 * FETCHED / 16).map(|_| random_id()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(of_a_thread)).collect();
        let ids: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().expect("ids")).collect();
        assert!(ids.iter().all(|id| id.len() == 32));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
