//! Numbers with units, as people read them on pages and in commands.

/// Binary units, two digits: `1.50 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    format!("{:.2} {}", bytes as f64 / 1024f64.powi(power as i32), UNITS[power as usize - 1])
}

/// A minute as `60 s`, an hour as `60 min`.
pub fn duration(ms: u64) -> String {
    match ms / 1_000 {
        0 if ms > 0 => format!("{ms} ms"),
        seconds @ 0..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds @ 36_000..864_000 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(
            [0, 1_023, 1_024, 1_536 << 20, u64::MAX].map(size),
            ["0 B", "1023 B", "1.00 KiB", "1.50 GiB", "16.00 EiB"]
        );
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        let ms = [0, 250, 61_000, 7_200_000, 90_000_000, 864_000_000];
        assert_eq!(ms.map(duration), ["0 s", "250 ms", "61 s", "120 min", "25 h", "10 days"]);
    }
}
