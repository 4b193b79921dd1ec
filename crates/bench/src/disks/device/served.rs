//! A directory with one file, which is the disk: FUSE asks for its bytes, and gets them when the modelled head has been there.

use super::head::{Head, Order, Request};
use crate::disks::platter::{Measures, Platter};
use anyhow::Context;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    WriteFlags,
};
use parking_lot::{Condvar, Mutex};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufWriter, Write},
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, UNIX_EPOCH},
};

/// The file's name in its directory.
pub const NAME: &str = "disk";

const FILE: INodeNo = INodeNo(2);

/// Attributes do not change.
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// Requests that the kernel may have on the disk at a time.
const REQUESTS_MAX: u16 = 256;

/// The largest request.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// The disk as its file system and its thread see it.
pub struct Served {
    begun: Instant,
    bytes: u64,
    /// Bytes that no process has written yet are zeroes and take no memory. It is memory, so it never waits for a disk.
    memory: File,
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    head: Head<Answer>,
    trace: Option<BufWriter<File>>,
    /// Until the disk is used as one, it takes no time.
    is_timed: bool,
    is_over: bool,
}

enum Answer {
    Read(ReplyData),
    Write(ReplyWrite),
}

impl Served {
    pub fn new(measures: Measures, order: Order, memory: File) -> Arc<Self> {
        let head = Head::new(Platter::new(measures), order);
        let state = State { head, trace: None, is_timed: false, is_over: false };
        Arc::new(Self {
            begun: Instant::now(),
            bytes: measures.bytes,
            memory,
            state: Mutex::new(state),
            work: Condvar::new(),
        })
    }

    /// From now on the disk takes its time, and writes down each request if `trace` names a file.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(&self, trace: Option<&Path>) -> anyhow::Result<()> {
        let mut state = self.state.lock();
        if let Some(path) = trace {
            let file = File::create(path).with_context(|| format!("making {}", path.display()))?;
            let mut file = BufWriter::new(file);
            writeln!(file, "came_us done_us waiting what offset_kib length_kib")?;
            state.trace = Some(file);
        }
        state.is_timed = true;
        Ok(())
    }

    pub fn seeks(&self) -> u64 {
        self.state.lock().head.seeks()
    }

    /// Ends the thread of [`Served::work`].
    pub fn end(&self) {
        self.state.lock().is_over = true;
        self.work.notify_all();
    }

    fn take_in(&self, at: u64, bytes: u64, answer: Answer) {
        let mut state = self.state.lock();
        if !state.is_timed {
            drop(state);
            return self.answer(at, bytes, answer);
        }
        let came_ns = self.begun.elapsed().as_nanos() as u64;
        let is_read = matches!(answer, Answer::Read(_));
        state.head.take_in(Request { is_read, at, bytes, came_ns, answer });
        self.work.notify_one();
    }

    /// Serves one request after the other until the disk is over.
    pub fn work(&self) {
        let mut state = self.state.lock();
        while !state.is_over {
            let Some((request, done_ns)) = state.head.serve() else {
                self.work.wait(&mut state);
                continue;
            };
            let waiting = state.head.waiting();
            if let Some(trace) = &mut state.trace {
                let what = if request.is_read { "read" } else { "write" };
                let (came, done) = (request.came_ns / 1000, done_ns / 1000);
                // A trace that cannot be written is no reason to stop the disk.
                let _ = writeln!(
                    trace,
                    "{came} {done} {waiting} {what} {} {}",
                    request.at >> 10,
                    request.bytes >> 10
                );
            }
            drop(state);
            let left_ns = done_ns.saturating_sub(self.begun.elapsed().as_nanos() as u64);
            std::thread::sleep(Duration::from_nanos(left_ns));
            self.answer(request.at, request.bytes, request.answer);
            state = self.state.lock();
        }
        if let Some(trace) = &mut state.trace {
            let _ = trace.flush();
        }
    }

    fn answer(&self, at: u64, bytes: u64, answer: Answer) {
        match answer {
            Answer::Write(reply) => reply.written(bytes as u32),
            Answer::Read(reply) => {
                let mut found = vec![0; bytes as usize];
                match self.memory.read_exact_at(&mut found, at) {
                    Ok(()) => reply.data(&found),
                    Err(error) => reply.error(error.into()),
                }
            }
        }
    }

    fn attributes(&self, node: INodeNo) -> FileAttr {
        let is_file = node == FILE;
        FileAttr {
            ino: node,
            size: if is_file { self.bytes } else { 0 },
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

/// The directory with the disk.
pub struct Directory(pub Arc<Served>);

impl Filesystem for Directory {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |_| io::Error::from(io::ErrorKind::Unsupported);
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| io::ErrorKind::Unsupported)?;
        config.set_max_write(REQUEST_BYTES_MAX).map_err(|_| io::ErrorKind::Unsupported)?;
        config.set_max_background(REQUESTS_MAX).map_err(refused)?;
        config.set_congestion_threshold(REQUESTS_MAX).map_err(refused)?;
        Ok(())
    }

    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match parent == INodeNo::ROOT && name == NAME {
            true => reply.entry(&FOREVER, &self.0.attributes(FILE), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &fuser::Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.0.attributes(node));
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The bytes are not held in the system's memory a second time.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let end = offset.saturating_add(u64::from(size)).min(self.0.bytes);
        match end.checked_sub(offset) {
            None | Some(0) => reply.data(&[]),
            Some(bytes) => self.0.take_in(offset, bytes, Answer::Read(reply)),
        }
    }

    fn write(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.0.memory.write_all_at(data, offset) {
            Ok(()) => self.0.take_in(offset, data.len() as u64, Answer::Write(reply)),
            Err(error) => reply.error(error.into()),
        }
    }

    /// A write is answered once it is on the disk, so nothing is left to do.
    fn fsync(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn flush(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }
}
