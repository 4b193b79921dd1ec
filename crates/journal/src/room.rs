//! How much the disk can still take.

use crate::Journal;
use std::io;

/// The room that is left on the disk of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub free_bytes: u64,
    /// Fewer than two segments and the reserve are free. An active hands over, a standby asks to be removed
    /// from the in-sync set; entries are still taken as long as they fit.
    pub is_low: bool,
    /// No further segment of the usual size is ready, or can be made: nothing more should be taken than what must be.
    pub is_out: bool,
}

impl Journal {
    /// Looks at the disk. Cheap enough for once a second.
    ///
    /// # Errors
    /// The directory's file system does not say how much is free.
    pub fn room(&self) -> io::Result<Room> {
        self.shared().room()
    }
}

impl crate::flow::Shared {
    fn room(&self) -> io::Result<Room> {
        let disk = &*self.env.disk;
        let free_bytes = disk.space(&self.log_directory())?.free_bytes;
        let spare = disk.length(&self.log_directory().join(crate::segment::SPARE)).unwrap_or(0);
        let (reserve, segment) = (self.settings.reserve_bytes, self.settings.segment_bytes);
        let is_low = free_bytes + spare < reserve + 2 * segment;
        // With a spare the open segment may fill up. The reserve is for what comes from elsewhere: epochs, other members' entries.
        let is_out = spare < segment && free_bytes < reserve + segment || free_bytes < reserve / 2;
        Ok(Room { free_bytes, is_low, is_out })
    }
}
