//! The exchange between members: each hands the others images and entries of the log from its own disk, in pieces.
//!
//! - [`serve`]: the answering end, on the RPC port. Only members may ask: each request carries a proof that its
//!   sender knows the cluster's secret. A member whose store is damaged answers as well, from the parts of it that
//!   can be read.
//! - [`source`]: another member, as one that may have an image or entries.
//! - [`fetch`]: an image from the members that have it, piece by piece; a source that fails is replaced by the next,
//!   which goes on at the same place.

pub mod fetch;
pub mod reads;
pub mod serve;
pub mod source;

/// The entries of one answer, and the largest answer: one entry may be as large as the journal takes it.
pub const LOG_BYTES: usize = 4 << 20;
const LOG_ANSWER_BYTES_MAX: usize = LOG_BYTES + (17 << 20);

/// The bytes of one answer: large enough to stream, small enough to be in memory a few times.
pub const PIECE_BYTES: u32 = 1 << 20;
/// The most that is answered at once.
const PIECE_BYTES_MAX: u32 = 4 << 20;

/// The purposes of the proofs.
mod purpose {
    pub const LIST: &[u8] = b"pool listImages";
    pub const READ: &[u8] = b"pool readImage";
    pub const READ_LOG: &[u8] = b"pool readLog";
    pub const STANDING: &[u8] = b"pool askStanding";
    pub const ARCHIVE: &[u8] = b"pool askArchive";
}
