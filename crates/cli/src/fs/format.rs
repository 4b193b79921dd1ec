//! Modes, dates, sizes and tables as Hadoop's shell prints them.

use client::FileStatus;
use jiff::{Timestamp, tz::TimeZone};

/// `rwxr-xr-x`, with `t` or `T` for the sticky bit.
pub fn mode(mode: u16) -> String {
    let letters = ['r', 'w', 'x'];
    let mut text: String =
        (0..9).map(|bit| if mode & (0o400 >> bit) != 0 { letters[bit % 3] } else { '-' }).collect();
    if mode & client::status::STICKY != 0 {
        let last = text.pop();
        text.push(if last == Some('x') { 't' } else { 'T' });
    }
    text
}

/// `d` for a directory, `-` for anything else, and the mode.
pub fn kind_and_mode(status: &FileStatus) -> String {
    let kind = if status.is_dir() { 'd' } else { '-' };
    format!("{kind}{}", mode(status.mode))
}

/// `2026-11-21 07:30` in the time zone of this machine.
pub fn minute(ms: u64) -> String {
    date(ms, "%Y-%m-%d %H:%M")
}

/// `2026-11-21 07:30:59` in the time zone of this machine.
pub fn second(ms: u64) -> String {
    date(ms, "%Y-%m-%d %H:%M:%S")
}

fn date(ms: u64, format: &str) -> String {
    let timestamp = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    match timestamp {
        Some(timestamp) => timestamp.to_zoned(TimeZone::system()).strftime(format).to_string(),
        None => ms.to_string(),
    }
}

/// The number itself, or `1.5 K` where people read it. Like Hadoop's, rounded half up.
pub fn size(bytes: u64, is_human: bool) -> String {
    if !is_human || bytes < 1024 {
        return bytes.to_string();
    }
    let letters = ["K", "M", "G", "T", "P", "E"];
    let mut power = ((63 - bytes.leading_zeros()) / 10) as usize;
    let unit = |power: usize| 1u64 << (10 * power);
    if bytes.is_multiple_of(unit(power)) {
        return format!("{} {}", bytes / unit(power), letters[power - 1]);
    }
    let decimal = |power: usize| {
        let tenths = (u128::from(bytes) * 10 + u128::from(unit(power) / 2)) / u128::from(unit(power));
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    let mut text = decimal(power);
    if text.starts_with("1024") && power < letters.len() {
        power += 1;
        text = decimal(power);
    }
    format!("{text} {}", letters[power - 1])
}

/// Rows in columns as wide as their widest entry, two spaces apart.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Columns whose entries stand on the right.
    right: Vec<usize>,
}

impl Table {
    pub fn with_right(columns: &[usize]) -> Self {
        Self { rows: Vec::new(), right: columns.to_vec() }
    }

    pub fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let cell = |(column, text): (usize, &String)| match self.right.contains(&column) {
            true => format!("{text:>width$}", width = widths[column]),
            false if column + 1 == columns => text.clone(),
            false => format!("{text:<width$}", width = widths[column]),
        };
        self.rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_written_as_letters() {
        assert_eq!(mode(0o755), "rwxr-xr-x");
        assert_eq!(mode(0o1777), "rwxrwxrwt");
        assert_eq!(mode(0o1770), "rwxrwx--T");
        assert_eq!(mode(0), "---------");
    }

    #[test]
    fn sizes_are_written_as_hadoop_does() {
        for (bytes, expected) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1 K"),
            (1536, "1.5 K"),
            (1280, "1.3 K"),
            (1 << 20, "1 M"),
            ((1 << 20) - 1, "1.0 M"),
            (128 << 20, "128 M"),
            (u64::MAX / 2, "8.0 E"),
        ] {
            assert_eq!(size(bytes, true), expected, "{bytes}");
        }
        assert_eq!(size(1 << 20, false), "1048576");
    }

    #[test]
    fn tables_line_up() {
        let mut table = Table::with_right(&[1]);
        table.add(["a".into(), "1".into(), "x".into()]);
        table.add(["bbb".into(), "22".into(), "yy".into()]);
        assert_eq!(table.lines(), ["a     1  x", "bbb  22  yy"]);
    }
}
