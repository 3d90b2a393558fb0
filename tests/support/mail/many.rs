//! A mailbox of very many messages, in one file. It is made once for all tests of a build.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// A word of two messages: the newest but one of the newest 2,000, and the oldest.
pub const RARE: &str = "quillwort";
/// Seconds between messages.
pub const AGE_STEP: u64 = 20;
const WORDS: [&str; 8] = ["invoice", "meeting", "tomato", "harvest", "quarterly", "report", "travel", "offer"];
/// The newest message is a minute old when the file is made; it is made anew when that was a day ago.
const KEPT_SECONDS: u64 = 86_400;

/// The file of a mailbox of so many messages, each 50th of them unread: they are 20 s apart, the newest is the last.
#[must_use]
pub fn many(count: u64) -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().expect("no test panics while it makes a mailbox");
    let test = std::env::current_exe().expect("a running test has a file");
    let target = test.ancestors().nth(3).expect("tests lie in target/PROFILE/deps");
    let path = target.join(format!("mailbox-{count}"));
    let made = path.metadata().and_then(|about| about.modified()).ok();
    if made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age.as_secs() < KEPT_SECONDS) {
        return path;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs() - 60;
    let mut text = String::with_capacity(count as usize * 1100);
    for number in 0..count {
        let (week, date) = date(now - (count - 1 - number) * AGE_STEP);
        let (subject, word) = (WORDS[number as usize % 8], WORDS[number as usize / 8 % 8]);
        let rare = if number == 0 || number == count.saturating_sub(2) { RARE } else { "commonplace" };
        let read = if number % 50 == 49 { "O" } else { "RO" };
        let _ = write!(
            text,
            "From s@example.test {week} {date}\nFrom: Sender {} <s{}@example.test>\nTo: ann@example.com\nSubject: {subject} number {number}\n\
             Message-ID: <{number}@example.test>\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nStatus: {read}\n\n{rare}\n",
            number % 97,
            number % 97
        );
        (0..12).for_each(|_| text += &format!("Body line about {word} and more text of no use.\n"));
        text += "\n";
    }
    let part = path.with_extension(std::process::id().to_string());
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &path)).expect("a mailbox");
    path
}

/// Day of the week, and the date as files of mailboxes have it.
fn date(seconds: u64) -> (&'static str, String) {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    let time = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    (DAYS[(days % 7) as usize], format!("{} {:2} {time} {year}", MONTHS[month], left + 1))
}
