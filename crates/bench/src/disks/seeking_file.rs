//! A file on the modelled disk, behind the same seam as a real one: the shipped parts of the data server drive it.
//!
//! The file has no bytes, only their places on the disk. A write takes no time: its bytes are in memory. Writing them out, and
//! reading, take the disk's time.

use super::{
    ground::{Extent, Ground},
    platter::Platter,
};
use bytes::Bytes;
use env::{File, WriteDone};
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The disk and its time, which all of its files share.
pub struct SeekingDisk {
    world: Mutex<World>,
}

pub struct World {
    pub platter: Platter,
    pub ground: Ground,
    pub now_ns: u64,
}

impl SeekingDisk {
    pub fn new(platter: Platter, ground: Ground) -> Arc<Self> {
        Arc::new(Self { world: Mutex::new(World { platter, ground, now_ns: 0 }) })
    }

    pub fn now_ns(&self) -> u64 {
        self.world().now_ns
    }

    /// Nothing happens until then.
    pub fn wait_until(&self, ns: u64) {
        let mut world = self.world();
        world.now_ns = world.now_ns.max(ns);
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct SeekingFile {
    disk: Arc<SeekingDisk>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    length: u64,
    extents: Vec<Extent>,
    placed: u64,
    /// The ranges that are being written out: the byte behind the last byte of each, and when the disk is done with it.
    under_way: Vec<(u64, u64)>,
}

impl SeekingFile {
    pub fn new(disk: &Arc<SeekingDisk>) -> Arc<Self> {
        Arc::new(Self { disk: disk.clone(), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn extent_count(&self) -> usize {
        self.state().extents.len()
    }

    /// Gives the disk this range to read or write; answers when it is done.
    fn serve(&self, offset: u64, length: u64) -> u64 {
        let (mut world, mut state) = (self.disk.world(), self.state());
        let end = offset + length;
        if end > state.placed {
            let missing = end - state.placed;
            let State { extents, placed, .. } = &mut *state;
            world.ground.place(extents, missing);
            *placed = end;
        }
        let mut done_ns = world.now_ns;
        for extent in &state.extents {
            let begin = extent.begin.max(offset);
            let stop = (extent.begin + extent.bytes).min(end);
            if begin < stop {
                let now_ns = world.now_ns;
                done_ns = world.platter.serve(now_ns, extent.at + (begin - extent.begin), stop - begin);
            }
        }
        done_ns
    }
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

impl File for SeekingFile {
    /// Takes the time of reading `buffer.len()` bytes, and reads none.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.begin_read_ahead(offset, buffer.len() as u64)?;
        self.await_read_ahead(offset, buffer.len() as u64)?;
        Ok(buffer.len())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        state.length = state.length.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        unsupported()
    }

    fn submit_write_sync(self: Arc<Self>, _bytes: Bytes, _offset: u64, done: WriteDone) {
        done(unsupported());
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.state().length)
    }

    fn set_length(&self, _length: u64) -> io::Result<()> {
        unsupported()
    }

    fn allocate(&self, _length: u64) -> io::Result<()> {
        unsupported()
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        let (mut world, mut state) = (self.disk.world(), self.state());
        if length > state.placed {
            let missing = length - state.placed;
            world.ground.begin_group(missing);
            world.ground.place(&mut state.extents, missing);
            state.placed = length;
        }
        Ok(())
    }

    fn begin_write_out(&self, offset: u64, length: u64) -> io::Result<()> {
        let done_ns = self.serve(offset, length);
        self.state().under_way.push((offset + length, done_ns));
        Ok(())
    }

    fn await_write_out(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.state();
        let end = offset + length;
        let done_ns = state.under_way.iter().filter(|begun| begun.0 <= end).map(|begun| begun.1).max();
        state.under_way.retain(|begun| begun.0 > end);
        drop(state);
        self.disk.wait_until(done_ns.unwrap_or(0));
        Ok(())
    }

    fn begin_read_ahead(&self, offset: u64, length: u64) -> io::Result<()> {
        self.begin_write_out(offset, length)
    }

    fn await_read_ahead(&self, offset: u64, length: u64) -> io::Result<()> {
        self.await_write_out(offset, length)
    }
}
