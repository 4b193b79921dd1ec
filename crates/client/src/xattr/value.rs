//! Values of extended attributes as people write them: Hadoop's `XAttrCodec`.

use data_encoding::{BASE64, Encoding as Digits, HEXLOWER, HEXLOWER_PERMISSIVE, Specification};
use std::sync::LazyLock;

/// How a value is written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Between double quotes. Bytes that are not UTF-8 are lost.
    Text,
    /// Hexadecimal digits behind `0x`.
    Hex,
    /// Base64 behind `0s`.
    Base64,
}

impl Encoding {
    /// The encoding with this name, in small letters or capitals.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "text" => Some(Self::Text),
            "hex" => Some(Self::Hex),
            "base64" => Some(Self::Base64),
            _ => None,
        }
    }

    /// The value with its quotes or its prefix.
    pub fn encode(self, value: &[u8]) -> String {
        match self {
            Self::Text => format!("\"{}\"", String::from_utf8_lossy(value)),
            Self::Hex => format!("0x{}", HEXLOWER.encode(value)),
            Self::Base64 => format!("0s{}", BASE64.encode(value)),
        }
    }

    /// The value for JSON, which has quotes of its own. A value that is no text is written as hex.
    pub fn for_programs(self, value: &[u8]) -> String {
        match (self, std::str::from_utf8(value)) {
            (Self::Text, Ok(text)) => text.to_owned(),
            (Self::Text, Err(_)) => Self::Hex.encode(value),
            _ => self.encode(value),
        }
    }
}

/// Reads a value in any of the three encodings; other text stands for itself. Base64 is read as Hadoop reads it: other characters are
/// skipped, and it ends at the padding.
///
/// # Errors
/// The reason, if there is no whole number of hexadecimal bytes behind `0x`.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    if let Some(quoted) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return Ok(quoted.as_bytes().to_vec());
    }
    let digits = text.get(2..).unwrap_or_default();
    match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => from_hex(digits),
        Some("0s") => Ok(from_base64(digits)),
        _ => Ok(text.as_bytes().to_vec()),
    }
}

fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    if !text.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!("{text} are not all hexadecimal digits"));
    }
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| "Odd number of characters.".into())
}

fn from_base64(text: &str) -> Vec<u8> {
    /// Either alphabet, and bits behind the last byte do not matter.
    static LENIENT: LazyLock<Digits> = LazyLock::new(|| {
        let mut rules: Specification = data_encoding::BASE64_NOPAD.specification();
        rules.check_trailing_bits = false;
        rules.translate.from.push_str("-_");
        rules.translate.to.push_str("+/");
        rules.encoding().unwrap_or(data_encoding::BASE64_NOPAD)
    });
    let is_digit = |letter: &u8| letter.is_ascii_alphanumeric() || b"+/-_".contains(letter);
    let mut digits: Vec<u8> = text.bytes().take_while(|letter| *letter != b'=').filter(is_digit).collect();
    if digits.len() % 4 == 1 {
        // Six bits are no byte.
        digits.pop();
    }
    LENIENT.decode(&digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_text_without_quotes() {
        assert_eq!(Encoding::Text.for_programs(b"a \"b\""), "a \"b\"");
        assert_eq!(Encoding::Text.for_programs(b"\xff"), "0xff");
        assert_eq!(Encoding::Base64.for_programs(b"a"), "0sYQ==");
    }

    #[test]
    fn values_are_written_in_three_ways_and_read_back() {
        for (value, hex, base64) in [
            (&b""[..], "0x", "0s"),
            (b"f", "0x66", "0sZg=="),
            (b"fo", "0x666f", "0sZm8="),
            (b"foo", "0x666f6f", "0sZm9v"),
            (b"foobar\xff", "0x666f6f626172ff", "0sZm9vYmFy/w=="),
        ] {
            assert_eq!((&*Encoding::Hex.encode(value), &*Encoding::Base64.encode(value)), (hex, base64));
            assert_eq!((decode(hex).as_deref(), decode(base64).as_deref()), (Ok(value), Ok(value)));
        }
        assert_eq!(Encoding::Text.encode(b"a b"), "\"a b\"");
        assert_eq!(decode("\"a b\"").as_deref(), Ok(&b"a b"[..]));
        assert_eq!(decode("plain").as_deref(), Ok(&b"plain"[..]));
        assert_eq!(decode("0XFf").as_deref(), Ok(&b"\xff"[..]));
        assert_eq!(decode("\u{e9}").as_deref(), Ok("\u{e9}".as_bytes()));
        for text in ["0sZm9v/w==x", "0sZm9v_w", "0s Zm9\nv!/x", "0sZm9v/wA=A"] {
            assert_eq!(decode(text).unwrap()[..4], *b"foo\xff", "{text}");
        }
        assert_eq!((decode("0sZ").as_deref(), decode("0sZm9vY").as_deref()), (Ok(&b""[..]), Ok(&b"foo"[..])));
        assert_eq!(decode("0x123"), Err("Odd number of characters.".into()));
        assert!(decode("0xzz").is_err());
        assert_eq!(Encoding::parse("HEX"), Some(Encoding::Hex));
        assert_eq!(Encoding::parse("base32"), None);
    }
}
