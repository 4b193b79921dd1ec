//! The shared words by which a client that has files of a replica open hears that it is not valid any more.
//!
//! A segment of shared memory has slots of 64 bytes. The client chooses a slot and sets the flag "valid" in its first
//! word; the data server clears it when the replica goes or changes. Both sides are on the same machine, so the words are
//! in its byte order. The layout is Hadoop's (`ShortCircuitShm`):
//!
//! ```text
//! word 0  bit 63      valid
//!         bit 62      anchorable: the server keeps the replica in memory, it may be read without its checksums
//!         bits 0..31  how many readers have anchored it
//! words 1..8          reserved
//! ```

/// Bytes of a segment, as Hadoop's servers make them.
pub const SEGMENT_BYTES: usize = 8192;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 64;

/// Slots of a segment.
pub const SLOTS: usize = SEGMENT_BYTES / SLOT_BYTES;

/// The replica may be read.
pub const VALID: u64 = 1 << 63;

/// The replica may be read without looking at its checksums.
pub const ANCHORABLE: u64 = 1 << 62;

/// The count of anchors.
pub const ANCHORS: u64 = 0x7fff_ffff;

/// The format of the files that are handed out. A client says the highest that it can read (`maxVersion`).
pub const FORMAT_VERSION: u32 = 1;

/// A word with one anchor more; `None` if its replica may not be anchored, or has as many anchors as can be counted.
pub fn anchored(word: u64) -> Option<u64> {
    let may_be = word & VALID != 0 && word & ANCHORABLE != 0 && word & ANCHORS != ANCHORS;
    may_be.then(|| word + 1)
}

/// A word with one anchor less; `None` if it has none.
pub fn released(word: u64) -> Option<u64> {
    (word & ANCHORS != 0).then(|| word - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_as_many_slots_as_hadoops() {
        assert_eq!(SLOTS, 128);
    }

    #[test]
    fn only_valid_replicas_that_are_kept_in_memory_are_anchored() {
        assert_eq!(anchored(0), None);
        assert_eq!(anchored(VALID), None);
        assert_eq!(anchored(ANCHORABLE), None);
        assert_eq!(anchored(VALID | ANCHORABLE), Some(VALID | ANCHORABLE | 1));
        assert_eq!(anchored(VALID | ANCHORABLE | ANCHORS), None);
    }

    #[test]
    fn an_anchor_is_released_also_when_the_replica_is_gone() {
        assert_eq!(released(VALID | 2), Some(VALID | 1));
        assert_eq!(released(1), Some(0));
        assert_eq!(released(VALID | ANCHORABLE), None);
    }
}
