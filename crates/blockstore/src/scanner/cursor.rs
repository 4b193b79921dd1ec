//! The file in which a volume keeps how far the block scanner has come with a pool.
//!
//! ```text
//! clover-scan-cursor=1
//! begun_ms=1764230400000
//! after=1073741825          the block scanned last; `start` for none, `end` for a round that is complete
//! crc32c=89abcdef           of all bytes before this line
//! ```
//!
//! It lies beside the pool's `VERSION`, where a Hadoop DataNode has a `scanner.cursor` of its own and minds no other file.

use crate::layout::PoolPaths;
use base::BlockId;
use env::{Disk, OpenMode, disk::read_exact_at};
use std::{io, path::PathBuf};

pub const CURSOR_FILE: &str = "clover-scan.cursor";

/// Much more than the lines take.
const LENGTH_MAX: u64 = 4096;

const FIRST_LINE: &str = "clover-scan-cursor=1\n";

/// How far a round over the replicas of one pool on one volume has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// When the round began, ms since 1970.
    pub begun_ms: u64,
    pub at: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Start,
    /// This block was scanned last. Blocks are scanned in the order of their ids.
    After(BlockId),
    /// All were scanned. The next round begins when its time has come.
    End,
}

impl Cursor {
    pub fn encode(self) -> String {
        let at = match self.at {
            Position::Start => "start".into(),
            Position::After(id) => (id.0 as i64).to_string(),
            Position::End => "end".into(),
        };
        let text = format!("{FIRST_LINE}begun_ms={}\nafter={at}\n", self.begun_ms);
        let sum = crc32c::crc32c(text.as_bytes());
        format!("{text}crc32c={sum:08x}\n")
    }

    /// # Errors
    /// `InvalidData` if the bytes are not exactly what [`Cursor::encode`] gives.
    pub fn decode(bytes: &[u8]) -> io::Result<Self> {
        Self::parse(bytes)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is damaged, or of a later release"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.strip_prefix(FIRST_LINE)?.lines();
        let begun_ms = lines.next()?.strip_prefix("begun_ms=")?.parse().ok()?;
        let at = match lines.next()?.strip_prefix("after=")? {
            "start" => Position::Start,
            "end" => Position::End,
            id => Position::After(BlockId(id.parse::<i64>().ok()? as u64)),
        };
        let cursor = Self { begun_ms, at };
        (cursor.encode().as_bytes() == bytes).then_some(cursor)
    }

    /// Reads the cursor; `None` if there is none.
    ///
    /// # Errors
    /// `InvalidData` if it is damaged; or the file cannot be read.
    pub fn read(disk: &dyn Disk, pool: &PoolPaths) -> io::Result<Option<Self>> {
        let file = match disk.open(&path(pool), OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.length()?.min(LENGTH_MAX);
        let mut bytes = vec![0; length as usize];
        read_exact_at(&*file, &mut bytes, 0)?;
        Self::decode(&bytes).map(Some)
    }

    /// Replaces the file: a crash leaves the old one or the new one, or a damaged one, which begins a new round.
    ///
    /// # Errors
    /// The file cannot be written, synced or renamed.
    pub fn write(self, disk: &dyn Disk, pool: &PoolPaths) -> io::Result<()> {
        let path = path(pool);
        let fresh = path.with_extension("tmp");
        let file = disk.open(&fresh, OpenMode::CreateOrTruncate)?;
        file.write_at(self.encode().as_bytes(), 0)?;
        file.sync_data()?;
        disk.rename(&fresh, &path)
    }
}

fn path(pool: &PoolPaths) -> PathBuf {
    pool.current().join(CURSOR_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back() {
        let old_cluster = BlockId(-7i64 as u64);
        for at in [
            Position::Start,
            Position::After(BlockId(1_073_741_825)),
            Position::After(old_cluster),
            Position::End,
        ] {
            let cursor = Cursor { begun_ms: 1_764_230_400_000, at };
            assert_eq!(Cursor::decode(cursor.encode().as_bytes()).unwrap(), cursor);
        }
    }

    #[test]
    fn a_cursor_with_any_byte_changed_or_cut_off_is_none() {
        let bytes = Cursor { begun_ms: 5, at: Position::After(BlockId(9)) }.encode().into_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Cursor::decode(&changed).is_err(), "byte {at} is another");
            assert!(Cursor::decode(&bytes[..at]).is_err(), "only {at} bytes");
        }
        assert!(Cursor::decode(&[bytes, b"\n".to_vec()].concat()).is_err());
    }
}
