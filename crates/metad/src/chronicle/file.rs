//! The file that the takeovers are kept in.
//!
//! ```text
//!  0  magic "CLOVTKOV"   8  crc32c of bytes 12..   12  version (1)   16  count of takeovers (4)
//! 20  each: epoch (8) · when it was over, ms since 1970 (8) · when each stage was over, in ms: detect, claim,
//!     promise, fence, adopt, sync (6 times 8) · member (4) · length of the trigger (1), the trigger
//! ```
//!
//! Nothing rests on it: whatever is wrong with it, the member starts, and writes another.

use env::{Disk, OpenMode, disk::read_exact_at};
use proto::clover::admin::TakeoverProto;
use std::{io, path::Path};

/// The name of the file, in the metadata directory.
pub const FILE_NAME: &str = "takeovers";
const MAGIC: [u8; 8] = *b"CLOVTKOV";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 20;
/// The bytes of a takeover without its trigger.
const TAKEOVER_BYTES: usize = 69;
pub const TRIGGER_BYTES_MAX: usize = 64;
/// Takeovers remembered.
pub const TAKEOVERS_MAX: usize = 20;
const FILE_BYTES_MAX: usize = HEADER_BYTES + TAKEOVERS_MAX * (TAKEOVER_BYTES + TRIGGER_BYTES_MAX);

/// Encodes at most [`TAKEOVERS_MAX`] takeovers, with triggers of at most [`TRIGGER_BYTES_MAX`] bytes.
pub fn encode(takeovers: &[TakeoverProto]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + takeovers.len() * (TAKEOVER_BYTES + 16));
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(takeovers.len() as u32).to_le_bytes());
    for it in takeovers {
        let stages = [it.detect_ms, it.claim_ms, it.promise_ms, it.fence_ms, it.adopt_ms, it.sync_ms];
        for number in [it.epoch, it.ended_at_ms.unwrap_or(0)].into_iter().chain(stages) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&it.member.unwrap_or(0).to_le_bytes());
        bytes.push(it.trigger.len() as u8);
        bytes.extend_from_slice(it.trigger.as_bytes());
    }
    let crc = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Reads the takeovers from the bytes of such a file.
///
/// # Errors
/// The text says what is wrong: the bytes are cut off, go on too long, have a wrong checksum or an unknown version,
/// tell of too many takeovers, or of epochs that do not rise.
pub fn decode(bytes: &[u8]) -> Result<Vec<TakeoverProto>, String> {
    if bytes.len() < HEADER_BYTES || bytes[..8] != MAGIC {
        return Err(format!("{} bytes that tell of no takeovers", bytes.len()));
    }
    let mut rest = Rest(&bytes[8..]);
    let (written, found) = (rest.u32()?, crc32c::crc32c(&bytes[12..]));
    if written != found {
        return Err(format!("checksum {found:08x} where {written:08x} is written"));
    }
    let version = rest.u32()?;
    if version != VERSION {
        return Err(format!("format version {version} where {VERSION} is known"));
    }
    let count = rest.u32()? as usize;
    if count > TAKEOVERS_MAX {
        return Err(format!("{count} takeovers where {TAKEOVERS_MAX} are the most"));
    }
    let mut takeovers: Vec<TakeoverProto> = Vec::with_capacity(count);
    for _ in 0..count {
        let it = rest.takeover()?;
        if takeovers.last().is_some_and(|last| last.epoch >= it.epoch) {
            return Err(format!("epoch {} does not rise", it.epoch));
        }
        takeovers.push(it);
    }
    match rest.0.len() {
        0 => Ok(takeovers),
        more => Err(format!("{more} bytes too many")),
    }
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }

    fn takeover(&mut self) -> Result<TakeoverProto, String> {
        let mut it = TakeoverProto { epoch: self.u64()?, ..TakeoverProto::default() };
        it.ended_at_ms = Some(self.u64()?);
        let stages = [
            &mut it.detect_ms,
            &mut it.claim_ms,
            &mut it.promise_ms,
            &mut it.fence_ms,
            &mut it.adopt_ms,
            &mut it.sync_ms,
        ];
        for stage in stages {
            *stage = self.u64()?;
        }
        it.member = Some(self.u32()?);
        let length = usize::from(self.take(1)?[0]);
        if length > TRIGGER_BYTES_MAX {
            return Err(format!("a trigger of {length} bytes"));
        }
        it.trigger =
            std::str::from_utf8(self.take(length)?).map_err(|_| "a trigger that is no text")?.to_owned();
        Ok(it)
    }
}

/// No file tells of nothing.
pub fn load(disk: &dyn Disk, directory: &Path) -> Result<Vec<TakeoverProto>, String> {
    let read = || -> io::Result<Option<Vec<u8>>> {
        let path = directory.join(FILE_NAME);
        if !disk.exists(&path)? {
            return Ok(None);
        }
        let file = disk.open(&path, OpenMode::Read)?;
        // One byte beyond the limit is read as well, so that the decoder refuses a longer file.
        let mut bytes = vec![0; file.length()?.min(FILE_BYTES_MAX as u64 + 1) as usize];
        read_exact_at(&*file, &mut bytes, 0)?;
        Ok(Some(bytes))
    };
    match read() {
        Ok(None) => Ok(Vec::new()),
        Ok(Some(bytes)) => decode(&bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Replaces the file.
pub fn store(disk: &dyn Disk, directory: &Path, takeovers: &[TakeoverProto]) -> io::Result<()> {
    let path = directory.join(FILE_NAME);
    let temporary = path.with_extension("tmp");
    let file = disk.open(&temporary, OpenMode::CreateOrTruncate)?;
    file.write_at(&encode(takeovers), 0)?;
    file.sync_data()?;
    disk.rename(&temporary, &path)?;
    disk.sync_directory(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takeover(epoch: u64) -> TakeoverProto {
        TakeoverProto {
            epoch,
            member: Some(3),
            trigger: "process gone".into(),
            detect_ms: 1,
            claim_ms: 2,
            promise_ms: 3,
            fence_ms: 4,
            adopt_ms: 5,
            sync_ms: u64::MAX,
            ended_at_ms: Some(1_763_000_000_000),
        }
    }

    #[test]
    fn what_is_written_reads_back_and_a_flipped_bit_or_a_cut_is_found() {
        let all: Vec<_> = (1..=TAKEOVERS_MAX as u64).map(takeover).collect();
        assert_eq!(decode(&encode(&all)), Ok(all));
        assert_eq!(decode(&encode(&[])), Ok(Vec::new()));
        let good = encode(&[takeover(1), takeover(5)]);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(decode(&bad).is_err(), "byte {at}");
            assert!(decode(&good[..at]).is_err(), "cut to {at}");
        }
    }

    #[test]
    fn what_has_a_right_checksum_may_still_be_wrong() {
        let sealed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = encode(&[takeover(1), takeover(5)]);
            change(&mut bytes);
            let crc = crc32c::crc32c(&bytes[12..]);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            decode(&bytes).unwrap_err()
        };
        assert!(sealed(&|bytes| bytes[12] = 2).contains("format version 2 where 1 is known"));
        assert!(sealed(&|bytes| bytes[16] = 21).contains("21 takeovers where 20 are the most"));
        assert!(sealed(&|bytes| bytes[16] = 3).contains("ends too early"));
        assert!(sealed(&|bytes| bytes[16] = 1).contains("bytes too many"));
        assert!(sealed(&|bytes| bytes[20] = 9).contains("epoch 5 does not rise"));
        assert!(sealed(&|bytes| bytes[88] = 200).contains("a trigger of 200 bytes"));
        assert!(sealed(&|bytes| bytes[89] = 0xff).contains("no text"));
    }
}
