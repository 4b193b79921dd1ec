//! Base64 with the usual alphabet and padding, for the values of extended attributes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for piece in bytes.chunks(3) {
        let byte = |at: usize| u32::from(piece.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= piece.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// `None` for text that is no base64. Padding may be left out.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let unpadded = match text {
        [rest @ .., b'=', b'='] | [rest @ .., b'='] => rest,
        all => all,
    };
    if unpadded.len() != text.len() && !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(unpadded.len() * 3 / 4);
    for piece in unpadded.chunks(4) {
        if piece.len() == 1 {
            return None;
        }
        let mut bits = 0_u32;
        for at in 0..4 {
            let digit = match piece.get(at) {
                Some(digit) => ALPHABET.iter().position(|known| known == digit)? as u32,
                None => 0,
            };
            bits = bits << 6 | digit;
        }
        bytes.extend(&bits.to_be_bytes()[1..piece.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_4648() {
        let examples = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ];
        for (plain, text) in examples {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(plain.as_bytes()));
            assert_eq!(decode(text.trim_end_matches('=').as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(encode(&all).as_bytes()), Some(all));
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["Z", "Zg=", "Zg==Zg==", "Z!==", "====", "Zm9vY"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
