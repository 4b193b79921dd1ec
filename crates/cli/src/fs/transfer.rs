//! Copies of many files at once: a bounded number at a time, with a progress bar, leaving nothing half-done.

use super::{
    failure::{Failure, Outcome},
    local_file::{self, LocalFile, UNFINISHED},
    shell::Shell,
};
use bytes::Bytes;
use client::{CreateOptions, FileSystem};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    collections::BTreeMap,
    fs::File,
    future::Future,
    io::{self, Read, Write},
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinSet};

/// Bytes that go from hand to hand at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that wait between a local file and the network.
const CHUNKS_WAITING: usize = 4;
/// Files copied at once unless -t says otherwise: enough to hide the waits of small files.
pub const THREADS: u16 = 4;
/// Files at once, at most: each holds sockets and some MiB.
const THREADS_MAX: u16 = 256;

/// The options that all copying commands have.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Overwrite what is there.
    #[arg(short = 'f')]
    pub force: bool,
    /// Write to the final name at once instead of to a temporary one.
    #[arg(short = 'd')]
    pub direct: bool,
    /// Files copied at the same time.
    #[arg(short = 't', long, value_name = "COUNT", default_value_t = THREADS,
          value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    pub threads: u16,
    /// Accepted for scripts: how many files may wait for their turn.
    #[arg(short = 'q', value_name = "SIZE", hide = true)]
    pub queue: Option<u32>,
}

/// A batch of copies.
pub struct Transfer {
    running: JoinSet<Outcome>,
    threads: usize,
    pub progress: Progress,
}

impl Transfer {
    pub fn new(options: &Options) -> Self {
        Self { running: JoinSet::new(), threads: usize::from(options.threads), progress: Progress::new() }
    }

    /// A file of so many bytes is to be copied; where to tell how far that is.
    pub fn expect(&self, bytes: u64) -> Progress {
        self.progress.bar.inc_length(bytes);
        self.progress.clone()
    }

    /// Bytes are to be copied, and nobody knows how many.
    pub fn expect_unknown(&self) -> Progress {
        self.progress.bar.unset_length();
        self.progress.set_style("{spinner} {bytes} {bytes_per_sec} {elapsed} {wide_msg}");
        self.progress.clone()
    }

    /// Starts a copy, after waiting for one of the others when there are enough.
    pub async fn start(&mut self, shell: &mut Shell, copy: impl Future<Output = Outcome> + Send + 'static) {
        while self.running.len() >= self.threads {
            self.wait(shell).await;
        }
        self.running.spawn(copy);
    }

    /// Waits for all copies that were started.
    pub async fn finish(&mut self, shell: &mut Shell) {
        while !self.running.is_empty() {
            self.wait(shell).await;
        }
        self.progress.clear();
    }

    async fn wait(&mut self, shell: &mut Shell) {
        let outcome = match self.running.join_next().await {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => Err(Failure::Other(format!("a copy ended in a bug: {panic}"))),
            None => Ok(()),
        };
        if outcome.is_err() {
            self.progress.bar.suspend(|| shell.check(outcome));
        }
    }
}

/// How far all copies together are; shown on a terminal only.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let progress = Self { bar };
        progress.set_style("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} {wide_msg}");
        progress
    }

    /// The progress of a command that copies one file after the other.
    pub fn of_bytes(bytes: u64) -> Self {
        let progress = Self::new();
        progress.bar.set_length(bytes);
        progress
    }

    /// A bar that draws nothing, for a command whose output goes where the bar would be drawn.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    fn set_style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
    }

    pub fn begin(&self, name: &str) {
        self.bar.set_message(name.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(500));
    }

    pub fn advance(&self, bytes: usize) {
        self.bar.inc(bytes as u64);
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Unfinished files that are to go when the command is interrupted.
static UNFINISHED_REMOTE: Mutex<BTreeMap<String, FileSystem>> = Mutex::new(BTreeMap::new());

/// Deletes what an interrupted command leaves behind.
pub async fn clean_up() {
    local_file::clean_up();
    let remote = std::mem::take(&mut *UNFINISHED_REMOTE.lock().unwrap_or_else(PoisonError::into_inner));
    for (path, fs) in remote {
        let _ = tokio::time::timeout(Duration::from_secs(5), fs.delete(&path, false)).await;
    }
}

/// The source of the bytes of a copy.
pub type Source = mpsc::Receiver<io::Result<Bytes>>;

/// Reads a local file, or the standard input, on a thread of its own.
pub fn read_local(mut file: impl Read + Send + 'static) -> Source {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = match file.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read,
            };
            let item = match read {
                Ok(0) => return,
                Ok(count) => {
                    chunk.truncate(count);
                    Ok(Bytes::from(chunk))
                }
                Err(error) => Err(error),
            };
            let is_last = item.is_err();
            if sender.blocking_send(item).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

/// Writes a new file: to a temporary name, then renamed, so that nobody sees a part of it.
pub async fn upload(
    fs: &FileSystem,
    path: &str,
    source_name: &str,
    mut source: Source,
    options: &Options,
    progress: &Progress,
) -> Outcome {
    let unfinished = match options.direct {
        true => path.to_owned(),
        false => format!("{path}{UNFINISHED}"),
    };
    let lock = || UNFINISHED_REMOTE.lock().unwrap_or_else(PoisonError::into_inner);
    lock().insert(unfinished.clone(), fs.clone());
    let written = async {
        let overwrite = !options.direct || options.force;
        let create = CreateOptions { overwrite, ..Default::default() };
        let mut writer = fs.create(&unfinished, &create).await?;
        progress.begin(source_name);
        while let Some(chunk) = source.recv().await {
            let chunk = chunk.map_err(|error| Failure::local(source_name, error))?;
            writer.write(&chunk).await?;
            progress.advance(chunk.len());
        }
        writer.close().await?;
        if !options.direct {
            fs.rename(&unfinished, path, options.force).await?;
        }
        Ok(())
    };
    let written: Outcome = written.await;
    if written.is_err() && !options.direct {
        let _ = fs.delete(&unfinished, false).await;
    }
    lock().remove(&unfinished);
    written
}

/// Writes a local file: to a temporary name, then renamed.
pub async fn download(
    fs: &FileSystem,
    path: &str,
    target: &Path,
    options: &Options,
    progress: &Progress,
) -> Outcome {
    let mut reader = fs.open(path).await?;
    let (unfinished, file) = LocalFile::create(target, options.direct)?;
    progress.begin(path);
    let (sender, receiver) = mpsc::channel::<Bytes>(CHUNKS_WAITING);
    let writing = tokio::task::spawn_blocking(move || write_local(file, receiver));
    let copied: Outcome = async {
        while let Some(bytes) = reader.read(CHUNK_BYTES).await? {
            progress.advance(bytes.len());
            if sender.send(bytes).await.is_err() {
                // The writing thread says below what is wrong.
                break;
            }
        }
        Ok(())
    }
    .await;
    drop(sender);
    let written = match writing.await {
        Ok(written) => written.map_err(|error| Failure::local(unfinished.path(), error)),
        Err(panic) => Err(Failure::Other(format!("writing ended in a bug: {panic}"))),
    };
    copied.and(written)?;
    unfinished.finish()
}

fn write_local(mut file: File, mut chunks: mpsc::Receiver<Bytes>) -> io::Result<()> {
    while let Some(chunk) = chunks.blocking_recv() {
        file.write_all(&chunk)?;
    }
    Ok(())
}

/// Reads a file of a file system as the source of a copy.
pub fn read_remote(fs: FileSystem, path: String) -> Source {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(async move {
        let copied: client::Result<()> = async {
            let mut reader = fs.open(&path).await?;
            while let Some(bytes) = reader.read(CHUNK_BYTES).await? {
                if sender.send(Ok(bytes)).await.is_err() {
                    break;
                }
            }
            Ok(())
        }
        .await;
        if let Err(error) = copied {
            let _ = sender.send(Err(io::Error::other(error))).await;
        }
    });
    receiver
}
