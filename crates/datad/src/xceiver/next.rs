//! The next step on a connection after an operation.

use super::segment::HeldSegment;

pub enum Next {
    /// Another operation may follow.
    Operation,
    End,
    /// No operation any more: the connection lasts as long as its client uses the segment.
    Hold(Box<HeldSegment>),
}
