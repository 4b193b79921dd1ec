//! The memory that readers share for packets on their way out.
//!
//! Thousands of readers that take nothing would hold gigabytes if each filled as much ahead as a lone reader does. So
//! readers take room from one account before they fill more than a packet at a time. A reader for which there is no
//! room goes on with what it has: it is served in smaller pieces, and never refused.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Data bytes that readers have filled beyond one packet each.
const BYTES_ALL: usize = 256 << 20;

/// A reader has one buffer on its way out and one being filled.
const BUFFERS: usize = 2;

/// The account of a data server.
#[derive(Default)]
pub struct FillRoom {
    taken: AtomicUsize,
}

/// One reader's part.
pub struct Fills<'a> {
    room: &'a FillRoom,
    fill_bytes: usize,
    least: usize,
}

impl FillRoom {
    /// A reader that fills `least` bytes in one turn in any case.
    pub fn begin(&self, least: usize) -> Fills<'_> {
        Fills { room: self, fill_bytes: least, least }
    }
}

impl Fills<'_> {
    /// The bytes to fill in one turn from now on: `wanted` if there is room for that, and as many as before otherwise.
    pub fn grow(&mut self, wanted: usize) -> usize {
        if wanted <= self.fill_bytes {
            return self.fill_bytes;
        }
        let more = BUFFERS * (wanted - self.fill_bytes);
        let taken = self.room.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            Some(taken + more).filter(|taken| *taken <= BYTES_ALL)
        });
        if taken.is_ok() {
            self.fill_bytes = wanted;
        }
        self.fill_bytes
    }
}

impl Drop for Fills<'_> {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(BUFFERS * (self.fill_bytes - self.least), Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 64 << 10;
    const MOST: usize = 1 << 20;

    #[test]
    fn readers_grow_as_long_as_there_is_room_and_are_served_beyond_it() {
        let room = FillRoom::default();
        let mut readers: Vec<Fills<'_>> = (0..4096).map(|_| room.begin(PACKET)).collect();
        let fills: Vec<usize> = readers.iter_mut().map(|reader| reader.grow(MOST)).collect();
        let large = fills.iter().filter(|bytes| **bytes == MOST).count();
        assert_eq!(large, BYTES_ALL / BUFFERS / (MOST - PACKET));
        assert!(fills.iter().all(|bytes| [PACKET, MOST].contains(bytes)));
        assert_eq!(readers[0].grow(MOST), MOST, "it has its room already");
        drop(readers);
        assert_eq!(room.taken.load(Ordering::Acquire), 0);
        assert_eq!(room.begin(PACKET).grow(MOST), MOST);
    }
}
