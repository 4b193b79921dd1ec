//! Stores that were put aside, on a real disk: a person puts one back, and none is ever written over.

use base::{Entry, EntryKind, Epoch, GroupId, MemberId, Sn};
use bytes::Bytes;
use env::Env;
use journal::{Checkpoint, Identity, Journal, OpenError, Settings, aside};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::mpsc,
};

struct Place {
    env: Env,
    /// Removed at the end.
    _directory: tempfile::TempDir,
    store: PathBuf,
}

/// The result of a start: the content of the image, and the payloads of the entries behind it.
type Found = (Option<Vec<u8>>, Vec<Bytes>);

impl Place {
    fn new() -> Self {
        let (env, directory) = (Env::production(), tempfile::tempdir().unwrap());
        let store = directory.path().join("store");
        let identity = Identity { cluster_id: "CID-aside".into(), group: GroupId(0), member: MemberId(1) };
        journal::format(&env, &store, &identity).unwrap();
        Self { env, _directory: directory, store }
    }

    fn try_open(&self) -> Result<(Journal, Found), OpenError> {
        let settings = Settings { segment_bytes: 32 << 10, reserve_bytes: 0, ..Settings::default() };
        let mut recovery = journal::open(&self.env, &self.store, settings)?;
        let image = recovery
            .load_image(|reader| {
                let mut content = Vec::new();
                std::io::Read::read_to_end(reader, &mut content).map(|_| content)
            })
            .unwrap();
        let mut payloads = Vec::new();
        let (journal, recovered) = recovery
            .replay(|entry| {
                payloads.push(Bytes::copy_from_slice(&entry.payload));
                Ok(())
            })
            .unwrap();
        payloads.extend(recovered.tail.into_iter().map(|entry| entry.payload));
        Ok((journal, (image.map(|(_, content)| content), payloads)))
    }

    fn open(&self) -> (Journal, Found) {
        self.try_open().unwrap()
    }

    /// All files of the store that hold entries or images, wherever they are, with what they hold.
    fn contents(&self) -> BTreeMap<Vec<u8>, PathBuf> {
        let mut found = BTreeMap::new();
        for directory in fs::read_dir(&self.store).unwrap().map(|entry| entry.unwrap().path()) {
            let Ok(files) = fs::read_dir(directory) else { continue };
            for path in files
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_none_or(|it| it != "tmp"))
            {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if name.contains('-') {
                    found.insert(fs::read(&path).unwrap(), path);
                }
            }
        }
        found
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let Ok(files) = fs::read_dir(self.store.join(directory)) else { return Vec::new() };
        let mut names: Vec<_> =
            files.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn append(journal: &Journal, kind: EntryKind, payload: Bytes) {
    let entry = Entry::after(journal.end(), Epoch(1), kind, payload);
    let (sender, receiver) = mpsc::channel();
    journal.append(vec![entry], Box::new(move |result| sender.send(result.is_ok()).unwrap())).unwrap();
    assert!(receiver.recv().unwrap());
}

/// Several segments of a text.
fn write(journal: &Journal, text: &str) {
    for number in 0..60 {
        append(journal, EntryKind::Operation, Bytes::from(format!("{text} {number} {}", "-".repeat(900))));
    }
    journal.note_commit(journal.end().id.sn);
}

fn image(journal: &Journal, text: &'static str) -> Checkpoint {
    journal.write_image(journal.end(), |writer| writer.write(text.as_bytes())).unwrap()
}

/// An image that a start may begin from.
fn checkpoint(journal: &Journal, text: &'static str) {
    let checkpoint = image(journal, text);
    append(journal, EntryKind::Checkpoint, checkpoint.encode());
    journal.note_commit(journal.end().id.sn);
    journal.checkpoint_committed(&checkpoint).unwrap();
}

#[test]
fn a_store_is_put_back_with_all_that_it_had_and_nobody_counts_on_it() {
    let place = Place::new();
    let (journal, _) = place.open();
    write(&journal, "first");
    checkpoint(&journal, "an image of the first");
    write(&journal, "second");
    let end = journal.end().id;
    // Kept to be looked at: no start may begin from it.
    let evidence = image(&journal, "what was in memory");
    journal.distrust("its state is another").unwrap();
    drop(journal);
    let (journal, found) = place.open();
    assert_eq!(found, (None, Vec::new()));
    write(&journal, "renewed");
    let renewed = journal.end().id;
    drop(journal);
    let before = place.contents();

    let put_back = journal::restore(&place.env, &place.store, 1).unwrap();
    assert_eq!((put_back.last, put_back.put_aside), (Some(end), Some(2)));
    assert!(put_back.image.unwrap().at.id.sn < end.sn, "the image that the log vouches for");
    // Nothing is gone: each file is somewhere.
    let after = place.contents();
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert!(place.names("set-aside-1").contains(&evidence.file_name()));

    let (journal, (image, payloads)) = place.open();
    assert_eq!(image.unwrap(), b"an image of the first");
    assert_eq!(payloads.len(), 61, "its own entry, and the second sixty");
    assert!(payloads[60].starts_with(b"second 59"));
    assert_eq!(journal.state().generation, 3, "nobody has seen it, and nobody counts on it");
    assert_eq!(journal.state().known_commit, Sn(60));
    write(&journal, "it goes on");
    drop(journal);
    assert_eq!(place.open().1.1.len(), 121);

    // The store that stood in the place of the one that was put back can be put back in the same way, and then that one
    // again.
    let kept = aside::list(&*place.env.disk, &place.store).unwrap();
    assert_eq!(kept.iter().map(|one| one.generation).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(kept[1].reason.as_deref(), Some("a person had the store put back that was put aside as 1"));
    assert_eq!(journal::restore(&place.env, &place.store, 2).unwrap().last, Some(renewed));
    assert!(place.open().1.1[0].starts_with(b"renewed 0"));
}

#[test]
fn only_what_was_put_aside_is_put_back_and_only_while_the_server_is_stopped() {
    let place = Place::new();
    let (journal, _) = place.open();
    write(&journal, "first");
    let in_use = journal::restore(&place.env, &place.store, 1);
    assert!(matches!(in_use, Err(OpenError::InUse { .. })), "{in_use:?}");
    drop(journal);
    let unknown = journal::restore(&place.env, &place.store, 7);
    assert!(matches!(unknown, Err(OpenError::NothingAside { number: 7, .. })), "{unknown:?}");
    // A store that is to be put aside at the next start is still in its place. When it is put back, it stays there.
    assert_eq!(journal::distrust(&place.env, &place.store, "in haste").unwrap(), 1);
    let put_back = journal::restore(&place.env, &place.store, 1).unwrap();
    assert_eq!((put_back.last.map(|id| id.sn), put_back.put_aside), (Some(Sn(60)), None));
    assert_eq!(place.open().1.1.len(), 60);
}

/// The store that was put aside first was being put back when a crash came: the first of its files was moved.
fn half_put_back() -> Place {
    let place = Place::new();
    let (journal, _) = place.open();
    write(&journal, "first");
    journal.distrust("once").unwrap();
    drop(journal);
    let (journal, _) = place.open();
    write(&journal, "renewed");
    journal.distrust("twice").unwrap();
    drop(journal);
    drop(place.open());
    let moved = place.names("set-aside-1").into_iter().find(|name| name.contains('-')).unwrap();
    fs::rename(place.store.join("set-aside-1").join(&moved), place.store.join("log").join(&moved)).unwrap();
    for spare in place.names("log").into_iter().filter(|name| *name != moved) {
        fs::remove_file(place.store.join("log").join(spare)).unwrap();
    }
    fs::write(place.store.join("restoring"), "1").unwrap();
    place
}

#[test]
fn a_restore_that_was_interrupted_is_finished_by_the_same_order() {
    let place = half_put_back();
    let refused = place.try_open().map(drop);
    assert!(matches!(refused, Err(OpenError::Restoring { number: 1, .. })), "{refused:?}");
    let other = journal::restore(&place.env, &place.store, 2);
    assert!(matches!(other, Err(OpenError::Restoring { number: 1, .. })), "{other:?}");
    // Half of it would be gone for good, and the other half could not be put back.
    let dropped = aside::drop_one(&place.env, &place.store, 1);
    assert!(matches!(dropped, Err(OpenError::Restoring { number: 1, .. })), "{dropped:?}");
    assert_eq!(journal::restore(&place.env, &place.store, 1).unwrap().last.unwrap().sn, Sn(60));
    let (_, found) = place.open();
    assert!(found.1.len() == 60 && found.1[0].starts_with(b"first 0"));
}

#[test]
fn a_restore_whose_source_is_gone_is_finished_with_what_was_moved_before() {
    let place = half_put_back();
    fs::remove_dir_all(place.store.join("set-aside-1")).unwrap();
    let put_back = journal::restore(&place.env, &place.store, 1).unwrap();
    assert!(put_back.last.is_some_and(|last| last.sn > Sn(0)), "{put_back:?}");
    assert!(!place.store.join("restoring").exists());
    place.open();
    // Nothing is under way any more.
    let again = journal::restore(&place.env, &place.store, 1);
    assert!(
        matches!(again, Err(OpenError::InUse { .. } | OpenError::NothingAside { number: 1, .. })),
        "{again:?}"
    );
}

#[test]
fn nothing_that_was_put_aside_is_written_over() {
    let place = Place::new();
    let (journal, _) = place.open();
    write(&journal, "first");
    journal.distrust("its disk lies").unwrap();
    drop(journal);
    // Somebody has put a copy there, under the very names.
    let (log, aside) = (place.store.join("log"), place.store.join("set-aside-1"));
    let name = place.names("log").into_iter().find(|name| name.contains('-')).unwrap();
    fs::create_dir_all(&aside).unwrap();
    fs::write(aside.join(&name), "the only copy of something").unwrap();
    for _ in 0..2 {
        let refused = place.try_open().map(drop);
        assert!(
            matches!(&refused, Err(OpenError::AsideExists { file }) if *file == aside.join(&name)),
            "{refused:?}"
        );
        assert!(!aside::can_be_put_aside(&*place.env.disk, &place.store));
    }
    assert_eq!(fs::read(aside.join(&name)).unwrap(), b"the only copy of something");
    assert!(log.join(&name).exists());
    // Moved out of the way, the store is put aside as it should be.
    fs::rename(aside.join(&name), Path::new(&place.store).join("elsewhere")).unwrap();
    assert!(aside::can_be_put_aside(&*place.env.disk, &place.store));
    assert_eq!(place.open().1.1.len(), 0);
    assert!(aside.join(&name).exists());
}

#[test]
fn files_that_a_repair_has_replaced_are_listed() {
    let place = Place::new();
    drop(place.open());
    assert_eq!(aside::replaced(&*place.env.disk, &place.store).unwrap(), []);
    for (name, files) in
        [("damaged-12", ["0000000001-00000000000000000001", "x.image"]), ("damaged-3", ["a", "a.1"])]
    {
        fs::create_dir(place.store.join(name)).unwrap();
        files.iter().for_each(|file| fs::write(place.store.join(name).join(file), "12345").unwrap());
    }
    let found = aside::replaced(&*place.env.disk, &place.store).unwrap();
    let seen: Vec<_> = found.iter().map(|one| (one.start, one.segments, one.images, one.bytes)).collect();
    assert_eq!(seen, [(3, 2, 0, 10), (12, 1, 1, 10)]);
    assert!(aside::list(&*place.env.disk, &place.store).unwrap().is_empty());
}
