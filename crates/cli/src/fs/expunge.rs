//! `expunge`: what lies in the trash becomes a checkpoint, and checkpoints that are old enough are deleted.

use super::{failure::Outcome, shell::Shell, shell::home};
use client::{Error, FileSystem};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// Make a checkpoint of the user's trash, and delete checkpoints older than the trash interval.
#[derive(Debug, clap::Args)]
pub struct Expunge {
    /// Delete all checkpoints, however new, and make none.
    #[arg(long)]
    immediate: bool,
}

/// A checkpoint's name, in this machine's time: Hadoop's `yyMMddHHmmss`.
const NAME: &str = "%y%m%d%H%M%S";
/// How it was before 2.8.
const OLD_NAME: &str = "%y%m%d%H%M";
/// Checkpoints of one second.
const SAME_SECOND_MAX: u32 = 1_000;

pub async fn expunge(shell: &mut Shell, args: Expunge) -> Outcome {
    let fs = shell.connect("")?;
    let trash = format!("{}/.Trash", home(&fs));
    let interval_ms = interval_min(shell, &fs).await?.saturating_mul(60_000);
    let now = Timestamp::now();
    if args.immediate {
        return delete_checkpoints(shell, &fs, &trash, i64::MAX).await;
    }
    let before_ms = now.as_millisecond().saturating_sub(interval_ms);
    delete_checkpoints(shell, &fs, &trash, before_ms).await?;
    make_checkpoint(shell, &fs, &trash, now).await
}

/// The server's word counts where it has one, as for `rm`.
async fn interval_min(shell: &Shell, fs: &FileSystem) -> Outcome<i64> {
    let servers = fs.defaults().await?.trash_interval_min;
    if servers > 0 {
        return Ok(i64::try_from(servers).unwrap_or(i64::MAX));
    }
    let interval = shell.config().get("fs.trash.interval");
    Ok(interval.and_then(|text| text.trim().parse::<f64>().ok()).unwrap_or(0.0) as i64)
}

async fn delete_checkpoints(shell: &mut Shell, fs: &FileSystem, trash: &str, before_ms: i64) -> Outcome {
    let mut entries = fs.list(trash);
    loop {
        let entry = match entries.next().await {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if entry.name() == "Current" {
            continue;
        }
        let place = format!("{trash}/{}", entry.name());
        match made_at_ms(entry.name()) {
            None => shell.warn(format!("Unexpected item in trash: {place}. Ignoring.")),
            Some(made_at) if made_at < before_ms => {
                fs.delete(&place, true).await?;
                eprintln!("Deleted trash checkpoint: {place}");
            }
            Some(_) => {}
        }
    }
}

/// When a checkpoint was made. Several of one second have `-1`, `-2` behind the name.
fn made_at_ms(name: &str) -> Option<i64> {
    let (digits, number) = name.split_once('-').unwrap_or((name, "0"));
    number.parse::<u32>().ok()?;
    let format = match digits.len() {
        12 => NAME,
        10 => OLD_NAME,
        _ => return None,
    };
    let at = DateTime::strptime(format, digits).ok()?.to_zoned(TimeZone::system()).ok()?;
    Some(at.timestamp().as_millisecond())
}

async fn make_checkpoint(shell: &mut Shell, fs: &FileSystem, trash: &str, now: Timestamp) -> Outcome {
    let current = format!("{trash}/Current");
    let name = format!("{trash}/{}", now.to_zoned(TimeZone::system()).strftime(NAME));
    for number in 0..SAME_SECOND_MAX {
        let place = if number == 0 { name.clone() } else { format!("{name}-{number}") };
        match fs.rename(&current, &place, false).await {
            Ok(()) => {
                eprintln!("Created trash checkpoint: {place}");
                return Ok(());
            }
            // Nothing was deleted since the last one.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(Error::Fs(base::FsError::AlreadyExists(_))) => {}
            Err(error) => return Err(error.into()),
        }
    }
    shell.warn(format!("{name} and {SAME_SECOND_MAX} names like it are taken"));
    shell.answer_no();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_known_by_their_names() {
        let at = |name: &str| {
            let text = Timestamp::from_millisecond(made_at_ms(name)?).ok()?.to_zoned(TimeZone::system());
            Some(text.strftime("%Y-%m-%d %H:%M:%S").to_string())
        };
        assert_eq!(at("261121073059").as_deref(), Some("2026-11-21 07:30:59"));
        assert_eq!(at("261121073059-2").as_deref(), Some("2026-11-21 07:30:59"));
        assert_eq!(at("2611210730").as_deref(), Some("2026-11-21 07:30:00"));
        for odd in ["Current", "", "-", "2611210730599", "269921073059", "261121073059-x", "2611"] {
            assert_eq!(at(odd), None, "{odd}");
        }
    }
}
