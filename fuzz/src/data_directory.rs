//! The files in a data server's directory: VERSION files, file names, and replicas that were interrupted.

use crate::Target;
use base::{BlockId, ChecksumKind};
use blockstore::{
    Checksum, layout, meta_file,
    scanner::cursor::{Cursor, Position},
    version_file::Version,
};
use env::{Disk, OpenMode};
use sim::{Dice, SimDisk};
use std::path::Path;

pub fn targets() -> [Target; 4] {
    [
        Target { name: "data_version", samples: versions, check: check_version },
        Target { name: "scan_cursor", samples: cursors, check: check_cursor },
        Target { name: "replica_name", samples: names, check: check_name },
        Target { name: "interrupted_replica", samples: replicas, check: check_replica },
    ]
}

fn versions() -> Vec<Vec<u8>> {
    vec![
        b"#Sat Nov 21 08:11:21 UTC 2026\nstorageID=DS-1\ncTime=0\nlayoutVersion=-57\n".to_vec(),
        b"blockpoolID=BP-1-127.0.0.1-2\nclusterID=CID\\:\\\\x\nlayoutVersion=-57\n".to_vec(),
    ]
}

fn check_version(bytes: &[u8]) -> bool {
    let disk = SimDisk::new(Dice::new(1));
    let path = Path::new("/d/VERSION");
    disk.put(path, bytes);
    match Version::read(&disk, path) {
        Ok(Some(version)) => version.require_number(path, "layoutVersion").is_ok(),
        _ => false,
    }
}

fn cursors() -> Vec<Vec<u8>> {
    [Position::Start, Position::After(BlockId(u64::MAX)), Position::End]
        .map(|at| Cursor { begun_ms: 1_764_230_400_000, at }.encode().into_bytes())
        .to_vec()
}

fn check_cursor(bytes: &[u8]) -> bool {
    let Ok(cursor) = Cursor::decode(bytes) else { return false };
    assert_eq!(cursor.encode().as_bytes(), bytes, "what is read is what was written");
    true
}

fn names() -> Vec<Vec<u8>> {
    [&b"blk_1073741825"[..], b"blk_-7_1001.meta"].map(<[u8]>::to_vec).to_vec()
}

fn check_name(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|name| layout::parse_name(name).is_some())
}

/// The length of the block file in two bytes, the block file, the meta file.
fn replicas() -> Vec<Vec<u8>> {
    [(ChecksumKind::Crc32c, 512, 700), (ChecksumKind::Crc32, 16, 40), (ChecksumKind::Null, 512, 9)]
        .map(|(kind, bytes_per_checksum, length): (_, _, u16)| {
            let checksum = Checksum { kind, bytes_per_checksum };
            let block: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let sums = block.chunks(bytes_per_checksum as usize);
            let sums = sums.flat_map(|chunk| checksum.sum(chunk)[..checksum.size()].to_vec());
            let meta = meta_file::encode_header(checksum).into_iter().chain(sums);
            length.to_be_bytes().into_iter().chain(block.iter().copied()).chain(meta).collect()
        })
        .to_vec()
}

fn check_replica(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return false };
    let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
    let disk = SimDisk::new(Dice::new(1));
    let (block, meta) = (Path::new("/d/block"), Path::new("/d/meta"));
    disk.put(block, &rest[..length]);
    disk.put(meta, &rest[length..]);
    let open = |path| disk.open(path, OpenMode::Read).expect("it was just put there");
    match meta_file::verified_length(&*open(block), &*open(meta)) {
        Ok(verified) => {
            assert!(verified <= length as u64, "no more is vouched for than is there");
            verified > 0
        }
        Err(_) => false,
    }
}
