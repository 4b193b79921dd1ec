//! The notes of unclean elections that operators have ordered on this member: a line for each.

use env::{Env, OpenMode, disk::read_exact_at};
use std::{io, path::Path};
use thiserror::Error;

/// The name of the file, in the metadata directory.
const AUDIT_FILE: &str = "unclean-elections";
/// More than anybody will ever have.
const AUDIT_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Error)]
#[error("{AUDIT_FILE} could not be written or read")]
pub struct AuditError(#[from] pub io::Error);

/// Notes an order, durably.
pub fn append(env: &Env, directory: &Path, line: &str) -> Result<(), AuditError> {
    let path = directory.join(AUDIT_FILE);
    let is_new = !env.disk.exists(&path)?;
    let mode = if is_new { OpenMode::CreateNew } else { OpenMode::ReadWrite };
    let file = env.disk.open(&path, mode)?;
    file.write_at(line.as_bytes(), file.length()?)?;
    file.sync_data()?;
    if is_new {
        env.disk.sync_directory(directory)?;
    }
    Ok(())
}

/// How many such orders this member has noted.
pub fn count(env: &Env, directory: &Path) -> Result<u64, AuditError> {
    let path = directory.join(AUDIT_FILE);
    if !env.disk.exists(&path)? {
        return Ok(0);
    }
    let file = env.disk.open(&path, OpenMode::Read)?;
    let mut bytes = vec![0; file.length()?.min(AUDIT_BYTES_MAX) as usize];
    read_exact_at(&*file, &mut bytes, 0)?;
    Ok(bytes.iter().filter(|byte| **byte == b'\n').count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_a_line_that_stays() {
        let directory = tempfile::tempdir().unwrap();
        let env = Env::production();
        assert_eq!(count(&env, directory.path()).unwrap(), 0);
        append(&env, directory.path(), "first\n").unwrap();
        append(&env, directory.path(), "second\n").unwrap();
        assert_eq!(count(&env, directory.path()).unwrap(), 2);
        let file = env.disk.open(&directory.path().join(AUDIT_FILE), OpenMode::Read).unwrap();
        let mut text = vec![0; file.length().unwrap() as usize];
        read_exact_at(&*file, &mut text, 0).unwrap();
        assert_eq!(text, b"first\nsecond\n");
    }
}
