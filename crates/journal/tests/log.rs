//! Reading a log back while it is written, and cutting off its end, on a real disk.

use base::{Entry, EntryKind, Epoch, GroupId, LogPoint, MemberId, Sn};
use bytes::Bytes;
use env::Env;
use journal::{Identity, Journal, ReadLogError, Recovered, Settings, StateError};
use std::{path::Path, sync::mpsc};

fn settings() -> Settings {
    Settings { segment_bytes: 32 << 10, reserve_bytes: 0, ..Settings::default() }
}

fn format(env: &Env, directory: &Path) {
    let identity = Identity { cluster_id: "CID-log".into(), group: GroupId(0), member: MemberId(1) };
    journal::format(env, directory, &identity).unwrap();
}

/// Opens the store; the entries known to have committed, and what stands.
fn open(env: &Env, directory: &Path) -> (Journal, Vec<Entry>, Recovered) {
    let mut recovery = journal::open(env, directory, settings()).unwrap();
    recovery.load_image(|_| Ok(())).unwrap();
    let mut entries = Vec::new();
    let (journal, recovered) = recovery
        .replay(|entry| {
            entries.push(entry);
            Ok(())
        })
        .unwrap();
    (journal, entries, recovered)
}

/// Appends batches of entries of many sizes.
fn append(journal: &Journal, epoch: u64, batches: u64, all: &mut Vec<Entry>) {
    let (sender, receiver) = mpsc::channel();
    for batch in 0..batches {
        let mut end = journal.end();
        let entries: Vec<Entry> = (0..1 + batch % 4)
            .map(|n| {
                let sn = end.id.sn.0 + 1;
                let payload = Bytes::from(vec![sn as u8; ((sn * 37 + n * 911) % 5_000) as usize]);
                let entry = Entry::after(end, Epoch(epoch), EntryKind::Operation, payload);
                end = entry.point();
                entry
            })
            .collect();
        all.extend(entries.iter().cloned());
        let sender = sender.clone();
        journal.append(entries, Box::new(move |result| sender.send(result.map(drop)).unwrap())).unwrap();
    }
    (0..batches).for_each(|_| receiver.recv().unwrap().unwrap());
}

/// Every entry of the log, read in answers of at most that size.
fn read_all(journal: &Journal, bytes_max: usize) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let last = all.last().map(Entry::point).unwrap_or_default();
        let (point, entries) = journal.read(last.id.sn, Sn(u64::MAX), bytes_max).unwrap();
        assert_eq!(point, last, "the answer says what it follows");
        if entries.is_empty() {
            return all;
        }
        let bytes: usize = entries.iter().map(|entry| entry.payload.len()).sum();
        assert!(entries.len() == 1 || bytes <= bytes_max);
        all.extend(entries);
    }
}

#[test]
fn entries_read_back_across_segments_open_and_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    format(&env, directory.path());
    let (journal, ..) = open(&env, directory.path());
    assert_eq!(journal.read(Sn(0), Sn(9), 100).unwrap(), (LogPoint::default(), Vec::new()));
    let mut all = Vec::new();
    append(&journal, 1, 60, &mut all);
    for bytes_max in [0, 3_000, 100_000, 100 << 20] {
        assert_eq!(read_all(&journal, bytes_max), all);
    }
    drop(journal);

    // And after a start, which knows nothing yet of where batches begin.
    let (journal, ..) = open(&env, directory.path());
    append(&journal, 2, 7, &mut all);
    assert_eq!(read_all(&journal, 20_000), all);
    for after in 0..all.len() {
        let (point, entries) = journal.read(Sn(after as u64), Sn(after as u64 + 2), 1 << 20).unwrap();
        assert_eq!(point, after.checked_sub(1).map(|before| all[before].point()).unwrap_or_default());
        assert_eq!(entries, all[after..(after + 2).min(all.len())]);
    }
    let beyond = journal.read(Sn(all.len() as u64 + 1), Sn(u64::MAX), 1);
    assert!(matches!(beyond, Err(ReadLogError::Failed { .. })), "{beyond:?}");
}

#[test]
fn a_segment_that_is_not_full_ends_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    format(&env, directory.path());
    let (journal, ..) = open(&env, directory.path());
    let segments = || {
        let names =
            std::fs::read_dir(directory.path().join("log")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name != "spare").count()
    };
    let mut all = Vec::new();
    assert_eq!(journal.begin_segment_with_next(), Sn(1), "the first entry begins one anyway");
    append(&journal, 1, 1, &mut all);
    assert_eq!(segments(), 1);
    let next = journal.begin_segment_with_next();
    assert_eq!((next, journal.begin_segment_with_next()), (Sn(all.len() as u64 + 1), next));
    assert_eq!(segments(), 1, "nothing is begun before there is an entry");
    append(&journal, 1, 3, &mut all);
    assert_eq!(segments(), 2);
    assert_eq!(read_all(&journal, 100_000), all);
    drop(journal);
    let (journal, ..) = open(&env, directory.path());
    assert!(read_all(&journal, 100_000) == all, "both segments are read after a start");
}

#[test]
fn what_an_image_has_replaced_is_gone_and_is_said_to_be() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    format(&env, directory.path());
    let (journal, ..) = open(&env, directory.path());
    let mut all = Vec::new();
    for _ in 0..3 {
        append(&journal, 1, 30, &mut all);
        journal.note_commit(journal.end().id.sn);
        let checkpoint = journal.write_image(journal.end(), |writer| writer.write(b"all")).unwrap();
        journal.checkpoint_committed(&checkpoint).unwrap();
    }
    let gone = journal.read(Sn(0), Sn(9), 100);
    let Err(ReadLogError::Gone { first, .. }) = gone else { panic!("{gone:?}") };
    assert!(first > Sn(0) && first <= journal.images()[0].at.id.sn, "{first}");
    let (point, entries) = journal.read(first, Sn(u64::MAX), 100 << 20).unwrap();
    assert_eq!((point.id.sn, entries.as_slice()), (first, &all[first.0 as usize..]));
}

#[test]
fn what_is_wanted_longer_than_an_image_needs_it_stays_until_it_is_let_go() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    format(&env, directory.path());
    let (journal, ..) = open(&env, directory.path());
    journal.keep_from(Sn(50)).unwrap();
    let mut all = Vec::new();
    for _ in 0..4 {
        append(&journal, 1, 30, &mut all);
        journal.note_commit(journal.end().id.sn);
        let checkpoint = journal.write_image(journal.end(), |writer| writer.write(b"all")).unwrap();
        journal.checkpoint_committed(&checkpoint).unwrap();
    }
    let held = journal.segment_starts();
    assert!(
        held[0] <= Sn(50) && held[1] > Sn(50),
        "the first segment is the one that has entry 50: {held:?}"
    );
    let (_, entries) = journal.read(Sn(49), Sn(u64::MAX), 100 << 20).unwrap();
    assert!(entries == all[49..], "everything from there on is read");
    drop(journal);

    // A start reads from the image on, and has the older ones all the same.
    let (journal, replayed, _) = open(&env, directory.path());
    assert!(replayed.is_empty());
    assert!(journal.segment_starts()[0] <= Sn(50));
    let (_, entries) = journal.read(Sn(49), Sn(u64::MAX), 100 << 20).unwrap();
    assert!(entries == all[49..]);

    journal.keep_from(Sn(100)).unwrap();
    let later = journal.segment_starts();
    assert!(later[0] <= Sn(100) && later[1] > Sn(100) && later[0] > held[0], "{later:?}");
    journal.keep_from(Sn(u64::MAX)).unwrap();
    let oldest = journal.images()[0].at.id.sn;
    let needed = journal.segment_starts();
    assert!(
        needed[0].0 <= oldest.0 + 1 && needed[1].0 > oldest.0 + 1,
        "only what the images need: {needed:?}"
    );
    assert!(matches!(journal.read(Sn(99), Sn(100), 0), Err(ReadLogError::Gone { .. })));
}

#[test]
fn a_log_is_cut_after_any_of_its_entries_and_goes_on_from_there() {
    let env = Env::production();
    let count = {
        let directory = tempfile::tempdir().unwrap();
        format(&env, directory.path());
        let mut all = Vec::new();
        append(&open(&env, directory.path()).0, 1, 14, &mut all);
        all.len()
    };
    for keep in 0..=count {
        let directory = tempfile::tempdir().unwrap();
        format(&env, directory.path());
        let (journal, ..) = open(&env, directory.path());
        let mut all = Vec::new();
        append(&journal, 1, 14, &mut all);
        all.truncate(keep);
        let after = all.last().map(Entry::point).unwrap_or_default();
        let _ = journal.cut(after).unwrap();
        assert_eq!((journal.end(), journal.durable()), (after, after.id.sn));
        assert_eq!(read_all(&journal, 10_000), all);
        // The next entries have the same serial numbers, and another epoch.
        append(&journal, 2, 6, &mut all);
        assert_eq!(read_all(&journal, 10_000), all);
        if keep % 3 == 0 {
            journal.close().unwrap();
        }
        drop(journal);
        let (journal, committed, recovered) = open(&env, directory.path());
        assert_eq!(recovered.findings, []);
        assert_eq!([committed, recovered.tail].concat(), all);
        // Once more, into what a start has sealed.
        let after = all[all.len() - 4].point();
        let _ = journal.cut(after).unwrap();
        all.truncate(all.len() - 3);
        append(&journal, 3, 2, &mut all);
        assert_eq!(read_all(&journal, 10_000), all);
    }
}

#[test]
fn a_log_cut_off_just_before_a_block_opens_again() {
    let env = Env::production();
    // Entries that end so many bytes before a block: fewer than the header of a record has, and a few more.
    for left in (0..=72).step_by(8) {
        let directory = tempfile::tempdir().unwrap();
        format(&env, directory.path());
        let (journal, ..) = open(&env, directory.path());
        let first = Entry::after(
            journal.end(),
            Epoch(1),
            EntryKind::Operation,
            Bytes::from(vec![1; 4096 - left - 65]),
        );
        let second =
            Entry::after(first.point(), Epoch(1), EntryKind::Operation, Bytes::from_static(b"cut off"));
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |result: Result<_, _>| sender.send(result.map(drop)).unwrap());
        journal.append(vec![first.clone(), second], done).unwrap();
        receiver.recv().unwrap().unwrap();
        let _ = journal.cut(first.point()).unwrap();
        let mut all = vec![first];
        append(&journal, 2, 2, &mut all);
        drop(journal);
        let (journal, committed, recovered) = open(&env, directory.path());
        assert_eq!([committed, recovered.tail].concat(), all, "{left} bytes before a block");
        assert_eq!(read_all(&journal, 10_000), all);
    }
}

#[test]
fn what_has_committed_is_never_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    format(&env, directory.path());
    let (journal, ..) = open(&env, directory.path());
    let mut all = Vec::new();
    append(&journal, 1, 10, &mut all);
    journal.note_commit(Sn(9));
    let refused = |after: LogPoint| {
        let result = journal.cut(after);
        let Err(StateError::Cut { what, .. }) = result else { panic!("{result:?}") };
        what
    };
    assert!(refused(all[7].point()).contains("committed"));
    let stranger = LogPoint { chain: base::Chain(1), ..all[12].point() };
    assert!(refused(stranger).contains("the log has"));
    let beyond = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, Bytes::new());
    refused(beyond.point());
    assert_eq!(journal.end(), all.last().unwrap().point());
    let _ = journal.cut(all[8].point()).unwrap();
    drop(journal);
    assert_eq!(open(&env, directory.path()).2.end, all[8].point());
}

#[test]
fn a_disk_that_does_not_read_is_not_told_as_a_wrong_order_to_cut() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    format(&env, directory.path());
    let (journal, ..) = open(&env, directory.path());
    let mut all = Vec::new();
    append(&journal, 1, 10, &mut all);
    // Nothing can be read from a directory.
    let log = directory.path().join("log");
    for entry in std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path()) {
        std::fs::rename(&entry, directory.path().join("kept").with_extension("segment")).unwrap();
        std::fs::create_dir(&entry).unwrap();
    }
    let refused = journal.cut(all[4].point());
    assert!(matches!(refused, Err(StateError::Io { .. })), "{refused:?}");
}

/// A batch whose second record began exactly with a block was cut off there; sealed, it was taken for rotten at
/// the start after that.
#[test]
fn a_log_cut_where_a_record_ends_with_its_block_opens_again() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    format(&env, directory.path());
    let (journal, ..) = open(&env, directory.path());
    let first = Entry::after(LogPoint::default(), Epoch(1), EntryKind::Operation, vec![7; 4031].into());
    assert_eq!(journal::record::record_bytes(first.payload.len()), 4096);
    let second = Entry::after(first.point(), Epoch(1), EntryKind::Operation, vec![8; 50].into());
    let (sender, receiver) = mpsc::channel();
    let done = Box::new(move |result: Result<_, _>| sender.send(result.is_ok()).unwrap());
    journal.append(vec![first.clone(), second], done).unwrap();
    assert!(receiver.recv().unwrap());
    let _ = journal.cut(first.point()).unwrap();
    drop(journal);
    for _ in 0..2 {
        let (journal, committed, recovered) = open(&env, directory.path());
        assert_eq!([committed, recovered.tail].concat(), std::slice::from_ref(&first));
        assert_eq!(read_all(&journal, 100), std::slice::from_ref(&first));
    }
}

#[test]
fn readers_and_a_writer_do_not_meet() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    format(&env, directory.path());
    let (journal, ..) = open(&env, directory.path());
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut last = LogPoint::default();
                    while last.id.sn.0 < 400 {
                        let (point, entries) = journal.read(last.id.sn, Sn(u64::MAX), 30_000).unwrap();
                        assert_eq!(point, last);
                        if let Some(entry) = entries.last() {
                            last = entry.point();
                        }
                    }
                })
            })
            .collect();
        append(&journal, 1, 200, &mut all);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert!(all.len() >= 400);
}

#[test]
fn what_must_be_written_while_the_disk_is_nearly_full_goes_into_short_segments() {
    let (env, place) = (Env::production(), tempfile::tempdir().unwrap());
    format(&env, place.path());
    let free_bytes = open(&env, place.path()).0.room().unwrap().free_bytes;
    // More is to stay free than there is: no further segment of the usual size is made.
    let usual = 4 << 20;
    let settings = Settings { segment_bytes: usual, reserve_bytes: free_bytes + (1 << 40), ..settings() };
    let recovery = journal::open(&env, place.path(), settings).unwrap();
    let (journal, _) = recovery.replay(|_| Ok(())).unwrap();
    assert!(journal.prepare_segment().is_err());
    assert!(journal.room().unwrap().is_out);
    let mut all = Vec::new();
    append(&journal, 1, 300, &mut all);
    assert_eq!(read_all(&journal, 1 << 20), all);
    journal.close().unwrap();
    drop(journal);
    let log = std::fs::read_dir(place.path().join("log"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len());
    let lengths: Vec<u64> = log.collect();
    assert!(lengths.len() > 1 && lengths.iter().all(|length| *length < usual), "{lengths:?}");

    // With room the usual ones are made again, and all is there.
    let (journal, entries, recovered) = open(&env, place.path());
    assert_eq!(
        (entries.len() + recovered.tail.len(), recovered.end.id.sn),
        (all.len(), Sn(all.len() as u64))
    );
    assert!(!journal.room().unwrap().is_out);
}
