//! Files of a later release: refused with a clear text, and never taken for damage.

use base::{Entry, EntryKind, Epoch, GroupId, MemberId};
use bytes::Bytes;
use env::Env;
use journal::{Identity, OpenError, RecoverError, Settings};
use std::{
    path::{Path, PathBuf},
    sync::mpsc,
};

fn settings() -> Settings {
    Settings { segment_bytes: 32 << 10, reserve_bytes: 0, ..Settings::default() }
}

/// A store with an image and entries behind it.
fn store(env: &Env, directory: &Path) {
    let identity = Identity { cluster_id: "CID-x".into(), group: GroupId(0), member: MemberId(1) };
    journal::format(env, directory, &identity).unwrap();
    let (journal, _) = journal::open(env, directory, settings()).unwrap().replay(|_| Ok(())).unwrap();
    for _ in 0..3 {
        let (sender, receiver) = mpsc::channel();
        let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, Bytes::from_static(b"edit"));
        journal.append(vec![entry], Box::new(move |result| sender.send(result.map(drop)).unwrap())).unwrap();
        receiver.recv().unwrap().unwrap();
    }
    journal.note_commit(journal.end().id.sn);
    let checkpoint = journal.write_image(journal.end(), |writer| writer.write(b"all")).unwrap();
    journal.checkpoint_committed(&checkpoint).unwrap();
    journal.close().unwrap();
}

/// Raises the version in the first block of a file, as a later release would have written it.
fn raise_version(path: &Path, covered_to: Option<usize>) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[12] += 7;
    let end = covered_to.unwrap_or(bytes.len());
    let crc = crc32c::crc32c(&bytes[12..end]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

fn only_file(directory: &Path, is_it: impl Fn(&str) -> bool) -> PathBuf {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| is_it(path.file_name().unwrap().to_str().unwrap())).max().unwrap()
}

fn recover(env: &Env, directory: &Path) -> RecoverError {
    let mut recovery = journal::open(env, directory, settings()).unwrap();
    match recovery.load_image(|reader| std::io::copy(reader, &mut std::io::sink())) {
        Err(error) => error,
        Ok(_) => recovery.replay(|_| Ok(())).map(drop).unwrap_err(),
    }
}

#[test]
fn a_segment_and_an_image_of_a_later_release_are_refused_and_are_no_damage() {
    for (part, covered_to) in [("log", Some(4096)), ("images", Some(64))] {
        let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
        let directory = place.path().join("store");
        store(&env, &directory);
        let path = only_file(&directory.join(part), |name| name.contains('-'));
        raise_version(&path, covered_to);
        let error = recover(&env, &directory);
        assert!(matches!(&error, RecoverError::Version { .. }), "{part}: {error:?}");
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(text.contains("version 8") && text.contains("1 is known"), "{text}");
    }
}

#[test]
fn a_members_state_of_a_later_release_is_refused_even_if_the_other_copy_is_not() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let directory = place.path().join("store");
    store(&env, &directory);
    raise_version(&directory.join("member.1"), None);
    let error = journal::open(&env, &directory, settings()).map(drop).unwrap_err();
    assert!(matches!(&error, OpenError::Version { found: 10, supported: 4, .. }), "{error:?}");
    assert!(error.to_string().contains("member.1"), "{error}");
}
