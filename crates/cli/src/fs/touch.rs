//! `touchz` and `touch`: empty files and times.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
};
use client::CreateOptions;
use jiff::{civil::DateTime, tz::TimeZone};
use std::time::{SystemTime, UNIX_EPOCH};

/// Make empty files.
#[derive(Debug, clap::Args)]
pub struct Touchz {
    /// The files to make.
    #[arg(required = true)]
    paths: Vec<String>,
}

/// Set the times of files to now, and make those that are missing.
#[derive(Debug, clap::Args)]
pub struct Touch {
    /// Change the time of access only.
    #[arg(short = 'a')]
    access: bool,
    /// Change the time of modification only.
    #[arg(short = 'm')]
    modification: bool,
    /// The time to set, as 20261121:073059.
    #[arg(short = 't', value_name = "yyyyMMdd:HHmmss")]
    time: Option<String>,
    /// Make no files.
    #[arg(short = 'c')]
    no_create: bool,
    /// The files.
    #[arg(required = true)]
    paths: Vec<String>,
}

pub async fn touchz(shell: &mut Shell, args: Touchz) -> Outcome {
    for item in shell.expand_all(&args.paths).await {
        let outcome = make_empty(&item).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn make_empty(item: &Item) -> Outcome {
    match &item.status {
        Some(status) if status.is_dir() => return Err(Failure::is_directory(&item.shown)),
        Some(status) if status.length != 0 => {
            return Err(Failure::path(&item.shown, "Not a zero-length file"));
        }
        Some(_) => {}
        None if item.parent_exists().await? => {}
        None => return Err(Failure::not_found_in_full(&item.shown, &item.uri())),
    }
    let options = CreateOptions { overwrite: true, ..Default::default() };
    item.fs.create(&item.path, &options).await?.close().await?;
    Ok(())
}

pub async fn touch(shell: &mut Shell, args: Touch) -> Outcome {
    let time = match &args.time {
        None => None,
        Some(text) => Some(parse(text).ok_or_else(|| {
            let reason = format!(
                "Unable to parse the specified timestamp {text}. The expected format is yyyyMMdd:HHmmss"
            );
            Failure::Usage(reason)
        })?),
    };
    for item in shell.expand_all(&args.paths).await {
        let outcome = touch_one(&args, time, &item).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn touch_one(args: &Touch, time: Option<u64>, item: &Item) -> Outcome {
    if !item.exists() {
        if args.no_create {
            return Ok(());
        }
        make_empty(item).await?;
        if time.is_none() {
            return Ok(());
        }
    }
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let time = time.unwrap_or_else(now);
    let (modification, access) = match (args.modification, args.access) {
        (true, false) => (Some(time), None),
        (false, true) => (None, Some(time)),
        _ => (Some(time), Some(time)),
    };
    item.fs.set_times(&item.path, modification, access).await?;
    Ok(())
}

/// Milliseconds since 1970 of a local time.
fn parse(text: &str) -> Option<u64> {
    let civil = DateTime::strptime("%Y%m%d:%H%M%S", text).ok()?;
    let zoned = civil.to_zoned(TimeZone::system()).ok()?;
    u64::try_from(zoned.timestamp().as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_printed() {
        let ms = parse("20260102:030405").unwrap();
        assert_eq!(super::super::format::second(ms), "2026-01-02 03:04:05");
        for text in ["", "2026", "20261302:000000", "20260102:0304056"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
