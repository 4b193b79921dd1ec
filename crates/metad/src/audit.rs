//! The audit log: who asked for what, and whether it was allowed; a line a call, in HDFS's format.
//!
//! Off by default. Where it is on, each call that HDFS would log is watched until its answer goes out; calls that
//! fail for another reason than permissions leave no line, as in HDFS. Lines are gathered in memory and written
//! by a thread of their own, so that no answer waits for the disk; they are not synced. A file that was moved
//! away or cut by a rotation is opened anew.

pub mod lines;

use env::{
    Env,
    disk::{File, OpenMode},
};
use parking_lot::Mutex;
use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How long a line may wait in memory.
const PERIOD: Duration = Duration::from_millis(50);
/// Bytes that wait at most, while a disk is slow or fails. Lines beyond that are counted instead of written.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// The file, and the lines on their way to it. [`lines`] makes them.
pub struct AuditLog {
    path: PathBuf,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    lines: String,
    /// Lines that found no room.
    lost: u64,
}

impl AuditLog {
    pub fn new(path: PathBuf) -> Self {
        Self { path, waiting: Mutex::default() }
    }

    /// Adds a line, with its end. Does not wait.
    pub fn add(&self, line: &str) {
        let mut waiting = self.waiting.lock();
        if waiting.lines.len() + line.len() > WAITING_BYTES_MAX {
            waiting.lost += 1;
            return;
        }
        waiting.lines.push_str(line);
    }

    /// Writes until `stop`, and then what is left.
    pub fn run(&self, env: &Env, stop: &AtomicBool) {
        let mut output: Option<Output> = None;
        let mut has_failed = false;
        loop {
            let is_last = stop.load(Ordering::Acquire);
            match self.write_out(env, &mut output) {
                Ok(()) => has_failed = false,
                Err(error) => {
                    output = None;
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::error!(path = %self.path.display(), %error, "the audit log cannot be written");
                    }
                }
            }
            if is_last {
                return;
            }
            std::thread::sleep(PERIOD);
            env::pulse::step();
        }
    }

    fn write_out(&self, env: &Env, output: &mut Option<Output>) -> io::Result<()> {
        if self.waiting.lock().lines.is_empty() {
            return Ok(());
        }
        let open = Output::fit(env, &self.path, output.take())?;
        let (lines, lost) = {
            let mut waiting = self.waiting.lock();
            (std::mem::take(&mut waiting.lines), std::mem::take(&mut waiting.lost))
        };
        let written = open.write(lines.as_bytes());
        match written {
            Ok(end) => *output = Some(Output { end, ..open }),
            Err(error) => {
                // They are tried again, before what has come meanwhile.
                let mut waiting = self.waiting.lock();
                waiting.lines.insert_str(0, &lines);
                waiting.lost += lost;
                return Err(error);
            }
        }
        if lost > 0 {
            tracing::error!(lost, "lines of the audit log are missing: the disk was too slow, or failed");
        }
        Ok(())
    }
}

/// The file, and how far it is written.
struct Output {
    file: Arc<dyn File>,
    end: u64,
}

impl Output {
    /// The one that is open if it still is the one of this name, else another.
    fn fit(env: &Env, path: &std::path::Path, open: Option<Self>) -> io::Result<Self> {
        let length = match env.disk.exists(path)? {
            true => Some(env.disk.length(path)?),
            false => None,
        };
        match (open, length) {
            (Some(open), Some(length)) if open.end == length => Ok(open),
            (_, Some(end)) => Ok(Self { file: env.disk.open(path, OpenMode::ReadWrite)?, end }),
            (_, None) => {
                if let Some(parent) = path.parent() {
                    env.disk.create_directory(parent)?;
                }
                Ok(Self { file: env.disk.open(path, OpenMode::CreateNew)?, end: 0 })
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<u64> {
        self.file.write_at(bytes, self.end)?;
        Ok(self.end + bytes.len() as u64)
    }
}
