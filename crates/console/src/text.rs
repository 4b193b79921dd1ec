//! Numbers and times as people read them.

use jiff::Timestamp;
pub use web::amounts::{duration, size};

/// The sign for a fact that is not known.
pub const UNKNOWN: &str = "–";

/// A number with thin spaces between thousands.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A duration of a call: `85 µs`, `1.25 ms`.
pub fn latency(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// A time in milliseconds since 1970 as `2026-11-28 18:00:00`, in UTC. 0 is not known.
pub fn time(ms: u64) -> String {
    let known =
        i64::try_from(ms).ok().filter(|ms| *ms > 0).and_then(|ms| Timestamp::from_millisecond(ms).ok());
    known.map_or_else(|| UNKNOWN.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// The time of a day as `18:00`, in UTC.
pub fn clock(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| time.strftime("%H:%M").to_string())
}

/// The share of `part` in `whole`, in percent; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// A sentence with its first letter as a capital.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `1 block`, `2 blocks`.
pub fn of(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

pub fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default()
}

/// `rwxr-xr-x`, with `t` for the sticky bit.
pub fn rights(mode: u16) -> String {
    let mut text: String = (0..3)
        .rev()
        .flat_map(|class| {
            let bits = mode >> (3 * class);
            [(4, 'r'), (2, 'w'), (1, 'x')].map(|(bit, letter)| if bits & bit != 0 { letter } else { '-' })
        })
        .collect();
    if mode & client::status::STICKY != 0 {
        let last = if text.pop() == Some('x') { 't' } else { 'T' };
        text.push(last);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.50 KiB");
        assert_eq!(size(u64::MAX), "16.00 EiB");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(duration(250), "250 ms");
        assert_eq!(duration(61_000), "61 s");
        assert_eq!(duration(7_200_000), "120 min");
        assert_eq!(latency(85_000), "85 µs");
        assert_eq!(latency(1_250_000), "1.25 ms");
        assert_eq!(of(1, "block", "blocks"), "1 block");
        assert_eq!((sentence("no more."), sentence("")), ("No more.".to_owned(), String::new()));
    }

    #[test]
    fn times_that_are_out_of_range_are_unknown() {
        assert_eq!(time(1_000), "1970-01-01 00:00:01");
        for odd in [0, u64::MAX, i64::MAX as u64] {
            assert_eq!(time(odd), UNKNOWN, "{odd}");
        }
    }

    #[test]
    fn rights_are_letters() {
        assert_eq!(rights(0o755), "rwxr-xr-x");
        assert_eq!(rights(0o1777), "rwxrwxrwt");
        assert_eq!(rights(0o1640), "rw-r----T");
    }
}
