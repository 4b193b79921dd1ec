//! A store on a real disk, from format to purge. What a loss of power leaves behind is tested in `clover-sim`.

use base::{Entry, EntryKind, Epoch, GroupId, LogPoint, MemberId, Sn};
use bytes::Bytes;
use env::Env;
use journal::{AppendError, Identity, Journal, OpenError, RecoverError, Recovered, Settings};
use std::{io::Read, path::Path, sync::mpsc};

fn identity() -> Identity {
    Identity { cluster_id: "CID-test".into(), group: GroupId(0), member: MemberId(1) }
}

fn settings() -> Settings {
    Settings { segment_bytes: 32 << 10, reserve_bytes: 0, ..Settings::default() }
}

/// Opens the store; returns the texts of the image, if any, and of the entries after it.
fn open(env: &Env, directory: &Path) -> (Journal, Recovered, Option<String>, Vec<String>) {
    let mut recovery = journal::open(env, directory, settings()).unwrap();
    let image = recovery
        .load_image(|reader| {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        })
        .unwrap();
    let mut entries = Vec::new();
    let (journal, recovered) = recovery
        .replay(|entry| {
            entries.push(text_of(&entry));
            Ok(())
        })
        .unwrap();
    entries.extend(recovered.tail.iter().map(text_of));
    (journal, recovered, image.map(|(_, text)| text), entries)
}

fn text_of(entry: &Entry) -> String {
    String::from_utf8_lossy(&entry.payload).into_owned()
}

fn append_kind(journal: &Journal, epoch: u64, kind: EntryKind, payloads: &[&[u8]]) -> LogPoint {
    let mut end = journal.end();
    let entries = payloads
        .iter()
        .map(|payload| {
            let entry = Entry::after(end, Epoch(epoch), kind, Bytes::copy_from_slice(payload));
            end = entry.point();
            entry
        })
        .collect();
    let (sender, receiver) = mpsc::channel();
    journal.append(entries, Box::new(move |result| sender.send(result.map(drop)).unwrap())).unwrap();
    receiver.recv().unwrap().unwrap();
    assert!(journal.durable() >= end.id.sn);
    end
}

fn append(journal: &Journal, epoch: u64, texts: &[&str]) -> LogPoint {
    let payloads: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    append_kind(journal, epoch, EntryKind::Operation, &payloads)
}

#[test]
fn entries_survive_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("store");
    let env = Env::production();
    journal::format(&env, &directory, &identity()).unwrap();
    let mut all: Vec<String> = Vec::new();
    for boot in 1..=4 {
        let (journal, recovered, image, entries) = open(&env, &directory);
        assert_eq!((image, &entries), (None, &all));
        assert_eq!(recovered.findings, []);
        assert_eq!(journal.state().boot, boot);
        let _ = journal.promise(Epoch(boot)).unwrap();
        for n in 0..boot * 3 {
            let texts = [format!("{boot}/{n}"), "x".repeat(n as usize * 900)];
            append(&journal, boot, &[&texts[0], &texts[1]]);
            all.extend(texts);
        }
        if boot % 2 == 0 {
            journal.close().unwrap();
        }
    }
}

#[test]
fn only_one_process_opens_a_store_and_only_a_formatted_one() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    let not_there = directory.path().join("none");
    assert!(matches!(journal::open(&env, &not_there, settings()), Err(OpenError::NotFormatted { .. })));
    assert!(matches!(journal::open(&env, directory.path(), settings()), Err(OpenError::NotFormatted { .. })));
    journal::format(&env, directory.path(), &identity()).unwrap();
    assert!(journal::format(&env, directory.path(), &identity()).is_err());
    let (journal, ..) = open(&env, directory.path());
    assert!(matches!(journal::open(&env, directory.path(), settings()), Err(OpenError::InUse { .. })));
    drop(journal);
    open(&env, directory.path());
}

#[test]
fn many_batches_in_flight_complete_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    journal::format(&env, directory.path(), &identity()).unwrap();
    let (journal, ..) = open(&env, directory.path());
    let (sender, receiver) = mpsc::channel();
    let mut end = journal.end();
    for n in 0..500_u64 {
        let entry =
            Entry::after(end, Epoch(1), EntryKind::Operation, Bytes::from(format!("entry {n} of many")));
        end = entry.point();
        let sender = sender.clone();
        journal.wait_for_room();
        journal
            .append(vec![entry], Box::new(move |result| sender.send((n, result.is_ok())).unwrap()))
            .unwrap();
        if n % 50 == 0 {
            journal.append(Vec::new(), Box::new(|result| assert!(result.is_ok()))).unwrap();
        }
    }
    journal.close().unwrap();
    drop(sender);
    let done: Vec<(u64, bool)> = receiver.iter().collect();
    assert_eq!(done, (0..500).map(|n| (n, true)).collect::<Vec<_>>());
    assert!(matches!(journal.append(Vec::new(), Box::new(|_| ())), Err(AppendError::Closed)));
    drop(journal);
    assert_eq!(open(&env, directory.path()).3.len(), 500);
}

/// A segment was made for a batch; before the batch was sent it grew and no longer fitted, so the segment was
/// made anew under the same name. The empty first one had been sealed, and at the next start it passed for
/// the whole of what the second held.
#[test]
fn a_batch_that_outgrows_its_new_segment_is_not_lost() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let env = Env::production();
        journal::format(&env, directory.path(), &identity()).unwrap();
        let (journal, ..) = open(&env, directory.path());
        let mut end = journal.end();
        let count = 300_u64;
        for n in 0..count {
            let payload = Bytes::from(vec![n as u8; 1_000]);
            let entry = Entry::after(end, Epoch(1), EntryKind::Operation, payload);
            end = entry.point();
            journal.append(vec![entry], Box::new(|result| assert!(result.is_ok()))).unwrap();
            if n % 100 == 0 {
                journal.prepare_segment().unwrap();
            }
        }
        journal.close().unwrap();
        drop(journal);
        assert_eq!(open(&env, directory.path()).3.len() as u64, count);
    }
}

#[test]
fn strangers_are_refused_and_promises_never_fall() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    journal::format(&env, directory.path(), &identity()).unwrap();
    let (journal, ..) = open(&env, directory.path());
    let _ = journal.promise(Epoch(3)).unwrap();
    assert!(journal.promise(Epoch(2)).is_err());
    let refused = |entry: Entry| journal.append(vec![entry], Box::new(|_| panic!("refused"))).unwrap_err();
    let mut gap = Entry::after(journal.end(), Epoch(3), EntryKind::Operation, Bytes::new());
    gap.id.sn = Sn(2);
    assert!(matches!(refused(gap), AppendError::OutOfOrder { .. }));
    let large = Entry::after(
        journal.end(),
        Epoch(3),
        EntryKind::Operation,
        Bytes::from(vec![0; journal::record::PAYLOAD_BYTES_MAX + 1]),
    );
    assert!(matches!(refused(large), AppendError::TooLarge { .. }));
    drop(journal);
    let (journal, ..) = open(&env, directory.path());
    assert_eq!(journal.state().promised, Epoch(3));
}

#[test]
fn what_a_new_active_inherited_is_taken_after_its_epoch_was_promised() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    journal::format(&env, directory.path(), &identity()).unwrap();
    let (journal, ..) = open(&env, directory.path());
    append(&journal, 1, &["of the old active"]);
    let _ = journal.promise(Epoch(2)).unwrap();
    append(&journal, 1, &["which another member had longer"]);
    append(&journal, 2, &["of the new active"]);
    drop(journal);
    let kept = open(&env, directory.path()).3;
    assert_eq!(kept, ["of the old active", "which another member had longer", "of the new active"]);
}

#[test]
fn a_batch_larger_than_a_segment_gets_one_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::production();
    journal::format(&env, directory.path(), &identity()).unwrap();
    let (journal, ..) = open(&env, directory.path());
    let large = "z".repeat(100_000);
    append(&journal, 1, &["before"]);
    append(&journal, 1, &[&large, &large]);
    append(&journal, 1, &["after"]);
    drop(journal);
    assert_eq!(open(&env, directory.path()).3, ["before", &large, &large, "after"]);
}

#[test]
fn images_replace_the_log_behind_them() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let env = Env::production();
    journal::format(&env, directory, &identity()).unwrap();
    let (journal, ..) = open(&env, directory);
    for round in 0..4 {
        for n in 0..20 {
            append(&journal, 1, &[&format!("round {round} entry {n} {}", "x".repeat(3000))]);
        }
        let at = journal.end();
        journal.prepare_segment().unwrap();
        let text = format!("all up to round {round}");
        let checkpoint = journal.write_image(at, |writer| writer.write(text.as_bytes())).unwrap();
        append_kind(&journal, 1, EntryKind::Checkpoint, &[&checkpoint.encode()]);
        journal.checkpoint_committed(&checkpoint).unwrap();
        assert!(journal.bytes_since_checkpoint() < 10_000);
    }
    let images = std::fs::read_dir(directory.join("images")).unwrap().count();
    assert_eq!(images, 2);
    let log = std::fs::read_dir(directory.join("log")).unwrap().count();
    assert!(log < 8, "{log} files of log are left");
    append(&journal, 1, &["the last"]);
    let newest = journal.state().checkpoints[1].file_name();
    drop(journal);

    let (journal, recovered, image, entries) = open(&env, directory);
    assert_eq!(image.as_deref(), Some("all up to round 3"));
    assert_eq!((entries.len(), entries[1].as_str()), (2, "the last"));
    assert_eq!(recovered.replayed + recovered.tail.len() as u64, 2);
    drop(journal);

    // The newest image rots: the one before it and more log serve.
    let path = directory.join("images").join(newest);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[80] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (journal, recovered, image, entries) = open(&env, directory);
    assert_eq!(image.as_deref(), Some("all up to round 2"));
    assert_eq!(entries.len(), 23);
    assert_eq!(recovered.findings.len(), 1);
    assert_eq!(recovered.findings[0].file, path);
    drop(journal);

    // Both rot: refused, since the log no longer reaches back to its beginning.
    for name in std::fs::read_dir(directory.join("images")).unwrap() {
        let path = name.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[81] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
    }
    let mut recovery = journal::open(&env, directory, settings()).unwrap();
    let result = recovery.load_image(|reader| std::io::read_to_string(reader));
    assert!(matches!(result, Err(RecoverError::Damaged { .. })));
}

#[test]
fn a_log_that_lost_its_end_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let env = Env::production();
    journal::format(&env, directory, &identity()).unwrap();
    let (journal, ..) = open(&env, directory);
    append(&journal, 1, &["a"]);
    drop(journal);
    let (journal, ..) = open(&env, directory);
    append(&journal, 2, &["b"]);
    journal.close().unwrap();
    drop(journal);
    std::fs::remove_file(directory.join("log/0000000002-00000000000000000002.open")).unwrap();
    let mut recovery = journal::open(&env, directory, settings()).unwrap();
    recovery.load_image(|_| Ok(())).unwrap();
    let error = recovery.replay(|_| Ok(())).err().unwrap();
    assert!(error.to_string().contains("entry 2, which is known to have been durable"), "{error}");
}
