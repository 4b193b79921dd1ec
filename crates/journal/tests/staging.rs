//! An image of another member: taken in chunks, kept beside the log or put in its place. On a real disk; what a
//! loss of power leaves behind is tested in `clover-sim`.

use base::{Entry, EntryKind, Epoch, GroupId, LogPoint, MemberId, Sn};
use bytes::Bytes;
use env::Env;
use journal::{Checkpoint, Identity, Journal, Recovered, Settings, StagingError};
use std::{path::Path, sync::mpsc};

/// Some chunks, the last one not full.
const CONTENT_BYTES: usize = 5 * (1 << 20) / 2;

fn settings() -> Settings {
    Settings { segment_bytes: 32 << 10, reserve_bytes: 0, ..Settings::default() }
}

fn format(env: &Env, directory: &Path, member: u32) {
    let identity = Identity { cluster_id: "CID-staging".into(), group: GroupId(0), member: MemberId(member) };
    journal::format(env, directory, &identity).unwrap();
}

struct Opened {
    journal: Journal,
    image: Option<(LogPoint, Vec<u8>)>,
    entries: Vec<Entry>,
    recovered: Recovered,
}

fn open(env: &Env, directory: &Path) -> Opened {
    let mut recovery = journal::open(env, directory, settings()).unwrap();
    let image = recovery
        .load_image(|reader| {
            let mut content = Vec::new();
            std::io::Read::read_to_end(reader, &mut content).map(|_| content)
        })
        .unwrap();
    let mut entries = Vec::new();
    let (journal, recovered) = recovery
        .replay(|entry| {
            entries.push(entry);
            Ok(())
        })
        .unwrap();
    Opened { journal, image, entries, recovered }
}

fn append(journal: &Journal, epoch: u64, count: u64) -> LogPoint {
    for n in 0..count {
        let payload = Bytes::from(vec![n as u8; 700]);
        let entry = Entry::after(journal.end(), Epoch(epoch), EntryKind::Operation, payload);
        let (sender, receiver) = mpsc::channel();
        journal.append(vec![entry], Box::new(move |result| sender.send(result.is_ok()).unwrap())).unwrap();
        assert!(receiver.recv().unwrap());
    }
    journal.end()
}

fn content() -> Vec<u8> {
    (0..CONTENT_BYTES as u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect()
}

/// A member with a log of 50 entries and an image of it, and the image's whole file.
fn maker(env: &Env, directory: &Path) -> (Journal, Checkpoint, Vec<u8>) {
    format(env, directory, 1);
    let journal = open(env, directory).journal;
    let at = append(&journal, 1, 50);
    journal.note_commit(at.id.sn);
    let checkpoint = journal.write_image(at, |writer| writer.write(&content())).unwrap();
    // It can be had before its checkpoint has committed.
    let file = journal.open_image(&checkpoint).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    env::disk::read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(journal.images(), []);
    journal.checkpoint_committed(&checkpoint).unwrap();
    assert_eq!(journal.images(), [checkpoint]);
    (journal, checkpoint, bytes)
}

/// Downloads up to `until` in chunks of that size.
fn download(
    journal: &Journal,
    checkpoint: Checkpoint,
    bytes: &[u8],
    chunk: usize,
    until: usize,
) -> journal::Staged {
    let mut staged = journal.stage(checkpoint).unwrap();
    while (staged.have() as usize) < until {
        let at = staged.have() as usize;
        staged.write_chunk(at as u64, &bytes[at..(at + chunk).min(bytes.len())]).unwrap();
    }
    staged
}

/// A member with the same log, and an image of its own of the same entry: the file has the same name and length, and says who made it.
fn other_maker(env: &Env, directory: &Path, checkpoint: &Checkpoint) -> (Journal, Checkpoint) {
    format(env, directory, 2);
    let journal = open(env, directory).journal;
    let at = append(&journal, 1, 50);
    journal.note_commit(at.id.sn);
    let own = journal.write_image(at, |writer| writer.write(&content())).unwrap();
    assert_eq!((own.file_name(), own.file_bytes), (checkpoint.file_name(), checkpoint.file_bytes));
    assert_ne!(own.sha256, checkpoint.sha256);
    (journal, own)
}

#[test]
fn an_own_image_of_the_same_entry_is_not_taken_for_the_one_that_is_wanted() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let (_maker, checkpoint, bytes) = maker(&env, &place.path().join("maker"));
    let taker = place.path().join("taker");
    let (journal, own) = other_maker(&env, &taker, &checkpoint);
    assert!(journal.open_image(&own).is_ok() && journal.open_image(&checkpoint).is_err());
    assert!(journal.checkpoint_committed(&checkpoint).is_err());
    drop(journal);

    // The image that an earlier life has left is looked at before it is called usable, and is found to be damaged.
    let journal = open(&env, &taker).journal;
    assert!(journal.checkpoint_committed(&checkpoint).is_err());
    assert!(journal.open_image(&checkpoint).is_err());
    assert_eq!(journal.images(), []);

    let staged = download(&journal, checkpoint, &bytes, 1 << 20, bytes.len());
    journal.keep_image(staged.finish().unwrap()).unwrap();
    journal.checkpoint_committed(&checkpoint).unwrap();
    drop(journal);
    let opened = open(&env, &taker);
    assert_eq!(opened.image.map(|(at, _)| at), Some(checkpoint.at));
    assert_eq!(opened.recovered.findings, []);
}

#[test]
fn a_start_calls_no_image_usable_that_another_checkpoint_names() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let (_maker, checkpoint, _) = maker(&env, &place.path().join("maker"));
    let taker = place.path().join("taker");
    for is_own in [false, true] {
        let _ = std::fs::remove_dir_all(&taker);
        let (journal, own) = other_maker(&env, &taker, &checkpoint);
        let named = if is_own { own } else { checkpoint };
        let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Checkpoint, named.encode());
        let (sn, (sender, receiver)) = (entry.id.sn, mpsc::channel());
        journal.append(vec![entry], Box::new(move |result| sender.send(result.is_ok()).unwrap())).unwrap();
        assert!(receiver.recv().unwrap());
        journal.note_commit(sn);
        journal.persist_commit().unwrap();
        drop(journal);
        let usable = if is_own { vec![own] } else { Vec::new() };
        assert_eq!(open(&env, &taker).journal.images(), usable);
        assert_eq!(open(&env, &taker).recovered.findings, []);
    }
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let (_maker, checkpoint, bytes) = maker(&env, &place.path().join("maker"));
    let taker = place.path().join("taker");
    format(&env, &taker, 2);
    let journal = open(&env, &taker).journal;
    let staged = download(&journal, checkpoint, &bytes, 300_000, 1_700_000);
    let second = journal.stage(checkpoint);
    assert!(second.is_err(), "one at a time");
    drop(staged);
    drop(journal);

    // A new life: whole chunks of the image are here, the rest of the last one is asked for again.
    let journal = open(&env, &taker).journal;
    let mut staged = journal.stage(checkpoint).unwrap();
    assert_eq!(staged.have(), 64 + (1 << 20) + 8);
    let wrong = staged.write_chunk(0, &bytes[..10]);
    assert!(matches!(wrong, Err(StagingError::Offset { .. })), "{wrong:?}");
    let more = staged.write_chunk(staged.have(), &bytes);
    assert!(matches!(more, Err(StagingError::Verify { .. })), "{more:?}");
    drop(staged);

    // Another image is wanted: what is here of the first one is nothing to it.
    let other = Checkpoint { sha256: [1; 32], ..checkpoint };
    assert_eq!(journal.stage(other).unwrap().have(), 0);
    let staged = download(&journal, checkpoint, &bytes, 1 << 20, bytes.len());
    assert_eq!(staged.finish().unwrap().checkpoint(), &checkpoint);
}

#[test]
fn an_image_that_is_not_the_one_in_its_checkpoint_is_thrown_away() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let (_maker, checkpoint, mut bytes) = maker(&env, &place.path().join("maker"));
    let taker = place.path().join("taker");
    format(&env, &taker, 2);
    let journal = open(&env, &taker).journal;
    let short = download(&journal, checkpoint, &bytes, 1 << 20, 1 << 20).finish().err();
    assert!(matches!(short, Some(StagingError::Offset { .. })), "{short:?}");
    bytes[1 << 20] ^= 1;
    let mut staged = journal.stage(Checkpoint { sha256: [0; 32], ..checkpoint }).unwrap();
    staged.write_chunk(0, &bytes).unwrap();
    let wrong = staged.finish().err();
    assert!(matches!(wrong, Some(StagingError::Verify { .. })), "{wrong:?}");
    assert_eq!(journal.stage(checkpoint).unwrap().have(), 0);
}

#[test]
fn an_image_beside_the_log_serves_the_next_start() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let (maker, checkpoint, bytes) = maker(&env, &place.path().join("maker"));
    let taker = place.path().join("taker");
    format(&env, &taker, 2);
    let journal = open(&env, &taker).journal;
    // This log is the maker's, and a little more.
    append(&journal, 1, 50);
    assert_eq!(journal.end(), maker.end());
    append(&journal, 1, 5);
    let missing = journal.checkpoint_committed(&checkpoint);
    assert!(missing.is_err(), "an image that is not here is none to start from");
    let image = download(&journal, checkpoint, &bytes, 1 << 20, bytes.len()).finish().unwrap();
    journal.keep_image(image).unwrap();
    journal.note_commit(Sn(50));
    journal.checkpoint_committed(&checkpoint).unwrap();
    drop(journal);
    let opened = open(&env, &taker);
    assert_eq!(opened.image, Some((checkpoint.at, content())));
    assert_eq!((opened.recovered.base, opened.recovered.tail.len()), (checkpoint.at, 5));
}

#[test]
fn an_installed_image_takes_the_place_of_the_log() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let (maker, checkpoint, bytes) = maker(&env, &place.path().join("maker"));
    let taker = place.path().join("taker");
    format(&env, &taker, 2);
    let journal = open(&env, &taker).journal;
    append(&journal, 1, 7);
    let _ = journal.promise(Epoch(1)).unwrap();
    let image = download(&journal, checkpoint, &bytes, 1 << 20, bytes.len()).finish().unwrap();
    journal.install(image).unwrap();
    let late = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, Bytes::new());
    assert!(journal.append(vec![late], Box::new(|_| panic!("taken"))).is_err(), "it takes nothing more");
    drop(journal);

    let opened = open(&env, &taker);
    assert_eq!(opened.image, Some((checkpoint.at, content())));
    assert_eq!((opened.recovered.end, opened.entries.len()), (checkpoint.at, 0));
    let state = opened.journal.state();
    assert_eq!((state.promised, state.generation, state.boot), (Epoch(1), 0, 2));
    assert_eq!(opened.journal.read(checkpoint.at.id.sn, Sn(99), 1).unwrap(), (checkpoint.at, Vec::new()));
    // The stream of the active goes on behind it.
    append(&opened.journal, 1, 5);
    append(&maker, 1, 5);
    assert_eq!(opened.journal.end(), maker.end());
    drop(opened);
    assert_eq!(open(&env, &taker).recovered.end, maker.end());
}

#[test]
fn a_log_that_goes_further_than_the_image_was_another_history() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let (_maker, checkpoint, bytes) = maker(&env, &place.path().join("maker"));
    let taker = place.path().join("taker");
    format(&env, &taker, 2);
    let journal = open(&env, &taker).journal;
    append(&journal, 1, 60);
    let image = download(&journal, checkpoint, &bytes, 1 << 20, bytes.len()).finish().unwrap();
    journal.note_commit(Sn(50));
    let outdated = journal.install(image);
    assert!(matches!(outdated, Err(StagingError::Outdated { .. })), "{outdated:?}");
    drop(journal);

    let other = place.path().join("other");
    format(&env, &other, 3);
    let journal = open(&env, &other).journal;
    append(&journal, 1, 60);
    let image = download(&journal, checkpoint, &bytes, 1 << 20, bytes.len()).finish().unwrap();
    journal.install(image).unwrap();
    drop(journal);
    let opened = open(&env, &other);
    assert_eq!((opened.recovered.end, opened.journal.state().generation), (checkpoint.at, 1));
}

#[test]
fn a_store_that_is_not_believed_begins_empty_and_keeps_what_it_had_aside() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let directory = place.path().join("store");
    let (journal, ..) = maker(&env, &directory);
    let _ = journal.promise(Epoch(4)).unwrap();
    journal.persist_commit().unwrap();
    journal.distrust("its disk lies").unwrap();
    drop(journal);
    for boot in [2, 3] {
        let opened = open(&env, &directory);
        let state = opened.journal.state();
        assert_eq!((opened.recovered.end, opened.image, opened.entries.len()), Default::default());
        assert_eq!((state.generation, state.promised, state.boot), (1, Epoch(4), boot));
        assert_eq!((state.known_commit, state.checkpoints.len()), (Sn(0), 0));
    }
    let aside = directory.join("set-aside-1");
    assert!(std::fs::read_dir(&aside).unwrap().count() >= 2, "segments and the image");

    let kept = &journal::aside::list(&*env.disk, &directory).unwrap()[0];
    assert_eq!(
        (kept.generation, kept.reason.as_deref(), kept.first),
        (1, Some("its disk lies"), Some(Sn(1)))
    );
    assert!(kept.last.is_some() && kept.images == 1 && kept.at_ms.is_some(), "{kept:?}");

    // A store that cannot be opened is given up from outside, and its state says why.
    append(&open(&env, &directory).journal, 5, 3);
    assert_eq!(journal::distrust(&env, &directory, "the operator says so").unwrap(), 2);
    assert_eq!(open(&env, &directory).recovered.end, LogPoint::default());
    assert!(aside.exists() && directory.join("set-aside-2").exists(), "nothing goes by itself");
    assert_eq!(journal::aside::list(&*env.disk, &directory).unwrap().len(), 2);

    // A person decides; a missing one is told.
    journal::aside::drop_one(&env, &directory, 1).unwrap();
    assert!(!aside.exists());
    assert!(journal::aside::drop_one(&env, &directory, 1).is_err());
    assert_eq!(journal::aside::list(&*env.disk, &directory).unwrap().len(), 1);
}

#[test]
fn an_image_that_was_to_be_installed_and_is_gone_leaves_an_empty_store() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    let (_maker, checkpoint, bytes) = maker(&env, &place.path().join("maker"));
    let taker = place.path().join("taker");
    format(&env, &taker, 2);
    let journal = open(&env, &taker).journal;
    append(&journal, 1, 7);
    let image = download(&journal, checkpoint, &bytes, 1 << 20, bytes.len()).finish().unwrap();
    journal.install(image).unwrap();
    drop(journal);
    std::fs::remove_file(taker.join("staging/image")).unwrap();
    let opened = open(&env, &taker);
    assert_eq!((opened.recovered.end, opened.image), Default::default());
    assert_eq!(opened.journal.state().generation, 1, "nobody counts on what it had");
}

#[test]
fn what_has_committed_is_remembered_without_a_sync() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    format(&env, place.path(), 1);
    let journal = open(&env, place.path()).journal;
    append(&journal, 1, 20);
    for sn in [3, 9, 12] {
        journal.note_commit(Sn(sn));
        journal.persist_commit().unwrap();
    }
    drop(journal);
    let opened = open(&env, place.path());
    assert_eq!((opened.entries.len(), opened.recovered.tail.len()), (12, 8));
    assert_eq!(opened.recovered.base, opened.entries[11].point());
    assert_eq!(opened.journal.state().known_commit, Sn(12));
    // One slot rots: the other speaks.
    opened.journal.note_commit(Sn(15));
    opened.journal.persist_commit().unwrap();
    opened.journal.note_commit(Sn(16));
    opened.journal.persist_commit().unwrap();
    drop(opened);
    let path = place.path().join("commit");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096 + 41] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(open(&env, place.path()).recovered.base.id.sn, Sn(15));
}

#[test]
fn a_disk_that_fills_up_is_noticed_before_it_is_full() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    format(&env, place.path(), 1);
    let journal = open(&env, place.path()).journal;
    let room = journal.room().unwrap();
    assert!(room.free_bytes > 0 && !room.is_low, "{room:?}");
    drop(journal);
    let settings = Settings { reserve_bytes: room.free_bytes + (1 << 40), ..settings() };
    let (journal, _) = journal::open(&env, place.path(), settings).unwrap().replay(|_| Ok(())).unwrap();
    assert!(journal.room().unwrap().is_low);
}
