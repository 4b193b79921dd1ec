//! Yesterday's files open: a store written by an earlier version is kept here and must always read the same.
//!
//! A new format version adds a fixture; it never replaces one. To write one:
//! `cargo test -p clover-journal --test yesterday -- --ignored`.

use base::{Entry, EntryKind, Epoch, GroupId, Level, LogPoint, MemberId};
use bytes::Bytes;
use env::Env;
use journal::{Identity, Journal, Recovered, Settings};
use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::mpsc,
};

const SETTINGS: Settings = Settings {
    segment_bytes: 16 << 10,
    flights_max: 2,
    batch_bytes_max: 1 << 20,
    waiting_bytes_max: 16 << 20,
    reserve_bytes: 0,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn append(journal: &Journal, epoch: u64, kind: EntryKind, payload: Bytes) -> LogPoint {
    let entry = Entry::after(journal.end(), Epoch(epoch), kind, payload);
    let point = entry.point();
    let (sender, receiver) = mpsc::channel();
    journal.append(vec![entry], Box::new(move |result| sender.send(result.map(drop)).unwrap())).unwrap();
    receiver.recv().unwrap().unwrap();
    point
}

#[test]
fn a_store_of_version_1_opens() {
    opens("store-1", "2417cf185d2a701e");
}

/// Its member's state is of version 2, and there is a file `commit`.
#[test]
fn a_store_of_version_2_opens() {
    let recovered = opens("store-2", "0fd3fcebac71995f");
    assert_eq!((recovered.base.id.to_string().as_str(), recovered.tail.len()), ("2-7", 1));
}

/// A file `promise` beside it knows of a promise that its member's state does not.
#[test]
fn a_store_of_version_3_opens() {
    let recovered = opens("store-3", "01216773b059ce20");
    assert_eq!((recovered.base.id.to_string().as_str(), recovered.tail.len()), ("2-7", 1));
}

/// Its group is at the second level.
#[test]
fn a_store_of_version_4_opens() {
    let recovered = opens("store-4", "4f9abf7c76e7592d");
    assert_eq!((recovered.base.id.to_string().as_str(), recovered.tail.len()), ("2-7", 1));
    let directory = tempfile::tempdir().unwrap();
    copy(&fixture("store-4"), directory.path());
    let recovery = journal::open(&Env::production(), directory.path(), SETTINGS).unwrap();
    assert_eq!(recovery.state().level, Level(2));
}

/// The end of its log depends on the image, which names the store that made it.
fn opens(name: &str, end: &str) -> Recovered {
    let directory = tempfile::tempdir().unwrap();
    copy(&fixture(name), directory.path());
    let env = Env::production();
    let mut recovery = journal::open(&env, directory.path(), SETTINGS).unwrap();
    let state = recovery.state().clone();
    assert_eq!(state.identity.cluster_id, "CID-yesterday");
    assert_eq!((state.identity.group, state.identity.member), (GroupId(7), MemberId(3)));
    assert_eq!((state.promised, state.boot), (Epoch(2), 2));
    let (at, image) = recovery
        .load_image(|reader| {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        })
        .unwrap()
        .expect("it has an image");
    assert_eq!((at.id.to_string().as_str(), image.as_str()), ("1-3", "everything up to three"));
    let mut entries = Vec::new();
    let line = |entry: &Entry| (entry.id.to_string(), entry.kind, entry.payload.len());
    let (journal, recovered) = recovery
        .replay(|entry| {
            entries.push(line(&entry));
            Ok(())
        })
        .unwrap();
    entries.extend(recovered.tail.iter().map(line));
    assert_eq!(recovered.findings, []);
    let expected = [
        ("1-4", EntryKind::Checkpoint, 65),
        ("1-5", EntryKind::Operation, 5000),
        ("1-6", EntryKind::Operation, 5000),
        ("2-7", EntryKind::EpochStart, 57),
        ("2-8", EntryKind::Operation, 4),
    ];
    assert_eq!(entries, expected.map(|(id, kind, length)| (id.to_owned(), kind, length)));
    assert_eq!(recovered.end.chain.to_string(), end);
    // And it goes on.
    append(&journal, 3, EntryKind::Operation, Bytes::from_static(b"today"));
    recovered
}

#[test]
#[ignore = "writes the fixture"]
fn write_the_fixture() {
    let directory = fixture("store-4");
    let _ = std::fs::remove_dir_all(&directory);
    let env = Env::production();
    let identity = Identity { cluster_id: "CID-yesterday".into(), group: GroupId(7), member: MemberId(3) };
    journal::format(&env, &directory, &identity).unwrap();
    let (journal, _) = journal::open(&env, &directory, SETTINGS).unwrap().replay(|_| Ok(())).unwrap();
    let _ = journal.promise(Epoch(1)).unwrap();
    for text in ["first", "second", "third"] {
        append(&journal, 1, EntryKind::Operation, Bytes::from_static(text.as_bytes()));
    }
    let image = journal.write_image(journal.end(), |writer| writer.write(b"everything up to three")).unwrap();
    append(&journal, 1, EntryKind::Checkpoint, image.encode());
    journal.checkpoint_committed(&image).unwrap();
    for byte in [1, 2] {
        append(&journal, 1, EntryKind::Operation, Bytes::from(vec![byte; 5000]));
    }
    drop(journal);
    let mut recovery = journal::open(&env, &directory, SETTINGS).unwrap();
    recovery.load_image(|_| Ok(())).unwrap();
    let (journal, _) = recovery.replay(|_| Ok(())).unwrap();
    let _ = journal.promise(Epoch(2)).unwrap();
    journal.note_level(Level(2)).unwrap();
    append(&journal, 2, EntryKind::EpochStart, Bytes::from_static(&[1; 57]));
    append(&journal, 2, EntryKind::Operation, Bytes::from_static(b"last"));
    journal.note_commit(base::Sn(7));
    journal.persist_commit().unwrap();
}
