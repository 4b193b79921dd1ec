//! Memory that two processes share: the words of [`proto::data_transfer::slot`].

use proto::data_transfer::slot::{SEGMENT_BYTES, SLOT_BYTES, SLOTS};
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    ffi::c_void,
    io,
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::AtomicU64,
};

/// A segment, mapped into this process. The other side may write any word at any time: what stands there is a hint and
/// never an index or a length.
pub struct Segment {
    memory: NonNull<c_void>,
}

// SAFETY: the memory belongs to this value until it is dropped, and is reached through atomic words only.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a segment of [`SEGMENT_BYTES`], all zero, and the descriptor by which another process maps it. Its size is
    /// sealed: a process that shrinks a file would kill every other one that looks at its mapping of it.
    ///
    /// # Errors
    /// The system has no memory or no descriptor left.
    pub fn create() -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create("clover-short-circuit", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, SEGMENT_BYTES as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::map(&file)?, file))
    }

    /// Maps a segment that another process has made.
    ///
    /// # Errors
    /// `InvalidData` if the file has fewer bytes than a segment; or it cannot be mapped.
    pub fn map(file: impl AsFd) -> io::Result<Self> {
        let file = file.as_fd();
        let bytes = fstat(file)?.st_size;
        if bytes < SEGMENT_BYTES as i64 {
            let text = format!("a shared segment of {bytes} bytes; {SEGMENT_BYTES} are needed");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses a free range of addresses, so nothing else of this process lies there. The file is as
        // long as the range: it cannot shrink if this process made it, and the server that made it has no reason to.
        let memory = unsafe { mmap(std::ptr::null_mut(), SEGMENT_BYTES, access, MapFlags::SHARED, file, 0)? };
        let memory = NonNull::new(memory).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory })
    }

    /// The word of a slot; `None` if there is no slot of this number.
    pub fn word(&self, slot: usize) -> Option<&AtomicU64> {
        if slot >= SLOTS {
            return None;
        }
        // SAFETY: the offset is within the mapping and a multiple of eight, as the mapping's beginning is. Other processes
        // reach the word by atomic operations as well, and every content is a number.
        Some(unsafe { &*self.memory.as_ptr().byte_add(slot * SLOT_BYTES).cast::<AtomicU64>() })
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the range is the one that was mapped. No reference to a word outlives this value.
        let _ = unsafe { munmap(self.memory.as_ptr(), SEGMENT_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn both_sides_see_the_same_words() {
        let (ours, file) = Segment::create().unwrap();
        let theirs = Segment::map(&file).unwrap();
        for slot in [0, 1, SLOTS - 1] {
            theirs.word(slot).unwrap().store(slot as u64 + 5, Ordering::Relaxed);
            assert_eq!(ours.word(slot).unwrap().load(Ordering::Relaxed), slot as u64 + 5);
        }
        assert!(ours.word(SLOTS).is_none());
    }

    #[test]
    fn nobody_can_shrink_a_segment_under_another() {
        let (_ours, file) = Segment::create().unwrap();
        assert!(ftruncate(&file, 0).is_err());
        assert!(ftruncate(&file, 1 << 20).is_err());
    }

    #[test]
    fn a_file_that_is_too_short_is_no_segment() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SEGMENT_BYTES as u64 - 1).unwrap();
        assert_eq!(Segment::map(&file).err().unwrap().kind(), io::ErrorKind::InvalidData);
    }
}
