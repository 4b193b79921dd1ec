//! The words of the scanners' keys. Hadoop has several for "never" and "without a limit", and they hold where a key has Hadoop's name.

/// Keys of the scanners, of which some values stand for others in Hadoop.
pub const SCANS: &[&str] = &[
    "block_scan_period_ms",
    "block_scan_bytes_per_second",
    "directory_scan_interval_ms",
    "directory_scan_ms_per_second",
];

/// Hadoop's word for our 0, which is never.
pub const NEVER_IN_HADOOP: &str = "-1";

/// Whether a value stands for what Hadoop means by it: the key is a scanner's, and `written` is not our name of it.
pub fn has_other_words(name: &str, written: &str) -> bool {
    name != written && SCANS.contains(&name)
}

/// The value of a scanner's key in our words, and what was changed.
pub fn in_our_words(name: &str, value: &str) -> (String, Option<String>) {
    let number = value.trim().parse::<i64>();
    let (value, note) = match (name, number) {
        ("block_scan_period_ms", Ok(0)) => ("504h", "0 is Hadoop's default of 504 hours there"),
        ("directory_scan_ms_per_second", Ok(number)) if !(1..=1_000).contains(&number) => {
            ("1000", "it is no limit there")
        }
        (_, Ok(..0)) => ("0", "a negative number is never"),
        _ => return (value.to_owned(), None),
    };
    (value.to_owned(), Some(note.to_owned()))
}
