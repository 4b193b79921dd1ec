//! Values as Java writes them.

use jiff::Timestamp;
use std::net::IpAddr;

/// A number as `Float.toString` writes it.
pub fn float(value: f32) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

/// A share in percent, as fsck has it: in single precision.
pub fn percent(part: u64, whole: u64) -> String {
    float((part * 100) as f32 / whole as f32)
}

/// A share as `NumberFormat` writes it with four digits behind the point.
pub fn percent_of_four(part: u64, whole: u64) -> String {
    format!("{:.4}%", part as f64 / whole as f64 * 100.0)
}

/// A time in UTC as `Date.toString` writes it; `seconds` since 1970.
pub fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.unwrap_or_default().strftime("%a %b %d %H:%M:%S UTC %Y").to_string()
}

/// An address as `InetAddress.toString` writes one that has no name.
pub fn address(ip: IpAddr) -> String {
    match ip.to_canonical() {
        IpAddr::V4(ip) => format!("/{ip}"),
        IpAddr::V6(ip) => {
            let parts: Vec<String> = ip.segments().iter().map(|part| format!("{part:x}")).collect();
            format!("/{}", parts.join(":"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_javas() {
        let written: Vec<String> =
            [0.0, 100.0, 33.333_332, 9.765_625e-4, 1e-5, 1.0e7, 2.5].into_iter().map(float).collect();
        assert_eq!(written, ["0.0", "100.0", "33.333332", "9.765625E-4", "1.0E-5", "1.0E7", "2.5"]);
        assert_eq!((percent(1, 3), percent(2, 2)), ("33.333332".to_owned(), "100.0".to_owned()));
        assert_eq!(percent_of_four(2, 3), "66.6667%");
    }

    #[test]
    fn dates_are_javas() {
        assert_eq!(date(0), "Thu Jan 01 00:00:00 UTC 1970");
        assert_eq!(date(951_782_400), "Tue Feb 29 00:00:00 UTC 2000");
        assert_eq!(date(1_795_887_865), "Sat Nov 28 17:44:25 UTC 2026");
        assert_eq!(date(4_107_542_399), "Sun Feb 28 23:59:59 UTC 2100");
    }

    #[test]
    fn addresses_are_javas() {
        assert_eq!(address("127.0.0.1".parse().unwrap()), "/127.0.0.1");
        assert_eq!(address("::ffff:10.0.0.1".parse().unwrap()), "/10.0.0.1");
        assert_eq!(address("fe80::1".parse().unwrap()), "/fe80:0:0:0:0:0:0:1");
    }
}
