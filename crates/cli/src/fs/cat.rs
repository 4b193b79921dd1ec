//! `cat`, `head` and `tail`: what is in a file, to the standard output.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    local,
    shell::Shell,
};
use client::FileReader;
use std::{io::Read, time::Duration};

/// Bytes that `head` and `tail` show.
const PART_BYTES: u64 = 1024;

/// Bytes that are handed to the output at once, at most.
const CHUNK_BYTES: usize = 1 << 20;

/// Print files.
#[derive(Debug, clap::Args)]
pub struct Cat {
    /// Accepted for scripts; what is read is always verified.
    #[arg(long)]
    pub ignore_crc: bool,
    /// The files to print.
    #[arg(required = true)]
    pub paths: Vec<String>,
}

/// Print the first KiB of a file.
#[derive(Debug, clap::Args)]
pub struct Head {
    /// The file.
    path: String,
}

/// Print the last KiB of a file.
#[derive(Debug, clap::Args)]
pub struct Tail {
    /// Go on printing what is added, until interrupted.
    #[arg(short)]
    follow: bool,
    /// With -f: look for more after so many milliseconds.
    #[arg(short, default_value_t = 5_000, value_name = "MILLISECONDS")]
    sleep_ms: u64,
    /// The file.
    path: String,
}

pub async fn cat(shell: &mut Shell, args: Cat) -> Outcome {
    print_each(shell, &args.paths, print_local, print).await
}

/// Prints the files that `paths` name: those of this machine by `print_local`, the others by `print`. A failure of one is
/// told, and does not keep the others from being printed.
pub async fn print_each(
    shell: &mut Shell,
    paths: &[String],
    print_local: impl Fn(&mut Shell, &str) -> Outcome,
    print: impl AsyncFn(&mut Shell, &Item) -> Outcome,
) -> Outcome {
    for path in paths {
        if local::is_uri(path) {
            let outcome = print_local(shell, path);
            shell.check(outcome);
            continue;
        }
        let items = shell.expand(path).await;
        for item in shell.check(items).unwrap_or_default() {
            let outcome = print(shell, &item).await;
            shell.check(outcome);
        }
    }
    Ok(())
}

/// A file of this machine, written as `file:///a`.
fn print_local(shell: &mut Shell, argument: &str) -> Outcome {
    pour_local(shell, argument, local::open_uri(argument)?)
}

/// Prints the rest of a local file as it is.
pub fn pour_local(shell: &mut Shell, argument: &str, mut file: impl Read) -> Outcome {
    let mut piece = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut piece).map_err(|error| Failure::local(argument, error))? {
            0 => return Ok(()),
            count => shell.write(&piece[..count])?,
        }
    }
}

async fn print(shell: &mut Shell, item: &Item) -> Outcome {
    item.file()?;
    let mut reader = item.fs.open(&item.path).await?;
    pour(shell, &mut reader, u64::MAX).await
}

pub async fn head(shell: &mut Shell, args: Head) -> Outcome {
    let item = shell.look_up(&args.path).await?;
    item.file()?;
    let mut reader = item.fs.open(&item.path).await?;
    pour(shell, &mut reader, PART_BYTES).await
}

pub async fn tail(shell: &mut Shell, args: Tail) -> Outcome {
    let item = shell.look_up(&args.path).await?;
    item.file()?;
    let mut position = None;
    loop {
        let mut reader = item.fs.open(&item.path).await?;
        let from = position.unwrap_or(reader.length().saturating_sub(PART_BYTES));
        // A file that became shorter was written anew.
        reader.seek(from.min(reader.length()))?;
        pour(shell, &mut reader, u64::MAX).await?;
        position = Some(reader.position());
        if !args.follow {
            return Ok(());
        }
        shell.flush()?;
        tokio::time::sleep(Duration::from_millis(args.sleep_ms.max(1))).await;
    }
}

/// Prints at most `count_max` bytes from where the reader is.
pub async fn pour(shell: &mut Shell, reader: &mut FileReader, mut count_max: u64) -> Outcome {
    while count_max > 0
        && let Some(bytes) =
            reader.read(CHUNK_BYTES.min(usize::try_from(count_max).unwrap_or(CHUNK_BYTES))).await?
    {
        count_max -= bytes.len() as u64;
        shell.write(&bytes)?;
    }
    Ok(())
}
