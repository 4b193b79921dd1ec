//! Hashes. The hashes of a digest are equal on every member and for ever; the hashes of tables carry a seed.

use rapidhash::v3::{RapidSecrets, rapidhash_v3, rapidhash_v3_seeded};

const ADD: u64 = 0x9e37_79b9_7f4a_7c15;
const MULTIPLY: u64 = 0xd6e8_feb8_6659_fd93;

fn mix(value: u64) -> u64 {
    let product = u128::from(value.wrapping_add(ADD)) * u128::from(MULTIPLY);
    product as u64 ^ (product >> 64) as u64
}

/// The hash for tables whose keys are numbers that we chose ourselves.
pub(crate) fn hash_number(seed: u64, number: u64) -> u64 {
    mix(mix(number ^ seed))
}

/// The hash for tables whose keys strangers choose.
pub(crate) struct SeededHash(RapidSecrets);

impl SeededHash {
    pub fn new(seed: u64) -> Self {
        Self(RapidSecrets::seed(seed))
    }

    pub fn bytes(&self, bytes: &[u8]) -> u64 {
        rapidhash_v3_seeded(bytes, &self.0)
    }
}

/// Digests a record field by field. Its constants are part of the formats: members compare what comes out.
pub(crate) struct Digester(u64);

impl Digester {
    /// `kind` keeps records of different kinds apart.
    pub fn new(kind: u8) -> Self {
        Self(mix(u64::from(kind)))
    }

    pub fn number(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(23) ^ number);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(rapidhash_v3(bytes));
    }

    pub fn finish(&self) -> u64 {
        mix(self.0)
    }
}

/// A digest of a request, to tell a repeated call from a call id used twice. Stable across versions, since
/// it is journaled.
pub fn fingerprint(method: &str, request: &[u8]) -> u64 {
    let mut digester = Digester::new(b'f');
    digester.bytes(method.as_bytes());
    digester.bytes(request);
    digester.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_never_changes_from_version_to_version() {
        assert_eq!(fingerprint("mkdirs", b"\x0a\x02/a"), 5_590_961_706_779_904_055);
    }
}
