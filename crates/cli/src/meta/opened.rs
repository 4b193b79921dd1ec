//! Opens a backup, and prints which times it covers.

use env::Env;
use jiff::Timestamp;
use journal::archive::Backup;
use metad::backup::TargetError;
use std::path::Path;

/// A time as `--at` takes it.
pub fn moment(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| ms.to_string(), |time| format!("{time:.3}"))
}

pub fn open(directory: &Path) -> anyhow::Result<Backup> {
    let backup = Backup::open(Env::production().disk, directory)?;
    if let Some(finding) = backup.finding() {
        eprintln!("WARNING: {finding}. The other copy was used.");
    }
    Ok(backup)
}

/// The text of a wanted state that the backup does not have, with times that people can read.
pub fn explained(error: TargetError) -> anyhow::Error {
    let TargetError::Outside { before, after, latest_ms, earliest_ms, .. } = &error else {
        return error.into();
    };
    let mut hints = Vec::new();
    if let Some(ms) = latest_ms {
        hints.push(format!("the last time before that can be restored is {}", moment(*ms)));
    }
    if let Some(ms) = earliest_ms {
        hints.push(format!("the first time behind it is {}", moment(*ms)));
    }
    if let (None, Some(sn)) = (latest_ms, before) {
        hints.push(format!("the last entry before it is {sn}"));
    }
    if let (None, Some(sn)) = (earliest_ms, after) {
        hints.push(format!("the first entry behind it is {sn}"));
    }
    let hints = hints.iter().fold(String::new(), |all, hint| all + "; " + hint);
    anyhow::anyhow!("{error}{hints}. `clover meta backup list` shows all ranges")
}
