//! Reading durable entries back from the segments, beside the running service.

use crate::{Journal, ReadLogError};
use base::{Entry, LogPoint, Sn};

impl Journal {
    /// The durable entries after `after`, none above `up_to`, of about `bytes_max` bytes of payload (at least
    /// one entry, if there is one), and the point of `after` itself. Blocks for the disk.
    pub fn read(
        &self,
        after: Sn,
        _up_to: Sn,
        _bytes_max: usize,
    ) -> Result<(LogPoint, Vec<Entry>), ReadLogError> {
        Err(ReadLogError::Failed { after, reason: "not built yet".into() })
    }
}
