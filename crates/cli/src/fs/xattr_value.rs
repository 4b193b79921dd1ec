//! Values of extended attributes as people write them: Hadoop's `XAttrCodec`.

use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Text,
    Hex,
    Base64,
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Encoding {
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "text" => Some(Self::Text),
            "hex" => Some(Self::Hex),
            "base64" => Some(Self::Base64),
            _ => None,
        }
    }

    pub fn encode(self, value: &[u8]) -> String {
        match self {
            Self::Text => format!("\"{}\"", String::from_utf8_lossy(value)),
            Self::Hex => value.iter().fold("0x".into(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            }),
            Self::Base64 => base64(value),
        }
    }
}

impl Encoding {
    /// The value for JSON, which has quotes of its own. A value that is no text is written as hex.
    pub fn for_programs(self, value: &[u8]) -> String {
        match (self, std::str::from_utf8(value)) {
            (Self::Text, Ok(text)) => text.to_owned(),
            (Self::Text, Err(_)) => Self::Hex.encode(value),
            _ => self.encode(value),
        }
    }
}

fn base64(value: &[u8]) -> String {
    let mut text = String::from("0s");
    for three in value.chunks(3) {
        let bits =
            three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Reads a value in whichever way it is written; why not, if it cannot be.
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
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.ok_or_else(|| format!("{text} are not all hexadecimal digits"))?;
    if digits.len() % 2 != 0 {
        return Err("Odd number of characters.".into());
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// Decodes as Hadoop does: other characters are skipped, and it ends at the padding.
fn from_base64(text: &str) -> Vec<u8> {
    let (mut value, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for letter in text.bytes().take_while(|letter| *letter != b'=') {
        let letter = match letter {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        let Some(digit) = ALPHABET.iter().position(|known| *known == letter) else { continue };
        (bits, count) = (bits << 6 | digit as u32, count + 6);
        if count >= 8 {
            count -= 8;
            value.push((bits >> count) as u8);
        }
    }
    value
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
        assert_eq!(decode("0x123"), Err("Odd number of characters.".into()));
        assert!(decode("0xzz").is_err());
        assert_eq!(Encoding::parse("HEX"), Some(Encoding::Hex));
        assert_eq!(Encoding::parse("base32"), None);
    }
}
