//! Numbers and names in sentences.

/// How many names a sentence has; the rest is counted.
const NAMES_MAX: usize = 5;

/// `a, b and c`, or `a, b, c, d, e and 7 others`.
pub fn list(names: &[String]) -> String {
    let (shown, rest) = match names.len() > NAMES_MAX + 1 {
        true => names.split_at(NAMES_MAX),
        false => names.split_at(names.len()),
    };
    let mut shown = shown.to_vec();
    if !rest.is_empty() {
        shown.push(format!("{} others", rest.len()));
    }
    match shown.pop() {
        None => String::new(),
        Some(last) if shown.is_empty() => last,
        Some(last) => format!("{} and {last}", shown.join(", ")),
    }
}

/// `1 block is`, `3 blocks are`: a number with its noun and the verb behind it, each in one of two forms.
pub fn count(number: u64, (one, verb): (&str, &str), (several, verbs): (&str, &str)) -> String {
    match number {
        1 => format!("1 {one} {verb}"),
        _ => format!("{number} {several} {verbs}"),
    }
}

/// `40 s`, `12 min`, `3 h`.
pub fn duration(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

/// Binary units with a digit: `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    format!("{:.1} {}", bytes as f64 / 1_024f64.powi(power as i32), UNITS[power as usize - 1])
}

/// A share of a whole in percent, with a digit: `7.5 %`.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_end_with_a_number() {
        let names = |count: usize| (1..=count).map(|number| format!("m{number}")).collect::<Vec<_>>();
        assert_eq!(list(&names(0)), "");
        assert_eq!(list(&names(1)), "m1");
        assert_eq!(list(&names(3)), "m1, m2 and m3");
        assert_eq!(list(&names(6)), "m1, m2, m3, m4, m5 and m6");
        assert_eq!(list(&names(7)), "m1, m2, m3, m4, m5 and 2 others");
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(count(1, ("block", "is"), ("blocks", "are")), "1 block is");
        assert_eq!(count(2, ("block", "is"), ("blocks", "are")), "2 blocks are");
        assert_eq!((duration(40_900), duration(900_000)), ("40 s".into(), "15 min".into()));
        assert_eq!(duration(36_000_000), "10 h");
        assert_eq!((size(1_023), size(1_536)), ("1023 B".into(), "1.5 KiB".into()));
        assert_eq!(size(u64::MAX), "16.0 EiB");
        assert_eq!((percent(3, 40), percent(1, 0)), ("7.5 %".into(), "100.0 %".into()));
    }
}
