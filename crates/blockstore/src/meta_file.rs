//! (to come)
/// Version (2 bytes), checksum kind (1), bytes per checksum (4).
pub const HEADER_SIZE: u64 = 7;
