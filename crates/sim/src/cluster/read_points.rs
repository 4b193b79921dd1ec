//! Reads at members that do not lead, and the points by which they are answered.

use super::{client::CallCopy, request::Request};
use base::ReadPoint;

/// A read that waits for a point, or for the entries up to it.
#[derive(Clone, Debug)]
pub struct StandbyRead {
    pub copy: CallCopy,
    pub request: Request,
    pub since_ns: u64,
}

/// What an active tells about its log.
#[derive(Clone, Copy, Debug)]
pub struct ToldPoint {
    pub point: ReadPoint,
    /// It rests on a lease in which a clock has stood.
    pub is_doubtful: bool,
}
