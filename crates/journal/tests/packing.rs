//! Sealed segments are packed: entries that came one by one take no more room on the disk than they need.

use base::{Entry, EntryKind, Epoch, GroupId, MemberId, Sn};
use bytes::Bytes;
use env::Env;
use journal::{Identity, Journal, Look, Settings};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
};

/// Room for 254 entries that come one by one, and for several marks by which a reader finds its place.
const SEGMENT_BYTES: u64 = 1 << 20;

fn open(directory: &Path) -> (Journal, Vec<Entry>) {
    let settings = Settings { segment_bytes: SEGMENT_BYTES, reserve_bytes: 0, ..Settings::default() };
    let mut recovery = journal::open(&Env::production(), directory, settings).unwrap();
    recovery.load_image(|_| Ok(())).unwrap();
    let mut entries = Vec::new();
    let (journal, recovered) = recovery
        .replay(|entry| {
            entries.push(entry);
            Ok(())
        })
        .unwrap();
    assert_eq!(recovered.findings, []);
    entries.extend(recovered.tail);
    (journal, entries)
}

fn format(directory: &Path) {
    let identity = Identity { cluster_id: "CID-pack".into(), group: GroupId(0), member: MemberId(1) };
    journal::format(&Env::production(), directory, &identity).unwrap();
}

/// Appends entries of so many bytes, each synced before the next is given.
fn append_one_by_one(journal: &Journal, count: usize, bytes: usize, all: &mut Vec<Entry>) {
    let (sender, receiver) = mpsc::channel();
    for _ in 0..count {
        let payload = Bytes::from(vec![all.len() as u8; bytes]);
        let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, payload);
        all.push(entry.clone());
        let sender = sender.clone();
        journal.append(vec![entry], Box::new(move |result| sender.send(result.map(drop)).unwrap())).unwrap();
        receiver.recv().unwrap().unwrap();
    }
}

fn read_all(journal: &Journal) -> Vec<Entry> {
    journal.read(Sn(0), Sn(u64::MAX), 1 << 30).unwrap().1
}

/// Bytes of the segments that are written no more.
fn sealed_bytes(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory.join("log")).unwrap().map(|file| file.unwrap());
    let is_sealed = |name: &str| name.contains('-') && !name.ends_with(".open");
    files
        .filter(|file| is_sealed(file.file_name().to_str().unwrap()))
        .map(|file| file.metadata().unwrap().len())
        .sum()
}

fn pack_all(journal: &Journal) -> usize {
    std::iter::from_fn(|| journal.pack_segment().unwrap()).count()
}

#[test]
fn entries_that_came_one_by_one_keep_no_block_each() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let (journal, mut all) = open(directory.path());
    append_one_by_one(&journal, 600, 130, &mut all);
    let sealed = journal.sealed();
    assert_eq!(sealed.len(), 2);
    let before = sealed_bytes(directory.path());
    assert!(before > 2 * 250 * 4096, "{before} bytes before");
    assert_eq!(read_all(&journal), all, "marks of the files as they are now");

    assert_eq!(pack_all(&journal), sealed.len());
    let after = sealed_bytes(directory.path());
    // 200 bytes an entry, and a header, a footer and half a block for each file.
    assert!(after < 510 * 210 + sealed.len() as u64 * 3 * 4096, "{after} bytes after, {before} before");
    assert_eq!(read_all(&journal), all, "the old marks are not used");
    for at in [0, 1, 63, 64, 65, 100, 140, 200, 253, 254, 255, 400, 508, 509] {
        let (point, entries) = journal.read(Sn(at), Sn(at + 3), 1 << 20).unwrap();
        assert_eq!((point.id.sn, &entries[..]), (Sn(at), &all[at as usize..][..3]));
    }
    assert!(sealed.iter().all(|sealed| journal.look_at_segment(*sealed, &mut |_| true) == Look::Sound));
    assert_eq!(pack_all(&journal), 0, "each is looked at once");

    // Later appends and the next start find a log like any other.
    append_one_by_one(&journal, 260, 130, &mut all);
    assert_eq!(read_all(&journal), all);
    drop(journal);
    let (journal, found) = open(directory.path());
    assert_eq!(found, all);
    assert_eq!(pack_all(&journal), 2, "that of the last life, and the one that the start has sealed");
    assert_eq!(read_all(&journal), all);
}

#[test]
fn a_segment_that_is_full_of_entries_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let (journal, mut all) = open(directory.path());
    append_one_by_one(&journal, 520, 3_000, &mut all);
    let before = sealed_bytes(directory.path());
    assert!(journal.sealed().len() >= 2);
    assert_eq!((pack_all(&journal), sealed_bytes(directory.path())), (0, before));
    assert_eq!(read_all(&journal), all);
}

#[test]
fn who_reads_meanwhile_finds_every_entry() {
    let directory = tempfile::tempdir().unwrap();
    format(directory.path());
    let (journal, mut all) = open(directory.path());
    append_one_by_one(&journal, 1_300, 130, &mut all);
    let (all, is_done) = (Arc::new(all), Arc::new(AtomicBool::new(false)));
    let readers: Vec<_> = (0..3)
        .map(|number| {
            let (journal, all, is_done) = (journal.clone(), all.clone(), is_done.clone());
            std::thread::spawn(move || {
                let (mut at, mut reads) = (number * 400, 0);
                while !is_done.load(Ordering::Acquire) || reads == 0 {
                    let (point, entries) = journal.read(Sn(at), Sn(at + 40), 1 << 20).unwrap();
                    assert_eq!(point.id.sn, Sn(at));
                    assert_eq!(entries[..], all[at as usize..at as usize + 40]);
                    at = (at + 131) % 1_250;
                    reads += 1;
                }
                reads
            })
        })
        .collect();
    let packed = pack_all(&journal);
    is_done.store(true, Ordering::Release);
    for reader in readers {
        assert!(reader.join().unwrap() > 0);
    }
    assert_eq!(packed, 5);
    assert_eq!(read_all(&journal), *all);
}
