//! Login links: texts that prove that a user may come in, and name the user.
//!
//! A link is made by a holder of the cluster's secret for one member, and lasts some minutes. This module knows its shape; the proof is
//! made and checked by functions that are passed in.

use data_encoding::HEXLOWER;

/// The purpose for which links are signed, so that no proof of another kind is taken for one.
pub const PURPOSE: &[u8] = b"clover console login 1";
/// How long a link can be used, in milliseconds.
pub const LASTS_MS: u64 = 10 * 60_000;
/// A longer text is no link: names of users have 256 bytes at most.
const TEXT_BYTES_MAX: usize = 1_024;
const USER_BYTES_MAX: usize = 256;

/// A link, before its proof is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The member of the group that takes it.
    pub member: u32,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// Makes it differ from all others.
    pub nonce: String,
    pub user: String,
}

impl Link {
    /// The bytes that the proof is about.
    pub fn signed(&self) -> String {
        format!("{}.{}.{}.{}", self.member, self.made_ms, self.nonce, self.user)
    }

    /// The text in the address, with the proof.
    pub fn text(&self, proof: &[u8]) -> String {
        format!("{}.{}", HEXLOWER.encode(proof), self.signed())
    }

    /// The link in a text, and the proof that is to be checked. `None`: it is no link.
    pub fn parse(text: &str) -> Option<(Self, Vec<u8>)> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut parts = text.splitn(5, '.');
        let proof = HEXLOWER.decode(parts.next()?.as_bytes()).ok()?;
        let (member, made_ms) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let nonce = parts.next().filter(|nonce| (16..=64).contains(&nonce.len()))?;
        let user = parts.next().filter(|user| is_user(user))?;
        let is_plain = nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let link = Self { member, made_ms, nonce: nonce.to_owned(), user: user.to_owned() };
        // A number can be written in several ways, and one is signed.
        (is_plain && text.ends_with(&format!(".{}", link.signed()))).then_some((link, proof))
    }
}

/// Whether a text can be a user's name.
pub fn is_user(name: &str) -> bool {
    let is_shown = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
    !name.is_empty() && name.len() <= USER_BYTES_MAX && name.chars().all(is_shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        Link {
            member: 2,
            made_ms: 1_700_000_000_000,
            nonce: "0123456789abcdef".into(),
            user: "ann.of.it".into(),
        }
    }

    #[test]
    fn a_link_comes_back_from_its_text() {
        let text = link().text(&[0, 0xab, 0xff]);
        assert_eq!(Link::parse(&text), Some((link(), vec![0, 0xab, 0xff])));
    }

    #[test]
    fn other_texts_are_no_links() {
        let text = link().text(&[7; 32]);
        let odd = [
            String::new(),
            text.replace("ann", "a/b"),
            text.replace("ann", "a\nb"),
            text.replace(".2.", ".02."),
            text.replace(".2.", ".-2."),
            text.replace("0123456789abcdef", "short"),
            text.replacen("07", "+7", 1),
            text.replacen("07", "ä", 1),
            format!("{text}{}", "x".repeat(2_000)),
            text[..40].to_owned(),
        ];
        for text in odd {
            assert_eq!(Link::parse(&text), None, "{text}");
        }
    }
}
