//! The files in a member's store: segments, images, its state, and the payloads that the store itself reads.

use crate::Target;
use base::{Entry, EntryKind, Epoch, GroupId, LogPoint, MemberId, MemberLife, MemberStore, Sn};
use bytes::Bytes;
use env::{Disk, Env, OpenMode};
use group::EpochStart;
use journal::{
    Checkpoint, Identity, ImageReader, Journal, MemberState, Settings,
    block::{Footer, SegmentHeader},
    record::{self, encode_batch},
    scan::scan,
    watermark::Slot,
};
use sim::{Dice, SimClock, SimDisk, SimRandom};
use std::{
    convert::Infallible,
    io::Read,
    path::Path,
    sync::{Arc, OnceLock},
};

const GROUP: GroupId = GroupId(0);

pub fn targets() -> [Target; 9] {
    [
        Target { name: "journal_segment", samples: segments, check: check_segment },
        Target { name: "journal_segment_resealed", samples: segments, check: check_resealed },
        Target { name: "image_container", samples: images, check: check_image },
        Target { name: "journal_read", samples: written_segments, check: check_read },
        Target { name: "staged_image", samples: staged, check: check_staged },
        Target {
            name: "commit_slot",
            samples: || vec![commit_slot().encode().to_vec()],
            check: |bytes| Slot::decode(bytes).is_some(),
        },
        Target { name: "member_state", samples: states, check: |bytes| MemberState::decode(bytes).is_ok() },
        Target {
            name: "checkpoint",
            samples: checkpoints,
            check: |bytes| Checkpoint::decode(bytes).is_some(),
        },
        Target {
            name: "epoch_start",
            samples: epoch_starts,
            check: |bytes| EpochStart::decode(bytes).is_some(),
        },
    ]
}

fn segments() -> Vec<Vec<u8>> {
    [true, false].map(segment).to_vec()
}

fn segment(sealed: bool) -> Vec<u8> {
    let allocated = 4096 * 5;
    let header = SegmentHeader {
        version: 1,
        group: GROUP,
        epoch: Epoch(1),
        previous: LogPoint::default(),
        store_uuid: [1; 16],
        allocated,
    };
    let mut bytes = header.encode();
    let (mut end, mut count) = (LogPoint::default(), 0);
    for payloads in [&[&b"one"[..], b"", b"three"][..], &[&[7; 600]]] {
        let mut entries = Vec::new();
        for payload in payloads {
            let entry = Entry::after(end, Epoch(1), EntryKind::Operation, Bytes::copy_from_slice(payload));
            end = entry.point();
            count += 1;
            entries.push(entry);
        }
        bytes.extend_from_slice(&encode_batch(&entries, GROUP, Sn(count - entries.len() as u64)));
    }
    if sealed {
        let offset = bytes.len() as u64;
        bytes.extend_from_slice(&Footer { version: 1, group: GROUP, end, count, offset }.encode());
    } else {
        bytes.resize(allocated as usize, 0);
    }
    bytes
}

fn check_segment(bytes: &[u8]) -> bool {
    let mut last = LogPoint::default();
    let result = scan(&Bytes::copy_from_slice(bytes), GROUP, Some(last), |_, entry| {
        assert_eq!(entry.previous_chain, last.chain, "entries follow each other");
        assert_eq!(entry.id.sn.0, last.id.sn.0 + 1, "entries follow each other");
        last = entry.point();
        Ok::<_, Infallible>(())
    });
    result.is_ok()
}

/// Checks a segment whose checksums were made right, as an attacker could who knows the format.
fn check_resealed(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    reseal_block(&mut bytes, 0);
    let mut at = 4096;
    while at + record::HEADER_BYTES <= bytes.len() {
        if bytes[at..].starts_with(b"CLRE") {
            let length = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().expect("four bytes")) as usize;
            let end = at.saturating_add(record::record_bytes(length.min(1 << 30)));
            if end <= bytes.len() {
                bytes[at + 63] = 0xA5;
                bytes[end - 1] = 0xA5;
                let crc = crc32c::crc32c(&bytes[at + 64..end]);
                bytes[at + 52..at + 56].copy_from_slice(&crc.to_le_bytes());
            }
            let crc = crc32c::crc32c(&bytes[at + 8..at + 64]);
            bytes[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
            at = end.min(bytes.len());
        } else if at.is_multiple_of(4096) && bytes[at..].starts_with(b"CLOVSEAL") {
            reseal_block(&mut bytes, at);
            at += 4096;
        } else {
            at += 8;
        }
    }
    check_segment(&bytes)
}

fn reseal_block(bytes: &mut [u8], at: usize) {
    if bytes.len() >= at + 4096 {
        let crc = crc32c::crc32c(&bytes[at + 12..at + 4096]);
        bytes[at + 8..at + 12].copy_from_slice(&crc.to_le_bytes());
    }
}

fn world() -> (Env, SimDisk) {
    let disk = SimDisk::new(Dice::new(1));
    let env = Env {
        clock: Arc::new(SimClock::new()),
        disk: Arc::new(disk.clone()),
        random: Arc::new(SimRandom::new(Dice::new(2))),
        descriptors: Arc::new(env::Descriptors::new(1 << 20)),
    };
    (env, disk)
}

fn images() -> Vec<Vec<u8>> {
    let (env, disk) = world();
    let store = Path::new("/s");
    let identity = Identity { cluster_id: "CID-fuzz".into(), group: GROUP, member: base::MemberId(1) };
    journal::format(&env, store, &identity).expect("a fresh disk");
    let settings = Settings { segment_bytes: 16 << 10, ..Settings::default() };
    let (journal, _) =
        journal::open(&env, store, settings).expect("just made").replay(|_| Ok(())).expect("empty");
    [&b"inodes"[..], &[5; 3000]]
        .iter()
        .map(|content| {
            let at = LogPoint {
                id: base::TxId { epoch: Epoch(1), sn: Sn(content.len() as u64) },
                ..LogPoint::default()
            };
            let image = journal.write_image(at, |writer| writer.write(content)).expect("the disk is well");
            let path = store.join("images").join(image.file_name());
            disk.files().into_iter().find(|(name, _)| *name == path).expect("just written").1
        })
        .collect()
}

fn check_image(bytes: &[u8]) -> bool {
    let (_, disk) = world();
    disk.put(Path::new("/image"), bytes);
    let Ok(file) = disk.open(Path::new("/image"), OpenMode::Read) else { return false };
    let Ok(mut reader) = ImageReader::open(file) else { return false };
    let mut content = Vec::new();
    reader.read_to_end(&mut content).is_ok() && reader.finish().is_ok()
}

const STORE: &str = "/s";

fn open_store(env: &Env) -> Journal {
    let settings = Settings { segment_bytes: 16 << 10, ..Settings::default() };
    let recovery = journal::open(env, Path::new(STORE), settings).expect("just made");
    recovery.replay(|_| Ok(())).expect("undamaged").0
}

/// A world on a copy of what `make` has made once.
fn world_of(once: &OnceLock<SimDisk>, make: impl FnOnce() -> SimDisk) -> (Env, SimDisk) {
    let disk = once.get_or_init(make).copy();
    (Env { disk: Arc::new(disk.clone()), ..world().0 }, disk)
}

/// The first segment of [`written`].
const SEALED: &str = "/s/log/0000000001-00000000000000000001";

fn written_segments() -> Vec<Vec<u8>> {
    let file = written().1.files().into_iter().find(|(path, _)| path == Path::new(SEALED));
    vec![file.expect("sealed by the second start").1]
}

/// A store with a sealed segment and an open one.
fn written() -> (Env, SimDisk) {
    static DISK: OnceLock<SimDisk> = OnceLock::new();
    world_of(&DISK, write)
}

fn write() -> SimDisk {
    let (env, disk) = world();
    let identity = Identity { cluster_id: "CID-fuzz".into(), group: GROUP, member: base::MemberId(1) };
    journal::format(&env, Path::new(STORE), &identity).expect("a fresh disk");
    let append = |journal: &Journal, payload: &[u8]| {
        let payload = Bytes::copy_from_slice(payload);
        let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, payload);
        journal.append(vec![entry], Box::new(|_| ())).expect("it follows");
        disk.complete_all();
    };
    let journal = open_store(&env);
    for payload in [&b"one"[..], b"", &[7; 600]] {
        append(&journal, payload);
    }
    drop(journal);
    append(&open_store(&env), b"four");
    disk.crash(sim::Loss::Nothing);
    disk
}

/// The segment changes after the store was opened.
fn check_read(bytes: &[u8]) -> bool {
    let (env, disk) = written();
    let journal = open_store(&env);
    disk.put(Path::new(SEALED), bytes);
    let mut last = LogPoint::default();
    while let Ok((point, entries)) = journal.read(last.id.sn, Sn(u64::MAX), 1 << 20) {
        assert_eq!(point.id.sn, last.id.sn, "the answer says what it follows");
        for entry in &entries {
            assert_eq!(entry.id.sn.0, last.id.sn.0 + 1, "entries follow each other");
            last = entry.point();
        }
        if entries.is_empty() {
            return last.id.sn == Sn(4);
        }
    }
    false
}

/// The beginnings of an image, as an interrupted fetch leaves them.
fn staged() -> Vec<Vec<u8>> {
    let image = images().pop().expect("there are two");
    [0, 64, 100, image.len()].map(|length| image[..length].to_vec()).to_vec()
}

/// The staged file may hold any bytes; the fetch goes on with the true ones.
fn check_staged(bytes: &[u8]) -> bool {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    let image = IMAGE.get_or_init(|| images().pop().expect("there are two"));
    let (env, disk) = written();
    let journal = open_store(&env);
    disk.put(Path::new("/image"), image);
    let file = disk.open(Path::new("/image"), OpenMode::Read).expect("just put");
    let reader = ImageReader::open(file).expect("it is one");
    let at = reader.header().at;
    let sha256 = reader.finish().expect("it is whole");
    let checkpoint = Checkpoint { at, file_bytes: image.len() as u64, sha256 };
    drop(journal.stage(checkpoint).expect("nothing is staged yet"));
    disk.put(&Path::new(STORE).join("staging/image"), bytes);
    let mut staged = journal.stage(checkpoint).expect("the disk is well");
    assert!(staged.have() <= bytes.len() as u64);
    let have = staged.have() as usize;
    staged.write_chunk(have as u64, &image[have..]).expect("these are the next bytes");
    let Ok(kept) = staged.finish() else { return false };
    journal.keep_image(kept).expect("the disk is well");
    let path = Path::new(STORE).join("images").join(checkpoint.file_name());
    let found = disk.files().into_iter().find(|(name, _)| *name == path).expect("just kept").1;
    assert!(found == *image, "what passes the digest is the image");
    true
}

fn commit_slot() -> Slot {
    Slot { store_uuid: [3; 16], generation: 1, sn: Sn(77), writes: 4 }
}

fn sample_checkpoint() -> Checkpoint {
    let id = base::TxId { epoch: Epoch(1), sn: Sn(9) };
    Checkpoint { at: LogPoint { id, chain: base::Chain(4) }, file_bytes: 1000, sha256: [6; 32] }
}

fn checkpoints() -> Vec<Vec<u8>> {
    vec![sample_checkpoint().encode().to_vec()]
}

fn epoch_starts() -> Vec<Vec<u8>> {
    let start = EpochStart {
        epoch: Epoch(2),
        previous: sample_checkpoint().at,
        id_steps: Default::default(),
        is_unclean: true,
        keeps_skipped: true,
        leader: None,
    };
    let store = MemberStore { member: MemberId(3), generation: 1 };
    let led = EpochStart { leader: Some(MemberLife { store, boot: 4 }), ..start };
    // Also as it was before there were flags.
    let mut without_flags = start.encode().to_vec();
    without_flags.truncate(57);
    without_flags[0] = 1;
    vec![start.encode().to_vec(), led.encode().to_vec(), without_flags]
}

/// The state's file with its checksum made right is the state's own business; here the raw file.
fn states() -> Vec<Vec<u8>> {
    let (env, disk) = world();
    let identity = Identity { cluster_id: "CID-fuzz".into(), group: GROUP, member: base::MemberId(1) };
    journal::format(&env, Path::new("/s"), &identity).expect("a fresh disk");
    disk.files()
        .into_iter()
        .filter(|(path, _)| path.starts_with("/s/member.0"))
        .map(|(_, bytes)| bytes)
        .collect()
}
