//! Which of several clocks differ most.

use crate::Clock;

/// Two clocks that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart<'a, T> {
    pub behind: &'a T,
    pub ahead: &'a T,
    /// The difference as read, in milliseconds.
    pub apart_ms: u64,
    /// The difference that is left if both were read with their greatest errors, in milliseconds.
    pub surely_ms: u64,
}

/// The two clocks whose difference is surely the greatest. A clock that was read with a great error hides no others. `None`: there is no clock.
pub fn furthest<T>(read: &[(T, Clock)]) -> Option<Apart<'_, T>> {
    let latest = |(_, clock): &&(T, Clock)| clock.ahead_ms.saturating_add_unsigned(clock.uncertain_ms);
    let earliest = |(_, clock): &&(T, Clock)| clock.ahead_ms.saturating_sub_unsigned(clock.uncertain_ms);
    let (behind, ahead) = (read.iter().min_by_key(latest)?, read.iter().max_by_key(earliest)?);
    let surely_ms = earliest(&ahead).saturating_sub(latest(&behind)).max(0).unsigned_abs();
    let apart_ms = ahead.1.ahead_ms.abs_diff(behind.1.ahead_ms);
    Some(Apart { behind: &behind.0, ahead: &ahead.0, apart_ms, surely_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_read_with_the_time_of_the_call_as_its_error() {
        let read = Clock::read_during(400, 1_060_000, 1_000_000);
        assert_eq!(read, Clock { ahead_ms: 60_200, uncertain_ms: 201 });
    }

    #[test]
    fn a_clock_that_was_hardly_read_hides_no_difference_of_others() {
        let clock = |ahead_ms, uncertain_ms| Clock { ahead_ms, uncertain_ms };
        let read = [("a", clock(0, 10)), ("b", clock(5_000, 10)), ("c", clock(5_100, 4_000))];
        let apart = furthest(&read).unwrap();
        assert_eq!((apart.behind, apart.ahead), (&"a", &"b"));
        assert_eq!((apart.apart_ms, apart.surely_ms), (5_000, 4_980));
        let near = [("a", clock(60_000, 1)), ("b", clock(60_300, 600))];
        assert_eq!(furthest(&near).unwrap().surely_ms, 0);
        assert_eq!(furthest::<()>(&[]), None);
    }
}
