//! `clover bench ceilings`: what this machine can do at most, without a server behind it.
//!
//! A figure of a server says little without what bounds it: the round trip of a socket, the bytes that loopback carries, and what the disk
//! takes. The ceiling of RPC is `clover bench meta --op null`.

use anyhow::Context;
use hdrhistogram::Histogram;
use serde_json::json;
use std::{
    fs::File,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory whose disk is measured. A file is written there, and removed.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The length of each measurement.
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The size of a small record of a journal.
const RECORD_BYTES: usize = 200;
const MESSAGE_BYTES: usize = 64;
const PIECE_BYTES: usize = 1 << 20;
/// The most that is written to a disk.
const WRITTEN_BYTES_MAX: u64 = 2 << 30;

struct Report {
    /// Of a message of [`MESSAGE_BYTES`] and its echo over loopback, two threads.
    round_trip_us: f64,
    /// Bytes per second that one connection over loopback carries.
    loopback: f64,
    /// Records appended to a file one after the other, each of them durable before the next.
    records_per_second: f64,
    record_us: [f64; 2],
    /// Bytes per second written to a file until all are durable.
    disk_write: f64,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let report = measure(&args.dir, Duration::from_secs(args.seconds))?;
    if args.json {
        println!("{}", report.json());
    } else {
        print!("{}", report.text());
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(dir: &Path, length: Duration) -> anyhow::Result<Report> {
    let round_trip_us = round_trip(length).context("a round trip over loopback")?;
    let loopback = loopback(length).context("bytes over loopback")?;
    let path = dir.join(format!("clover-bench-ceilings-{}", std::process::id()));
    let disk = on_disk(&path, length).with_context(|| format!("writing {}", path.display()));
    let removed = std::fs::remove_file(&path);
    let (records, disk_write) = disk?;
    removed.with_context(|| format!("removing {}", path.display()))?;
    let us = |quantile| records.value_at_quantile(quantile) as f64 / 1e3;
    let (records_per_second, record_us) = (1e9 / records.mean(), [us(0.5), us(0.99)]);
    Ok(Report { round_trip_us, loopback, records_per_second, record_us, disk_write })
}

fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

/// The median, in microseconds.
fn round_trip(length: Duration) -> anyhow::Result<f64> {
    let (mut near, mut far) = connected()?;
    let echo = thread::spawn(move || -> io::Result<()> {
        let mut message = [0; MESSAGE_BYTES];
        while far.read_exact(&mut message).is_ok() {
            far.write_all(&message)?;
        }
        Ok(())
    });
    let mut times = Histogram::<u64>::new(3)?;
    let mut message = [0; MESSAGE_BYTES];
    let begun = Instant::now();
    while begun.elapsed() < length {
        let sent = Instant::now();
        near.write_all(&message)?;
        near.read_exact(&mut message)?;
        times.record(sent.elapsed().as_nanos() as u64)?;
    }
    drop(near);
    echo.join().expect("the echo does not panic")?;
    Ok(times.value_at_quantile(0.5) as f64 / 1e3)
}

fn loopback(length: Duration) -> anyhow::Result<f64> {
    let (mut near, mut far) = connected()?;
    let reader = thread::spawn(move || -> io::Result<u64> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut read = 0;
        loop {
            match far.read(&mut piece)? {
                0 => return Ok(read),
                bytes => read += bytes as u64,
            }
        }
    });
    let piece = vec![7; PIECE_BYTES];
    let begun = Instant::now();
    while begun.elapsed() < length {
        near.write_all(&piece)?;
    }
    drop(near);
    let read = reader.join().expect("the reader does not panic")?;
    Ok(read as f64 / begun.elapsed().as_secs_f64())
}

/// The nanoseconds of each durable record, and bytes per second of a long run.
fn on_disk(path: &Path, length: Duration) -> anyhow::Result<(Histogram<u64>, f64)> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    let mut records = Histogram::<u64>::new(3)?;
    let begun = Instant::now();
    while begun.elapsed() < length {
        let written = Instant::now();
        file.write_all(&[b'r'; RECORD_BYTES])?;
        file.sync_data()?;
        records.record(written.elapsed().as_nanos() as u64)?;
    }
    let piece = vec![b'p'; PIECE_BYTES];
    let (begun, mut written) = (Instant::now(), 0);
    while begun.elapsed() < length && written < WRITTEN_BYTES_MAX {
        file.write_all(&piece)?;
        written += piece.len() as u64;
    }
    file.sync_data()?;
    Ok((records, written as f64 / begun.elapsed().as_secs_f64()))
}

impl Report {
    fn json(&self) -> serde_json::Value {
        json!({
            "round_trip_p50_us": self.round_trip_us,
            "loopback_bytes_per_second": self.loopback.round(),
            "durable_records_per_second": self.records_per_second.round(),
            "durable_record_us": { "p50": self.record_us[0], "p99": self.record_us[1] },
            "disk_write_bytes_per_second": self.disk_write.round(),
        })
    }

    fn text(&self) -> String {
        format!(
            "round trip of {MESSAGE_BYTES} bytes over loopback     {:>9.1} us (p50)\n\
             one connection over loopback             {:>9.0} MB/s\n\
             {RECORD_BYTES} bytes appended and made durable       {:>9.0} a second, p50 {:.0} us, p99 {:.0} us\n\
             a long run to the disk, made durable     {:>9.0} MB/s\n",
            self.round_trip_us,
            self.loopback / 1e6,
            self.records_per_second,
            self.record_us[0],
            self.record_us[1],
            self.disk_write / 1e6,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ceiling_is_measured_and_the_file_is_removed() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let report = measure(dir.path(), Duration::from_millis(50))?;
        let figures = [report.round_trip_us, report.loopback, report.records_per_second, report.disk_write];
        assert!(figures.iter().all(|figure| figure.is_finite() && *figure > 0.0), "{figures:?}");
        assert_eq!(dir.path().read_dir()?.count(), 0);
        Ok(())
    }
}
