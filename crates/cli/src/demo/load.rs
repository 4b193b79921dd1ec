//! A gentle load beside a demo: it gives the console and `clover status` something to show, and it tells what clients feel
//! when a server fails.

mod tally;

use anyhow::Context;
use client::{CreateOptions, FileSystem};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tally::Tally;
use tokio::{sync::watch, task::JoinSet};

/// Where the load keeps its files. It deletes `ARRIVING` and `KEPT` below it, and nothing else.
const PLACE: &str = "/demo-load";
/// Files on their way: a file is written here, and renamed when it is whole.
const ARRIVING: &str = "/demo-load/arriving";
const KEPT: &str = "/demo-load/kept";

const WRITERS: usize = 2;
/// The most files that are kept. With the largest size of a file it bounds the room of the load: 16 MiB before replication.
const FILES_MAX: usize = 64;
const FILE_BYTES_MIN: usize = 64 << 10;
const FILE_BYTES_MAX: usize = 256 << 10;

/// Between two files of a writer. Two writers write about half a megabyte a second before replication.
const WRITER_PAUSE: Duration = Duration::from_millis(500);
const READER_PAUSE: Duration = Duration::from_millis(250);
const LISTER_PAUSE: Duration = Duration::from_millis(500);
/// After an operation that has failed.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// Between two lines about the load.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// How long each of the two parts of the end may take: that of the operations under way, and that of the files.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The load while it runs. It goes on until [`stop`](Self::stop).
pub struct Load {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    workers: JoinSet<()>,
}

struct Shared {
    fs: FileSystem,
    tally: Tally,
    /// The numbers of the files that are there for readers, the oldest first.
    kept: Mutex<VecDeque<u64>>,
    next: AtomicU64,
}

impl Load {
    /// Deletes what an earlier load has left, and begins.
    ///
    /// # Errors
    /// The directories cannot be made.
    pub async fn start(fs: FileSystem) -> anyhow::Result<Self> {
        tidy(&fs).await.with_context(|| format!("deleting what an earlier load has left in {PLACE}"))?;
        for directory in [ARRIVING, KEPT] {
            fs.mkdirs(directory).await.with_context(|| format!("making {directory} for the load"))?;
        }
        let shared =
            Arc::new(Shared { fs, tally: Tally::default(), kept: Mutex::default(), next: AtomicU64::new(1) });
        let (stop, stopped) = watch::channel(false);
        let mut workers = JoinSet::new();
        for _ in 0..WRITERS {
            workers.spawn(write(shared.clone(), Pause(stopped.clone())));
        }
        workers.spawn(read(shared.clone(), Pause(stopped.clone())));
        workers.spawn(list(shared.clone(), Pause(stopped.clone())));
        workers.spawn(tell(shared.clone(), Pause(stopped)));
        println!("load: {WRITERS} writers, a reader and a lister work below {PLACE}");
        Ok(Self { shared, stop, workers })
    }

    /// Ends the load, deletes its files, and prints what it has done altogether.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        let ended = async { while self.workers.join_next().await.is_some() {} };
        if tokio::time::timeout(END_TIMEOUT, ended).await.is_err() {
            self.workers.shutdown().await;
        }
        let files = match tokio::time::timeout(END_TIMEOUT, tidy(&self.shared.fs)).await {
            Ok(Ok(())) => "its files are deleted".to_owned(),
            Ok(Err(error)) => format!("its files stay in {PLACE}: {error}"),
            Err(_) => format!("its files stay in {PLACE}: deleting them took too long"),
        };
        println!("load: stopped after {}; {files}", self.shared.tally.total());
    }
}

impl Shared {
    fn kept(&self) -> std::sync::MutexGuard<'_, VecDeque<u64>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_kept(&self, number: u64) -> bool {
        self.kept().contains(&number)
    }
}

/// Waits between operations.
struct Pause(watch::Receiver<bool>);

impl Pause {
    /// Returns after so long, or at once when the load stops; says whether the load goes on.
    async fn wait(&mut self, time: Duration) -> bool {
        tokio::select! {
            biased;
            _ = self.0.wait_for(|stop| *stop) => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

async fn write(shared: Arc<Shared>, mut pause: Pause) {
    let fs = shared.fs.as_another_client();
    loop {
        // A file that has failed is written again under its number, so that failures leave no files behind.
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        while publish(&shared, &fs, number).await.is_none() {
            if !pause.wait(FAILURE_PAUSE).await {
                return;
            }
        }
        let too_many = {
            let mut kept = shared.kept();
            kept.push_back(number);
            if kept.len() > FILES_MAX { kept.pop_front() } else { None }
        };
        if let Some(oldest) = too_many {
            while shared.tally.time("delete", fs.delete(&kept_path(oldest), false)).await.is_none() {
                if !pause.wait(FAILURE_PAUSE).await {
                    return;
                }
            }
        }
        if !pause.wait(WRITER_PAUSE).await {
            return;
        }
    }
}

/// Writes a file and gives it its name when it is whole; `None` where an operation has failed.
async fn publish(shared: &Shared, fs: &FileSystem, number: u64) -> Option<()> {
    let arriving = format!("{ARRIVING}/{number}");
    let options = CreateOptions { overwrite: true, ..CreateOptions::default() };
    let written = async {
        let mut writer = fs.create(&arriving, &options).await?;
        writer.write(&contents(number)).await?;
        writer.close().await
    };
    shared.tally.time("write", written).await?;
    shared.tally.time("rename", fs.rename(&arriving, &kept_path(number), true)).await
}

async fn read(shared: Arc<Shared>, mut pause: Pause) {
    let mut turn = 0;
    while pause.wait(READER_PAUSE).await {
        turn += 1;
        let chosen = {
            let kept = shared.kept();
            kept.get(turn % kept.len().max(1)).copied()
        };
        let Some(number) = chosen else { continue };
        let read = async {
            match read_whole(&shared.fs, number).await {
                Ok(bytes) if bytes == contents(number) => Ok(()),
                // A writer has deleted it meanwhile.
                Err(_) if !shared.is_kept(number) => Ok(()),
                Ok(_) => Err(format!("{} has other bytes than were written", kept_path(number))),
                Err(error) => Err(error.to_string()),
            }
        };
        if shared.tally.time("read", read).await.is_none() && !pause.wait(FAILURE_PAUSE).await {
            return;
        }
    }
}

async fn read_whole(fs: &FileSystem, number: u64) -> client::Result<Vec<u8>> {
    let mut reader = fs.open(&kept_path(number)).await?;
    let mut bytes = Vec::with_capacity(FILE_BYTES_MAX);
    while let Some(piece) = reader.read(FILE_BYTES_MAX).await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

async fn list(shared: Arc<Shared>, mut pause: Pause) {
    while pause.wait(LISTER_PAUSE).await {
        let listed = async {
            let mut listing = shared.fs.list(KEPT);
            while listing.next().await?.is_some() {}
            client::Result::Ok(())
        };
        if shared.tally.time("list", listed).await.is_none() && !pause.wait(FAILURE_PAUSE).await {
            return;
        }
    }
}

/// Prints a line now and then.
async fn tell(shared: Arc<Shared>, mut pause: Pause) {
    while pause.wait(LINE_INTERVAL).await {
        println!("load: {}", shared.tally.line(LINE_INTERVAL));
    }
}

/// Deletes the files of a load. `PLACE` itself stays if it holds anything else.
async fn tidy(fs: &FileSystem) -> client::Result<()> {
    for directory in [ARRIVING, KEPT] {
        fs.delete(directory, true).await?;
    }
    match fs.delete(PLACE, false).await {
        Err(client::Error::Fs(base::FsError::NotEmpty(_))) => Ok(()),
        deleted => deleted.map(drop),
    }
}

fn kept_path(number: u64) -> String {
    format!("{KEPT}/{number}")
}

/// The bytes of a file, which no other file has. Sizes follow each other from the smallest to the largest.
fn contents(number: u64) -> Vec<u8> {
    const STEP: usize = 16 << 10;
    let sizes = (FILE_BYTES_MAX - FILE_BYTES_MIN) / STEP + 1;
    let length = FILE_BYTES_MIN + number as usize % sizes * STEP;
    let words = (0..(length / 8) as u64).flat_map(|word| ((number << 32) | word).to_le_bytes());
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_of_all_sizes_and_no_two_are_equal() {
        let lengths: Vec<usize> = (0..13).map(|number| contents(number).len()).collect();
        assert_eq!((lengths[0], lengths[12]), (FILE_BYTES_MIN, FILE_BYTES_MAX));
        assert_eq!(contents(13).len(), FILE_BYTES_MIN);
        assert_ne!(contents(0), contents(13));
    }
}
