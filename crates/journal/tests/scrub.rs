//! Looking at sealed segments and images again, on a real disk: every flipped byte that matters is found, and mended with
//! the entries of a copy.

use base::{Entry, EntryKind, Epoch, GroupId, MemberId, Sn};
use bytes::Bytes;
use env::Env;
use journal::{Identity, Journal, Look, Sealed, Settings};
use std::{
    path::{Path, PathBuf},
    sync::mpsc,
};

fn open(directory: &Path) -> (Journal, Vec<Entry>) {
    let settings = Settings { segment_bytes: 32 << 10, reserve_bytes: 0, ..Settings::default() };
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
    let identity = Identity { cluster_id: "CID-scrub".into(), group: GroupId(0), member: MemberId(1) };
    journal::format(&Env::production(), directory, &identity).unwrap();
}

/// A log of several segments.
fn written(directory: &Path) -> (Journal, Vec<Entry>) {
    format(directory);
    let (journal, mut all) = open(directory);
    let (sender, receiver) = mpsc::channel();
    for batch in 0..12 {
        let entries: Vec<Entry> = (0..1 + batch % 3)
            .map(|_| {
                let end = all.last().map(Entry::point).unwrap_or_default();
                let payload = Bytes::from(vec![end.id.sn.0 as u8; (end.id.sn.0 as usize * 1_237) % 6_000]);
                let entry = Entry::after(end, Epoch(1), EntryKind::Operation, payload);
                all.push(entry.clone());
                entry
            })
            .collect();
        let sender = sender.clone();
        journal.append(entries, Box::new(move |result| sender.send(result.map(drop)).unwrap())).unwrap();
        receiver.recv().unwrap().unwrap();
    }
    assert!(journal.sealed().len() >= 2, "{:?}", journal.sealed());
    (journal, all)
}

fn look(journal: &Journal, sealed: Sealed) -> Look {
    journal.look_at_segment(sealed, &mut |_| true)
}

fn file_of(directory: &Path, sealed: Sealed) -> PathBuf {
    directory.join("log").join(format!("{:010}-{:020}", sealed.epoch.0, sealed.start.0))
}

fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(file, bytes).unwrap();
}

fn read_all(journal: &Journal) -> Vec<Entry> {
    journal.read(Sn(0), Sn(u64::MAX), 1 << 30).unwrap().1
}

#[test]
fn every_flipped_byte_that_matters_is_found_and_mended() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, all) = written(directory.path());
    for (index, sealed) in journal.sealed().into_iter().enumerate() {
        assert_eq!(look(&journal, sealed), Look::Sound);
        let file = file_of(directory.path(), sealed);
        let (mut rotten, mut harmless) = (0, 0);
        let length = std::fs::metadata(&file).unwrap().len() as usize;
        for at in (index..length).step_by(271).chain([0, 8, 4096, 4100, length - 4096, length - 1]) {
            // A file that was mended before may be shorter now.
            let at = at.min(std::fs::metadata(&file).unwrap().len() as usize - 1);
            flip(&file, at);
            match look(&journal, sealed) {
                Look::Sound => {
                    // Between two batches.
                    assert_eq!(read_all(&journal), all, "byte {at}");
                    flip(&file, at);
                    harmless += 1;
                }
                Look::Rotten(rot) => {
                    assert_eq!(rot.file, file);
                    let (previous, end) = journal.bounds_of(sealed).expect("its neighbours tell");
                    let entries = &all[previous.id.sn.0 as usize..end.id.sn.0 as usize];
                    journal.mend_segment(sealed, entries).unwrap();
                    assert_eq!(look(&journal, sealed), Look::Sound, "byte {at}: {}", rot.what);
                    assert_eq!(read_all(&journal), all, "byte {at}");
                    rotten += 1;
                }
                other => panic!("byte {at}: {other:?}"),
            }
        }
        assert!(rotten > 20 && rotten > harmless, "{rotten} were found, {harmless} did not matter");
    }
    drop(journal);
    assert_eq!(open(directory.path()).1, all);
}

#[test]
fn a_segment_is_mended_with_its_own_entries_only() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, all) = written(directory.path());
    let sealed = journal.sealed()[1];
    let (previous, end) = journal.bounds_of(sealed).unwrap();
    let own = &all[previous.id.sn.0 as usize..end.id.sn.0 as usize];
    let mut other = own.to_vec();
    let last = other.len() - 1;
    other[last] = Entry { payload: Bytes::from_static(b"another"), ..other[last].clone() };
    let fewer = &own[..last];
    let shifted = &all[previous.id.sn.0 as usize - 1..end.id.sn.0 as usize];
    for entries in [&other[..], fewer, shifted, &[]] {
        assert!(journal.mend_segment(sealed, entries).is_err());
    }
    let strange = Sealed { start: Sn(sealed.start.0 + 1), ..sealed };
    assert!(journal.mend_segment(strange, own).is_err() && look(&journal, strange) == Look::Gone);
    assert_eq!(look(&journal, sealed), Look::Sound);
    assert_eq!(journal.look_at_segment(sealed, &mut |_| false), Look::Sound, "it is shorter than a piece");
}

#[test]
fn an_image_is_held_against_its_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, _) = written(directory.path());
    journal.note_commit(journal.end().id.sn);
    let content: Vec<u8> = (0..700_000_u32).map(|n| (n / 3) as u8).collect();
    let checkpoint = journal.write_image(journal.end(), |writer| writer.write(&content)).unwrap();
    assert_eq!(journal.look_at_image(&checkpoint, &mut |_| true), Look::Gone, "it has not committed yet");
    journal.checkpoint_committed(&checkpoint).unwrap();
    let mut bytes = 0;
    let mut pace = |count| {
        bytes += count;
        true
    };
    assert_eq!(journal.look_at_image(&checkpoint, &mut pace), Look::Sound);
    assert_eq!(bytes, content.len() as u64);
    assert_eq!(journal.look_at_image(&checkpoint, &mut |_| false), Look::Ended);
    let file = directory.path().join("images").join(checkpoint.file_name());
    let length = std::fs::metadata(&file).unwrap().len() as usize;
    for at in (0..length).step_by(length / 40).chain([length - 1]) {
        flip(&file, at);
        assert!(matches!(journal.look_at_image(&checkpoint, &mut |_| true), Look::Rotten(_)), "byte {at}");
        flip(&file, at);
    }
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(journal.look_at_image(&checkpoint, &mut |_| true), Look::Rotten(_)));
}
