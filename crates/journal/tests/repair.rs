//! Damaged logs, repaired with what another member has of them: at every place, and with nothing else changed.

use base::{Entry, EntryKind, Epoch, GroupId, LogPoint, MemberId, Sn};
use bytes::Bytes;
use env::Env;
use journal::{
    Checkpoint, Identity, Journal, RecoverError, Recovered, Repair, Settings,
    record::{HEADER_BYTES, Header},
};
use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::mpsc,
};

fn settings() -> Settings {
    Settings { segment_bytes: 32 << 10, reserve_bytes: 0, ..Settings::default() }
}

/// A store with a log over several segments, and a way to make it anew.
struct Story {
    _directory: tempfile::TempDir,
    env: Env,
    sound: PathBuf,
    store: PathBuf,
    all: Vec<Entry>,
}

impl Story {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (sound, store) = (directory.path().join("sound"), directory.path().join("store"));
        let env = Env::production();
        let identity = Identity { cluster_id: "CID-repair".into(), group: GroupId(0), member: MemberId(1) };
        journal::format(&env, &sound, &identity).unwrap();
        let mut all = Vec::new();
        // Two lives: sealed segments, and an open one at the end.
        for epoch in 1..=2 {
            let (journal, ..) = open(&env, &sound).unwrap();
            let _ = journal.promise(Epoch(epoch)).unwrap();
            append(&journal, epoch, 14, &mut all);
            drop(journal);
        }
        let story = Self { _directory: directory, env, sound, store, all };
        story.restore();
        story
    }

    fn restore(&self) {
        let _ = fs::remove_dir_all(&self.store);
        copy(&self.sound, &self.store);
    }

    /// File, offset and bytes of each record.
    fn records(&self) -> BTreeMap<u64, (PathBuf, usize, usize)> {
        let mut records = BTreeMap::new();
        for path in self.segments() {
            let bytes = fs::read(&path).unwrap();
            for at in (4096..bytes.len().saturating_sub(HEADER_BYTES)).step_by(8) {
                if let Some(header) = Header::decode(&bytes[at..]) {
                    records.insert(header.id.sn.0, (path.clone(), at, header.record_bytes()));
                }
            }
        }
        records
    }

    fn segments(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(self.store.join("log")).unwrap().map(|entry| entry.unwrap().path());
        let mut segments: Vec<PathBuf> = names.filter(|path| !path.ends_with("spare")).collect();
        segments.sort();
        segments
    }

    fn flip(&self, path: &Path, at: usize) {
        let mut bytes = fs::read(path).unwrap();
        bytes[at] ^= 0x20;
        fs::write(path, bytes).unwrap();
    }

    fn flip_header(&self, sn: u64) {
        let (path, at, _) = self.records().remove(&sn).unwrap();
        self.flip(&path, at + 20);
    }

    fn flip_payload(&self, sn: u64) {
        let (path, at, bytes) = self.records().remove(&sn).unwrap();
        self.flip(&path, at + (HEADER_BYTES + bytes) / 2);
    }

    fn is_refused(&self) -> bool {
        match open(&self.env, &self.store) {
            Err(RecoverError::Damaged { .. }) => true,
            Err(error) => panic!("{error}"),
            Ok(_) => false,
        }
    }

    fn repair(&self) -> Repair {
        journal::open(&self.env, &self.store, settings()).unwrap().repair().unwrap()
    }

    /// Opens the store and holds its log against what was once written.
    fn is_as_before(&self, what: &str) -> Recovered {
        let (journal, entries, recovered) =
            open(&self.env, &self.store).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(entries, self.all, "{what}");
        let (_, read) = journal.read(Sn(0), Sn(u64::MAX), usize::MAX).unwrap();
        assert_eq!(read, self.all, "{what}");
        recovered
    }

    /// Fills every hole from the log as it was, and opens the store.
    fn heals(&self, what: &str) -> Recovered {
        let mut repair = self.repair();
        repair.fill(&self.all);
        for hole in repair.holes() {
            assert!(hole.last.is_none(), "{what}: {hole} is missing still");
            let rest = &self.all[hole.after.0 as usize..];
            assert!(repair.continue_with(&hole, rest, false), "{what}");
        }
        assert!(repair.is_whole(), "{what}");
        let is_suspect = repair.mend().unwrap().is_suspect;
        let recovered = self.is_as_before(what);
        assert_eq!(recovered.is_suspect, is_suspect, "{what}");
        recovered
    }
}

fn open(env: &Env, directory: &Path) -> Result<(Journal, Vec<Entry>, Recovered), RecoverError> {
    let mut recovery = journal::open(env, directory, settings()).unwrap();
    recovery.load_image(|reader| reader.read_to_end(&mut Vec::new()))?;
    let mut entries = Vec::new();
    let (journal, recovered) = recovery.replay(|entry| {
        entries.push(entry);
        Ok(())
    })?;
    entries.extend(recovered.tail.iter().cloned());
    Ok((journal, entries, recovered))
}

fn append(journal: &Journal, epoch: u64, batches: u64, all: &mut Vec<Entry>) {
    for batch in 0..batches {
        let mut end = journal.end();
        let entries: Vec<Entry> = (0..1 + batch % 3)
            .map(|n| {
                let sn = end.id.sn.0 + 1;
                let payload = Bytes::from(vec![sn as u8; (40 + (sn * 37 + n * 911) % 5_000) as usize]);
                let entry = Entry::after(end, Epoch(epoch), EntryKind::Operation, payload);
                end = entry.point();
                entry
            })
            .collect();
        all.extend(entries.iter().cloned());
        append_all(journal, entries);
    }
}

fn append_all(journal: &Journal, entries: Vec<Entry>) {
    let (sender, receiver) = mpsc::channel();
    journal.append(entries, Box::new(move |result| sender.send(result.map(drop)).unwrap())).unwrap();
    receiver.recv().unwrap().unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_hole_at_every_place_is_filled_from_another_copy() {
    let story = Story::new();
    let last = story.all.len() as u64;
    for sn in 1..=last {
        for part in ["header", "payload"] {
            story.restore();
            if part == "header" {
                story.flip_header(sn)
            } else {
                story.flip_payload(sn)
            }
            let what = format!("the {part} of entry {sn} of {last}");
            assert!(story.is_refused(), "{what}");
            let recovered = story.heals(&what);
            assert_eq!(recovered.is_suspect, sn == last, "{what}: only the end of the log is uncertain");
        }
    }
}

#[test]
fn two_holes_side_by_side_and_at_the_edge_of_segments_are_filled() {
    let story = Story::new();
    for sn in 1..story.all.len() as u64 {
        story.restore();
        story.flip_header(sn);
        story.flip_payload(sn + 1);
        story.heals(&format!("entries {sn} and {}", sn + 1));
    }
}

#[test]
fn headers_and_footers_of_segments_lost_files_and_files_cut_short_are_made_good() {
    let story = Story::new();
    let count = story.segments().len();
    assert!(count >= 4, "{count} segments");
    for index in 0..count {
        story.restore();
        let path = story.segments()[index].clone();
        let length = fs::metadata(&path).unwrap().len() as usize;
        let is_open = path.extension().is_some();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();

        story.flip(&path, 100.min(length - 1));
        story.flip(&path, 33);
        story.heals(&format!("the header of {name}"));

        if !is_open {
            story.restore();
            story.flip(&path, length - 4096 + 30);
            assert!(story.is_refused());
            story.heals(&format!("the footer of {name}"));
        }

        story.restore();
        fs::remove_file(&path).unwrap();
        if story.is_refused() {
            story.heals(&format!("{name}, lost"));
        } else {
            assert_eq!(index + 1, count, "only what is behind the known end may go unnoticed");
        }

        story.restore();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length as u64 / 2).unwrap();
        assert!(story.is_refused());
        story.heals(&format!("{name}, cut short"));

        story.restore();
        let mut bytes = fs::read(&path).unwrap();
        bytes[4096..8192].fill(0);
        fs::write(&path, bytes).unwrap();
        assert!(story.is_refused());
        story.heals(&format!("{name}, with a block of zeros"));
    }
}

/// Nothing tells then what the file held, and all of it may have been acknowledged.
#[test]
fn a_last_file_cut_before_its_first_record_leaves_the_end_in_doubt() {
    let story = Story::new();
    let path = story.segments().pop().unwrap();
    assert!(path.extension().is_some(), "it was being written");
    for length in [0, 1, 64, 2_000, 4_095, 4_096, 4_097, 8_191] {
        story.restore();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        let what = format!("cut to {length} bytes");
        assert!(story.is_refused(), "{what}");
        let repair = story.repair();
        let holes = repair.holes();
        assert!(holes.len() == 1 && holes[0].last.is_none() && !repair.is_whole(), "{what}: {holes:?}");
        assert!(!repair.is_end_certain(), "{what}");
        drop(repair);
        let recovered = story.heals(&what);
        assert!(recovered.is_suspect, "{what}");
    }
}

#[test]
fn every_record_of_a_log_damaged_in_every_second_is_filled_from_two_halves() {
    let story = Story::new();
    let last = story.all.len() as u64;
    for sn in (1..last).step_by(2) {
        story.flip_payload(sn);
    }
    let mut repair = story.repair();
    assert_eq!(repair.holes().len() as u64, last / 2);
    let (first, second): (Vec<Entry>, Vec<Entry>) =
        story.all.iter().cloned().partition(|it| it.id.sn.0 % 3 == 0);
    repair.fill(&first);
    assert!(!repair.is_whole());
    repair.fill(&second);
    assert!(repair.is_whole());
    repair.mend().unwrap();
    story.is_as_before("two halves");
}

#[test]
fn a_copy_that_differs_fills_nothing_and_the_hole_keeps_its_name() {
    let story = Story::new();
    let records = story.records();
    let sn = (4..).find(|sn| records[sn].0 == records[&(sn + 1)].0).expect("two entries in one segment");
    let at = sn as usize - 1;
    story.flip_payload(sn);
    story.flip_header(sn + 1);
    let mut repair = story.repair();
    let forge = |entry: &Entry| Entry { payload: Bytes::from_static(b"another"), ..entry.clone() };
    let forged: Vec<Entry> = story.all.iter().map(forge).collect();
    assert_eq!(repair.fill(&forged), 0);
    assert_eq!(repair.fill(&story.all[..at]), 0, "a log that ends before it");
    let names = |repair: &Repair| repair.holes().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&repair), [format!("entries {sn} to {}", sn + 1)]);
    assert!(!repair.is_whole());
    // The right one between wrong ones is found.
    assert_eq!(repair.fill(&[forged[at + 1].clone(), story.all[at + 1].clone()]), 1);
    assert_eq!(names(&repair), [format!("entry {sn}")]);
    assert_eq!(repair.fill(&story.all[at..=at]), 1);
    assert!(repair.is_whole());
    drop(repair);
    assert!(story.is_refused(), "nothing is changed before the store is mended");
}

#[test]
fn all_that_is_intact_is_there_for_others() {
    let story = Story::new();
    let last = story.all.len() as u64;
    let damaged = [1, 7, 8, 20, last];
    for sn in damaged {
        story.flip_payload(sn);
    }
    let repair = story.repair();
    for bytes_max in [0, 10_000, usize::MAX] {
        let (mut read, mut at) = (Vec::new(), Sn(0));
        while let Some((point, entries)) = repair.read(at, Sn(u64::MAX), bytes_max).unwrap() {
            assert_eq!(point.chain, entries[0].previous_chain);
            at = entries.last().unwrap().id.sn;
            read.extend(entries);
        }
        let intact: Vec<Entry> =
            story.all.iter().filter(|it| !damaged.contains(&it.id.sn.0)).cloned().collect();
        assert_eq!(read, intact);
    }
    assert!(!repair.is_end_certain());
    assert_eq!(repair.written(), Sn(last), "something stood where the log's end has rotted");
}

#[test]
fn what_was_replaced_is_kept_and_a_repaired_log_goes_on() {
    let story = Story::new();
    let damaged = story.records()[&5].0.clone();
    story.flip_payload(5);
    let content = fs::read(&damaged).unwrap();
    let mut repair = story.repair();
    repair.fill(&story.all);
    let mended = repair.mend().unwrap();
    assert_eq!(mended.written.len(), 1);
    assert!(!mended.is_suspect);
    assert_eq!(fs::read(mended.kept_in.join(damaged.file_name().unwrap())).unwrap(), content);
    let (journal, mut all, _) = open(&story.env, &story.store).unwrap();
    append(&journal, 3, 5, &mut all);
    drop(journal);
    let (_, entries, _) = open(&story.env, &story.store).unwrap();
    assert_eq!(entries, all);
}

#[test]
fn a_log_whose_end_has_rotted_goes_on_with_another_end_and_never_below_what_has_committed() {
    let story = Story::new();
    let last = story.all.len() as u64;
    story.flip_payload(last - 3);
    let repair = story.repair();
    let hole = repair.holes()[0];
    assert_eq!((hole.after, hole.last.map(|(last, _)| last)), (Sn(last - 4), Some(Sn(last - 3))));
    drop(repair);

    // Another member led on from there: what this log held behind the hole had never committed.
    let other = Entry::after(
        story.all[last as usize - 5].point(),
        Epoch(3),
        EntryKind::Operation,
        Bytes::from_static(b"other"),
    );
    let mut repair = story.repair();
    assert!(!repair.continue_with(&hole, &story.all[last as usize - 3..], false), "these do not follow");
    assert!(repair.continue_with(&hole, std::slice::from_ref(&other), false));
    assert!(repair.mend().unwrap().is_suspect);
    let (_, entries, recovered) = open(&story.env, &story.store).unwrap();
    assert_eq!(entries.last(), Some(&other));
    assert_eq!(entries.len() as u64, last - 3);
    assert!(recovered.is_suspect);

    // Entries that are known to have committed are given up by order only.
    story.restore();
    let (journal, ..) = open(&story.env, &story.store).unwrap();
    journal.note_commit(Sn(last - 1));
    journal.persist_commit().unwrap();
    journal.close().unwrap();
    drop(journal);
    story.flip_payload(last - 3);
    let mut repair = story.repair();
    let hole = repair.holes()[0];
    assert!(!repair.continue_with(&hole, &[], false));
    assert!(repair.continue_with(&hole, &[], true));
    let end = repair.mend().unwrap().end;
    assert_eq!(end, story.all[last as usize - 5].point());
    let (journal, entries, recovered) = open(&story.env, &story.store).unwrap();
    assert_eq!(entries, story.all[..last as usize - 4]);
    assert_eq!(recovered.end, end);
    assert_eq!(journal.state().generation, 1, "nobody counts on what it held");
}

/// Writes an image of the text at the log's end and makes it usable.
fn image(journal: &Journal, all: &mut Vec<Entry>, text: &str) -> Checkpoint {
    let checkpoint = journal.write_image(journal.end(), |writer| writer.write(text.as_bytes())).unwrap();
    let entry = Entry::after(journal.end(), Epoch(9), EntryKind::Checkpoint, checkpoint.encode());
    all.push(entry.clone());
    append_all(journal, vec![entry]);
    journal.note_commit(journal.end().id.sn);
    journal.checkpoint_committed(&checkpoint).unwrap();
    checkpoint
}

/// A store with two images and a log that begins between its first entry and the older of them.
fn with_images() -> (Story, Vec<Checkpoint>) {
    let story = Story::new();
    let (journal, mut all, _) = open(&story.env, &story.store).unwrap();
    journal.note_commit(journal.end().id.sn);
    let mut images = Vec::new();
    for epoch in 9..=11 {
        append(&journal, 9, epoch, &mut all);
        images.push(image(&journal, &mut all, &format!("the {epoch}. image")));
    }
    append(&journal, 12, 6, &mut all);
    journal.close().unwrap();
    drop(journal);
    assert!(!story.records().contains_key(&1), "the log was purged behind the older image");
    let _ = fs::remove_dir_all(&story.sound);
    copy(&story.store, &story.sound);
    let kept = images[1..].to_vec();
    (Story { all, ..story }, kept)
}

fn image_path(story: &Story, image: &Checkpoint) -> PathBuf {
    story.store.join("images").join(image.file_name())
}

/// The content of an image, handed out in pieces of 50 bytes like another member does it.
fn pieces(content: Vec<u8>) -> impl FnMut(u64) -> Result<Bytes, String> {
    move |at| Ok(Bytes::copy_from_slice(&content[at as usize..content.len().min(at as usize + 50)]))
}

#[test]
fn one_image_of_two_is_enough_and_where_both_are_gone_another_member_has_them() {
    let (story, images) = with_images();
    let whole: Vec<Vec<u8>> = images.iter().map(|it| fs::read(image_path(&story, it)).unwrap()).collect();
    story.flip(&image_path(&story, &images[1]), 80);
    assert!(!story.is_refused(), "the one before it and the log suffice");

    for newest in [true, false] {
        story.restore();
        images.iter().for_each(|it| story.flip(&image_path(&story, it), 80));
        assert!(story.is_refused());
        let mut repair = story.repair();
        assert!(repair.needs_image() && !repair.is_whole());
        assert_eq!(repair.images(), []);
        let at = usize::from(newest);
        let spoilt = fs::read(image_path(&story, &images[at])).unwrap();
        let taking = repair.begin_image(&images[at]);
        assert!(taking.fetch(pieces(spoilt)).is_err(), "it has another digest");
        taking.fetch(pieces(whole[at].clone())).unwrap();
        repair.adopt_image(taking).unwrap();
        assert!(!repair.needs_image() && repair.is_whole());
        repair.mend().unwrap();
        let (_, entries, _) = open(&story.env, &story.store).unwrap();
        let behind = images[at].at.id.sn.0 as usize;
        assert_eq!(entries, story.all[behind..]);
    }
}

#[test]
fn a_newer_image_of_another_member_stands_for_entries_that_no_log_has_any_more() {
    let (story, images) = with_images();
    let whole = fs::read(image_path(&story, &images[1])).unwrap();
    // The newer image is gone, and between the two an entry.
    let lost = images[0].at.id.sn.0 + 3;
    fs::remove_file(image_path(&story, &images[1])).unwrap();
    story.flip_payload(lost);
    assert!(story.is_refused());
    let mut repair = story.repair();
    assert!(!repair.is_whole());
    assert_eq!(repair.holes().len(), 1);
    assert!(repair.fits(&images[1]));
    let elsewhere = Checkpoint { at: LogPoint { chain: base::Chain(7), ..images[1].at }, ..images[1] };
    assert!(!repair.fits(&elsewhere), "made of another log");
    let taking = repair.begin_image(&images[1]);
    taking.fetch(pieces(whole)).unwrap();
    repair.adopt_image(taking).unwrap();
    assert!(repair.is_whole(), "the image contains it");
    assert!(!repair.holes().iter().any(|hole| hole.is_needed));
    repair.mend().unwrap();
    let (_, entries, _) = open(&story.env, &story.store).unwrap();
    assert_eq!(entries, story.all[images[1].at.id.sn.0 as usize..]);
}

#[test]
fn a_hole_before_the_image_hinders_nobody_and_is_filled_all_the_same_if_it_can() {
    let (story, images) = with_images();
    // In the segment that the newest image is in the middle of, before it.
    let at = images[1].at.id.sn.0;
    let records = story.records();
    let (path, ..) = &records[&(at + 1)];
    let first = records.iter().find(|(_, (of, ..))| of == path).map(|(sn, _)| *sn).unwrap();
    assert!(first + 1 < at, "{first} {at}");
    for fill in [true, false] {
        story.restore();
        story.flip_header(first);
        assert!(story.is_refused());
        let mut repair = story.repair();
        assert!(repair.is_whole());
        assert_eq!(repair.holes().len(), 1);
        if fill {
            repair.fill(&story.all);
            assert_eq!(repair.holes(), []);
        }
        repair.mend().unwrap();
        let (journal, entries, _) = open(&story.env, &story.store).unwrap();
        assert_eq!(entries, story.all[at as usize..]);
        let (_, read) = journal.read(Sn(first + 1), Sn(u64::MAX), usize::MAX).unwrap();
        assert_eq!(read, story.all[first as usize + 1..]);
        let older = journal.read(Sn(first - 1), Sn(first), usize::MAX);
        assert_eq!(older.is_ok(), fill, "{older:?}");
    }
}
