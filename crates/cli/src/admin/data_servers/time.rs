//! Ends of maintenances, as operators write them.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// `90s`, `30m`, `2h`, `7d` in milliseconds.
pub fn duration(text: &str) -> Result<u64, String> {
    let units = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let wrong = || format!("{text} is no duration such as 90s, 30m, 2h or 7d");
    let (digits, ms) =
        units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, *ms))).ok_or_else(wrong)?;
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    count.checked_mul(ms).filter(|ms| *ms > 0).ok_or_else(wrong)
}

/// A time in milliseconds since 1970. Without a zone, that of this machine.
pub fn moment(text: &str) -> Result<u64, String> {
    let there = text.parse::<Timestamp>().or_else(|_| {
        let here: DateTime = text.parse()?;
        here.to_zoned(TimeZone::system()).map(|zoned| zoned.timestamp())
    });
    let there = there.map_err(|error| format!("{text} is no time such as 2026-12-24T18:00: {error}"))?;
    u64::try_from(there.as_millisecond()).map_err(|_| format!("{text} is before 1970"))
}

/// The time by this machine's zone.
pub fn shown(ms: u64) -> String {
    match Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX)) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        assert_eq!(duration("90s"), Ok(90_000));
        assert_eq!(duration("7d"), Ok(7 * 86_400_000));
        for wrong in ["", "h", "90", "-1h", "0m", "1.5h", "2w", "18446744073709551615d", "1 h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_a_zone_or_are_those_of_this_machine() {
        assert_eq!(moment("1970-01-01T00:01:00Z"), Ok(60_000));
        let here = moment("2026-12-24T18:00").unwrap();
        assert_eq!(shown(here), "2026-12-24 18:00:00");
        for wrong in ["tomorrow", "18:00", "1969-01-01T00:00:00Z", "2026-13-01T00:00"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
