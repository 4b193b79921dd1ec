//! Real streams on a real disk: the native client writes and reads blocks, which Clover's or Hadoop's data server serves.

use super::device::Device;
use crate::lone::Scene;
use anyhow::{Context, bail, ensure};
use client::{Config, CreateOptions, FileSystem};
use std::{
    fs::{self, File},
    io::{Read, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

const PIECE_BYTES: usize = 1 << 20;
const BLOCK_BYTES: u64 = 128 << 20;
/// Until the data server has registered.
const PATIENCE: Duration = Duration::from_secs(120);

/// One of the ways in which the bytes are written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lane {
    /// Files written and read directly: what the disk and the system can do.
    Raw,
    /// Clover's data server with turns, and without.
    Turns,
    NoTurns,
    /// Hadoop's DataNode; needs --hadoop.
    Hadoop,
}

impl Lane {
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "the disk itself",
            Self::Turns => "Clover, turns",
            Self::NoTurns => "Clover, no turns",
            Self::Hadoop => "Hadoop",
        }
    }
}

/// One measurement. Rates are in bytes per second; there is none of reading where the system's cache cannot be emptied.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub write: f64,
    pub read: Option<f64>,
    /// Of a whole block, on average; none where filefrag is not installed or cannot tell.
    pub extents: Option<f64>,
    /// How often the head of a modelled disk went elsewhere, writing and reading.
    pub seeks: Option<[u64; 2]>,
}

/// Where a measurement has its files.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// A new directory of its own.
    pub dir: &'a Path,
    /// The disk that has the blocks, if it is another than that of `dir`.
    pub device: Option<&'a Device>,
}

impl Place<'_> {
    fn blocks(&self) -> PathBuf {
        self.device.map_or(self.dir, Device::path).join("blocks")
    }

    fn seeks(&self) -> u64 {
        self.device.map_or(0, Device::seeks)
    }
}

/// Writes `total` bytes by so many streams, and reads them again.
pub async fn measure(
    lane: Lane,
    place: Place<'_>,
    jars: Option<&Path>,
    streams: usize,
    total: u64,
) -> anyhow::Result<Measured> {
    let (dir, blocks) = (place.dir, &place.blocks());
    let share = total / streams as u64;
    let scene = match lane {
        Lane::Raw => return raw(place, streams, share),
        Lane::Turns => Scene::clover_with_data(dir, blocks, "all").await?,
        Lane::NoTurns => Scene::clover_with_data(dir, blocks, "none").await?,
        Lane::Hadoop => {
            let jars = jars.context("--hadoop names Hadoop's jars")?;
            Scene::hadoop_with_data(dir, blocks, jars).await?
        }
    };
    let fs = FileSystem::connect(&scene.uri, &Config::new())?;
    wait_until_it_serves(&fs).await?;
    sync(blocks)?;
    let (seeks, begun) = (place.seeks(), Instant::now());
    let writers: Vec<_> = (0..streams).map(|number| tokio::spawn(write(fs.clone(), number, share))).collect();
    for writer in writers {
        writer.await??;
    }
    // The disk has to have it: otherwise memory is measured.
    sync(blocks)?;
    let write = (share * streams as u64) as f64 / begun.elapsed().as_secs_f64();
    let (extents, between) = (extents(blocks)?, place.seeks());
    let read = match forget_cache() {
        false => None,
        true => {
            let begun = Instant::now();
            let readers: Vec<_> =
                (0..streams).map(|number| tokio::spawn(read(fs.clone(), number, share))).collect();
            for reader in readers {
                reader.await??;
            }
            Some((share * streams as u64) as f64 / begun.elapsed().as_secs_f64())
        }
    };
    let seeks = place.device.map(|device| [between - seeks, device.seeks() - between]);
    drop(scene);
    Ok(Measured { write, read, extents, seeks })
}

async fn wait_until_it_serves(fs: &FileSystem) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let tried = async {
            let mut file = fs.create("/ready", &options(true)).await?;
            file.write(b"x").await?;
            file.close().await
        };
        match tried.await {
            Ok(()) => return Ok(()),
            Err(error) if begun.elapsed() > PATIENCE => bail!("the servers do not take files: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

fn options(overwrite: bool) -> CreateOptions {
    CreateOptions {
        overwrite,
        replication: Some(1),
        block_size: Some(BLOCK_BYTES),
        ..CreateOptions::default()
    }
}

fn piece() -> Vec<u8> {
    (0..PIECE_BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

async fn write(fs: FileSystem, number: usize, share: u64) -> anyhow::Result<()> {
    let (mut file, piece) = (fs.create(&format!("/stream-{number}"), &options(false)).await?, piece());
    let mut left = share;
    while left > 0 {
        let count = left.min(PIECE_BYTES as u64);
        file.write(&piece[..count as usize]).await?;
        left -= count;
    }
    Ok(file.close().await?)
}

async fn read(fs: FileSystem, number: usize, share: u64) -> anyhow::Result<()> {
    let mut file = fs.open(&format!("/stream-{number}")).await?;
    let mut found = 0;
    while let Some(bytes) = file.read(PIECE_BYTES).await? {
        found += bytes.len() as u64;
    }
    ensure!(found == share, "{found} bytes were read of {share}");
    Ok(())
}

/// A thread for each stream and no server.
fn raw(place: Place<'_>, streams: usize, share: u64) -> anyhow::Result<Measured> {
    let blocks = place.blocks();
    fs::create_dir_all(&blocks)?;
    let each = |work: &(dyn Fn(&Path) -> std::io::Result<()> + Sync)| -> anyhow::Result<()> {
        std::thread::scope(|scope| {
            let path = |number| blocks.join(format!("blk_{number}"));
            let threads: Vec<_> =
                (0..streams).map(path).map(|path| scope.spawn(move || work(&path))).collect();
            for thread in threads {
                thread.join().map_err(|_| anyhow::anyhow!("a stream panicked"))??;
            }
            Ok(())
        })
    };
    sync(&blocks)?;
    let (piece, seeks, begun) = (piece(), place.seeks(), Instant::now());
    each(&|path| {
        let mut file = File::create(path)?;
        let mut left = share;
        while left > 0 {
            let count = left.min(PIECE_BYTES as u64);
            file.write_all(&piece[..count as usize])?;
            left -= count;
        }
        Ok(())
    })?;
    sync(&blocks)?;
    let write = (share * streams as u64) as f64 / begun.elapsed().as_secs_f64();
    let (extents, between) = (extents(&blocks)?, place.seeks());
    let read = match forget_cache() {
        false => None,
        true => {
            let begun = Instant::now();
            each(&|path| {
                let (mut file, mut buffer) = (File::open(path)?, vec![0; PIECE_BYTES]);
                while file.read(&mut buffer)? > 0 {}
                Ok(())
            })?;
            Some((share * streams as u64) as f64 / begun.elapsed().as_secs_f64())
        }
    };
    let seeks = place.device.map(|device| [between - seeks, device.seeks() - between]);
    Ok(Measured { write, read, extents, seeks })
}

/// Writes out all of the file system that has this directory.
fn sync(dir: &Path) -> anyhow::Result<()> {
    let directory = File::open(dir).with_context(|| format!("opening {}", dir.display()))?;
    rustix::fs::syncfs(directory.as_fd()).with_context(|| format!("syncing {}", dir.display()))
}

/// Empties the system's cache of files; only root may.
fn forget_cache() -> bool {
    fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// The extents of 128 MiB of block files.
fn extents(dir: &Path) -> anyhow::Result<Option<f64>> {
    let (mut extents, mut bytes) = (0, 0);
    for path in block_files(dir)? {
        let length = fs::metadata(&path)?.len();
        if length < BLOCK_BYTES / 2 {
            continue;
        }
        let Ok(output) = Command::new("filefrag").arg(&path).output() else { return Ok(None) };
        let said = String::from_utf8_lossy(&output.stdout);
        let Some(count) = extent_count(&said) else { return Ok(None) };
        extents += count;
        bytes += length;
    }
    Ok((bytes > 0).then(|| extents as f64 * BLOCK_BYTES as f64 / bytes as f64))
}

/// From `PATH: 3 extents found`.
fn extent_count(said: &str) -> Option<u64> {
    let (before, _) = said.trim().rsplit_once(" extent")?;
    before.rsplit_once(' ')?.1.parse().ok()
}

/// The finished block files below a directory.
fn block_files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut directories) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else if name.starts_with("blk_") && !name.ends_with(".meta") {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::extent_count;

    #[test]
    fn filefrags_answer_is_understood() {
        assert_eq!(extent_count("/a b/blk_1: 3 extents found\n"), Some(3));
        assert_eq!(extent_count("x: 1 extent found"), Some(1));
        assert_eq!(extent_count("x: FIBMAP unsupported"), None);
    }
}
