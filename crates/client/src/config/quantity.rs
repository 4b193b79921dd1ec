//! Sizes and times as Hadoop's configuration writes them.

use std::time::Duration;

/// Bytes: `134217728`, `128m`, `1g`, `64 KB`; the letters stand for powers of 1,024.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().ok()?;
    let unit = text[split..].trim().to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        "e" => 60,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// A time: a plain number in the unit that the key is known to have, or `90s`, `2m`, `1h`, `1d`, `500ms`.
pub fn time(text: &str, plain_unit: Duration) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u32 = text[..split].parse().ok()?;
    let unit = match text[split..].trim() {
        "" => plain_unit,
        "ns" => Duration::from_nanos(1),
        "us" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        "d" => Duration::from_secs(86_400),
        _ => return None,
    };
    unit.checked_mul(number)
}
