//! A file's bytes in the system's memory: when they are written out, and when they are dropped.
//!
//! `sync_file_range` would begin and await a write-out by its flags, but no crate offers it as a safe function. Linux begins a
//! write-out as well when it is told that dirty pages are not needed, and keeps them until it is done; and a read past the
//! cache first waits until what it reads has been written out. Neither commits a journal or flushes the disk's own cache.

use std::{
    fs, io,
    num::NonZeroU64,
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::{FileExt, OpenOptionsExt},
    },
};

/// Told at a time. Small enough that none of it has been written out when it is told, and would be dropped.
const TOLD_BYTES: u64 = 1 << 20;

/// Every disk is content with buffers, offsets and lengths that are multiples of it.
const ALIGNMENT: usize = 4096;

fn advise(file: &fs::File, offset: u64, length: u64, advice: rustix::fs::Advice) -> io::Result<()> {
    // No length would mean: to the end of the file.
    let Some(length) = NonZeroU64::new(length) else { return Ok(()) };
    Ok(rustix::fs::fadvise(file.as_fd(), offset, Some(length), advice)?)
}

pub fn begin_write_out(file: &fs::File, offset: u64, length: u64) -> io::Result<()> {
    let end = offset.saturating_add(length);
    let mut at = offset;
    while at < end {
        let count = TOLD_BYTES.min(end - at);
        advise(file, at, count, rustix::fs::Advice::DontNeed)?;
        at += count;
    }
    Ok(())
}

/// Reads the last page of the range past the cache. A disk is given a range in ascending order.
pub fn await_write_out(file: &fs::File, offset: u64, length: u64) -> io::Result<()> {
    let Some(last) = offset.saturating_add(length).checked_sub(1) else { return Ok(()) };
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    // By the descriptor: the file may have another name by now, or none.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let read = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).and_then(|direct| {
        let mut memory = vec![0; 2 * ALIGNMENT];
        let skip = memory.as_ptr().align_offset(ALIGNMENT);
        let page = &mut memory[skip..skip + ALIGNMENT];
        direct.read_at(page, last - last % ALIGNMENT as u64)
    });
    match read {
        Ok(_) => Ok(()),
        // No direct input here, or no /proc: a sync says more than is asked for.
        Err(error) if super::medium::is_unsupported(&error) || error.kind() == io::ErrorKind::NotFound => {
            file.sync_data()
        }
        Err(error) => Err(error),
    }
}

pub fn forget(file: &fs::File, offset: u64, length: u64) -> io::Result<()> {
    advise(file, offset, length, rustix::fs::Advice::DontNeed)
}

pub fn has(file: &fs::File, offset: u64) -> bool {
    let mut byte = [0];
    let mut buffers = [io::IoSliceMut::new(&mut byte)];
    match rustix::io::preadv2(file, &mut buffers, offset, rustix::io::ReadWriteFlags::NOWAIT) {
        Ok(_) => true,
        Err(rustix::io::Errno::AGAIN) => false,
        // The file system cannot tell.
        Err(_) => true,
    }
}

pub fn begin_read_ahead(file: &fs::File, offset: u64, length: u64) -> io::Result<()> {
    advise(file, offset, length, rustix::fs::Advice::WillNeed)
}

pub fn await_read_ahead(file: &fs::File, offset: u64, length: u64) -> io::Result<()> {
    let Some(last) = offset.saturating_add(length).checked_sub(1) else { return Ok(()) };
    file.read_at(&mut [0], last).map(drop)
}

#[cfg(test)]
mod tests {
    use crate::{Disk, LocalDisk, OpenMode};

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_is_written_out_stays_in_memory_until_it_is_forgotten() {
        let directory = tempfile::tempdir_in(".").unwrap();
        let file = LocalDisk::new().open(&directory.path().join("file"), OpenMode::CreateNew).unwrap();
        file.reserve(8 * MIB).unwrap();
        file.write_at(&vec![7; 3 * MIB as usize + 5], 0).unwrap();
        assert_eq!(file.length().unwrap(), 3 * MIB + 5, "room is taken, and no length");
        file.begin_write_out(0, 3 * MIB + 5).unwrap();
        file.await_write_out(0, 3 * MIB + 5).unwrap();
        assert!(file.is_cached(MIB));
        file.give_back_room().unwrap();
        assert_eq!(file.length().unwrap(), 3 * MIB + 5);
        let mut found = vec![0; 3 * MIB as usize + 5];
        for _ in 0..2 {
            assert_eq!(file.read_at(&mut found, 0).unwrap(), found.len());
            assert!(found.iter().all(|byte| *byte == 7));
            file.sync_data().unwrap();
            file.forget_cached(0, 4 * MIB).unwrap();
            file.begin_read_ahead(0, 3 * MIB).unwrap();
            file.await_read_ahead(0, 3 * MIB).unwrap();
            assert!(file.is_cached(3 * MIB - 1));
        }
    }

    #[test]
    fn nothing_is_a_range_as_well() {
        let directory = tempfile::tempdir_in(".").unwrap();
        let file = LocalDisk::new().open(&directory.path().join("file"), OpenMode::CreateNew).unwrap();
        file.begin_write_out(0, 0).unwrap();
        file.await_write_out(0, 0).unwrap();
        file.forget_cached(0, 0).unwrap();
        file.begin_read_ahead(0, 0).unwrap();
        file.await_read_ahead(0, 0).unwrap();
    }
}
