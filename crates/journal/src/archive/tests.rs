use super::*;
use crate::{Checkpoint, image::ImageHeader, image::ImageWriter};
use base::{Entry, EntryKind, Epoch, GroupId, Level, LogPoint};
use bytes::Bytes;
use env::{Env, OpenMode};
use std::{io::Read, ops::ControlFlow};

fn whose(of: &str) -> Whose {
    Whose {
        cluster_id: of.into(),
        namespace_id: 7,
        block_pool: format!("BP-of-{of}"),
        created_ms: 1_000,
        root_owner: "a name of its own".into(),
        root_group: "supergroup".into(),
        group: GroupId(1),
        first_level: Level::NEWEST,
    }
}

/// An entry's time is the first number of its text.
fn time_of(entry: &Entry) -> Option<u64> {
    String::from_utf8_lossy(&entry.payload).split(' ').next()?.parse().ok()
}

fn open(directory: &Path) -> Result<Archiver, ArchiveError> {
    // Small segments, so that several are made.
    Archiver::open_with(&Env::production(), directory, &whose("A"), 16 << 10, &time_of)
}

/// Makes `count` entries that follow `after`.
fn entries(after: LogPoint, epoch: u64, count: u64) -> Vec<Entry> {
    let mut at = after;
    let mut all = Vec::new();
    for _ in 0..count {
        let text = format!("{} {}", (at.id.sn.0 + 1) * 10, "x".repeat(at.id.sn.0 as usize % 900));
        let entry = Entry::after(at, Epoch(epoch), EntryKind::Operation, Bytes::from(text));
        at = entry.point();
        all.push(entry);
    }
    all
}

/// Archives so many more entries, in rounds of `round`.
fn add(archiver: &mut Archiver, epoch: u64, count: u64, round: u64) -> LogPoint {
    let all = entries(archiver.end().unwrap(), epoch, count);
    for some in all.chunks(round as usize) {
        archiver.append(some).unwrap();
        archiver.sync(Epoch(epoch), some.last().and_then(time_of), None).unwrap();
    }
    archiver.end().unwrap()
}

fn begun(directory: &Path) -> Archiver {
    let mut archiver = open(directory).unwrap();
    archiver.begin_span(None, Some(1_000)).unwrap();
    archiver
}

fn backup(directory: &Path) -> Backup {
    Backup::open(Env::production().disk, directory).unwrap()
}

/// The sns that a span gives, or what is wrong.
fn read(directory: &Path) -> Result<Vec<u64>, ArchiveError> {
    let backup = backup(directory);
    let mut found = Vec::new();
    for span in &backup.manifest().spans {
        let _ = backup.walk(span, |entry| {
            found.push(entry.id.sn.0);
            ControlFlow::<()>::Continue(())
        })?;
    }
    Ok(found)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let files = segments(&*Env::production().disk, directory).unwrap();
    files.into_iter().map(|file| file.path).collect()
}

/// Changes one byte.
fn spoil(path: &Path, at: u64) {
    let file = Env::production().disk.open(path, OpenMode::ReadWrite).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn what_was_archived_is_read_back_and_a_later_run_goes_on_behind_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut archiver = begun(directory.path());
    let end = add(&mut archiver, 1, 100, 7);
    drop(archiver);
    assert_eq!(read(directory.path()).unwrap(), (1..=100).collect::<Vec<_>>());
    assert!(files(directory.path()).len() > 2, "it has several segments");

    let mut archiver = open(directory.path()).unwrap();
    assert_eq!(archiver.end(), Some(end));
    add(&mut archiver, 3, 50, 50);
    archiver.seal().unwrap();
    drop(archiver);
    assert_eq!(read(directory.path()).unwrap(), (1..=150).collect::<Vec<_>>());
    let found = backup(directory.path());
    let span = &found.manifest().spans[0];
    assert_eq!((span.end_ms, span.begin_ms), (Some(1_500), Some(1_000)));
    assert_eq!(found.manifest().epoch, Epoch(3));
    let checked = found.check(span).unwrap();
    assert_eq!(checked.entries, 150);
    assert!(files(directory.path()).iter().all(|path| !path.to_string_lossy().ends_with(".open")));
}

#[test]
fn a_directory_of_another_cluster_or_of_other_things_is_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    drop(begun(directory.path()));
    let other = Archiver::open(&Env::production(), directory.path(), &whose("B"), &time_of);
    assert!(matches!(other, Err(ArchiveError::Foreign { .. })));
    let busy = open(directory.path()).unwrap();
    assert!(matches!(open(directory.path()), Err(ArchiveError::InUse { .. })));
    drop(busy);

    let strange = tempfile::tempdir().unwrap();
    std::fs::write(strange.path().join("letter"), "mine").unwrap();
    let refused = open(strange.path()).err().unwrap();
    assert!(refused.to_string().contains("letter"), "{refused}");
    let names: Vec<_> =
        std::fs::read_dir(strange.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["letter"]);
    assert!(matches!(
        Backup::open(Env::production().disk, strange.path()),
        Err(ArchiveError::NoBackup { .. })
    ));
}

#[test]
fn an_interrupted_run_is_taken_up_again_wherever_it_was_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let mut archiver = begun(directory.path());
    add(&mut archiver, 1, 10, 10);
    // Written, and not told in the manifest.
    archiver.append(&entries(archiver.end().unwrap(), 1, 5)).unwrap();
    drop(archiver);
    let open_file = files(directory.path()).pop().unwrap();
    let whole = std::fs::read(&open_file).unwrap();
    let manifest = std::fs::read(directory.path().join("manifest.0")).unwrap();
    let told = whole.len() - 4096;
    for length in (told - 4096..=whole.len()).step_by(401).chain([whole.len()]) {
        std::fs::write(&open_file, &whole[..length]).unwrap();
        let taken_up = open(directory.path());
        if length < told - 1_000 {
            // The end of what the manifest vouches for is gone.
            if let Err(error) = taken_up {
                assert!(error.is_damage(), "{error}");
                continue;
            }
        }
        let mut archiver = taken_up.unwrap();
        let end = archiver.end().unwrap().id.sn.0;
        assert!((10..=15).contains(&end), "{end} after {length} bytes");
        assert_eq!(archiver.manifest().spans[0].end_ms, Some(end * 10));
        add(&mut archiver, 2, 3, 1);
        drop(archiver);
        assert_eq!(read(directory.path()).unwrap(), (1..=end + 3).collect::<Vec<_>>());
        // The backup is put back to its state before the archiver was opened.
        for path in files(directory.path()) {
            std::fs::remove_file(path).unwrap();
        }
        for name in ["manifest.0", "manifest.1"] {
            std::fs::write(directory.path().join(name), &manifest).unwrap();
        }
    }
}

#[test]
fn a_byte_that_has_changed_and_a_file_that_is_gone_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let mut archiver = begun(directory.path());
    add(&mut archiver, 1, 200, 20);
    archiver.seal().unwrap();
    drop(archiver);
    let all = files(directory.path());
    assert!(all.len() >= 3);
    for at in [4_100, 4_300, 4_096 + 8] {
        spoil(&all[1], at);
        let error = read(directory.path()).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains(&all[1].display().to_string()), "{error}");
        spoil(&all[1], at);
    }
    assert_eq!(read(directory.path()).unwrap().len(), 200);

    let (middle, last) = (all[1].clone(), all.last().unwrap().clone());
    let kept = std::fs::read(&middle).unwrap();
    std::fs::remove_file(&middle).unwrap();
    assert!(matches!(read(directory.path()), Err(ArchiveError::Gap { .. })));
    std::fs::write(&middle, kept).unwrap();
    std::fs::remove_file(last).unwrap();
    assert!(matches!(read(directory.path()), Err(ArchiveError::Gap { .. })));
    assert!(open(directory.path()).err().unwrap().is_damage(), "nothing is added to it");

    // One copy of the manifest is enough, whichever it is.
    let copies = ["manifest.0", "manifest.1"].map(|name| directory.path().join(name));
    let text = std::fs::read(&copies[0]).unwrap();
    std::fs::remove_file(&copies[0]).unwrap();
    assert!(open(directory.path()).err().unwrap().is_damage(), "it is known for a backup");
    std::fs::write(&copies[0], text).unwrap();

    spoil(&directory.path().join("manifest.0"), 30);
    assert!(backup(directory.path()).finding().unwrap().contains("manifest.0"));
    spoil(&directory.path().join("manifest.1"), 30);
    let error = Backup::open(Env::production().disk, directory.path()).err().unwrap();
    assert!(matches!(error, ArchiveError::Manifest { .. }), "{error}");
}

#[test]
fn an_entry_of_another_history_is_not_taken() {
    let directory = tempfile::tempdir().unwrap();
    let mut archiver = begun(directory.path());
    add(&mut archiver, 1, 10, 10);
    let mut other = archiver.end().unwrap();
    other.chain = base::Chain(other.chain.0 ^ 1);
    assert!(matches!(archiver.append(&entries(other, 1, 1)), Err(ArchiveError::Diverged { .. })));
    let mut later = archiver.end().unwrap();
    later.id.sn = Sn(later.id.sn.0 + 1);
    assert!(matches!(archiver.append(&entries(later, 1, 1)), Err(ArchiveError::Diverged { .. })));
    add(&mut archiver, 1, 1, 1);
}

/// An image file as a member makes it, and the checkpoint that names it.
fn image(directory: &Path, at: LogPoint, text: &str) -> (Checkpoint, Vec<u8>) {
    let path = directory.join("made");
    let file = Env::production().disk.open(&path, OpenMode::CreateOrTruncate).unwrap();
    let header = ImageHeader { group: GroupId(1), at, store_uuid: [3; 16] };
    let mut writer = ImageWriter::new(file, &header).unwrap();
    writer.write(text.as_bytes()).unwrap();
    let checkpoint = writer.finish().unwrap();
    (checkpoint, std::fs::read(path).unwrap())
}

#[test]
fn an_image_is_resumed_and_checked_and_a_second_span_begins_with_it() {
    let (directory, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut archiver = begun(directory.path());
    let end = add(&mut archiver, 1, 10, 10);
    let at = entries(end, 2, 20).pop().unwrap().point();
    let (checkpoint, bytes) = image(beside.path(), at, &"all of it ".repeat(300_000));

    let mut staged = archiver.stage(checkpoint).unwrap().unwrap();
    staged.write(&bytes[..2_500_000]).unwrap();
    drop(staged);
    // The backup goes on from the last whole chunk, and fetches the bytes after it again.
    let mut staged = archiver.stage(checkpoint).unwrap().unwrap();
    let have = staged.have() as usize;
    assert!((2_000_000..=2_500_000).contains(&have), "{have}");
    staged.write(&bytes[have..]).unwrap();
    assert!(staged.is_complete());
    staged.finish().unwrap();
    assert!(archiver.stage(checkpoint).unwrap().is_none(), "it is there");
    archiver.begin_span(Some(checkpoint), None).unwrap();
    add(&mut archiver, 2, 5, 5);
    drop(archiver);

    let found = backup(directory.path());
    assert_eq!(found.manifest().spans.len(), 2);
    let span = &found.manifest().spans[1];
    let text = found.read_image(span, |reader| {
        let mut text = String::new();
        reader.read_to_string(&mut text).map(|_| text)
    });
    assert_eq!(text.unwrap().unwrap().len(), 3_000_000);
    assert_eq!(read(directory.path()).unwrap(), (1..=10).chain(31..=35).collect::<Vec<_>>());
    drop(open(directory.path()).unwrap());

    let path = directory.path().join(IMAGES).join(checkpoint.file_name());
    spoil(&path, 1_500_000);
    let error = backup(directory.path()).check(span).unwrap_err();
    assert!(error.is_damage(), "{error}");
    std::fs::remove_file(path).unwrap();
    assert!(open(directory.path()).err().unwrap().is_damage(), "a backup without its image is not added to");
}

#[test]
fn an_image_that_came_broken_is_thrown_away() {
    let (directory, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archiver = open(directory.path()).unwrap();
    let at = entries(LogPoint::default(), 2, 20).pop().unwrap().point();
    let (checkpoint, mut bytes) = image(beside.path(), at, "all of it");
    bytes[70] ^= 1;
    let mut staged = archiver.stage(checkpoint).unwrap().unwrap();
    staged.write(&bytes).unwrap();
    assert!(staged.finish().unwrap_err().is_damage());
    assert_eq!(archiver.stage(checkpoint).unwrap().unwrap().have(), 0);
}

#[test]
fn a_manifest_of_another_version_is_told_as_such_and_nonsense_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(begun(directory.path()));
    let text = String::from_utf8(std::fs::read(directory.path().join("manifest.0")).unwrap()).unwrap();
    let (body, _) = text.rsplit_once("crc32c").unwrap();
    let body = body.replace("clover backup 1", "clover backup 2");
    let later = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
    std::fs::write(directory.path().join("manifest.1"), &later).unwrap();
    assert!(matches!(open(directory.path()), Err(ArchiveError::Version { .. })));

    let body = body.replace("clover backup 2", "clover backup 1");
    let ours = format!("first_level={}\n", Level::NEWEST);
    assert!(body.contains(&ours));
    let body = body.replace(&ours, "first_level=9\n");
    let later = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
    for name in ["manifest.0", "manifest.1"] {
        std::fs::write(directory.path().join(name), &later).unwrap();
    }
    let error = open(directory.path()).err().unwrap();
    assert!(!error.is_damage() && error.to_string().contains("a newer one"), "{error}");

    for nonsense in ["", "\n", "crc32c 00000000\n", "a\nb\n", "clover backup 1\ncrc32c 0\n"] {
        assert!(Manifest::decode(nonsense.as_bytes()).is_err(), "{nonsense:?}");
    }
    let mut bad = whose("A");
    bad.root_owner = "a\nb".into();
    assert!(Archiver::open(&Env::production(), tempfile::tempdir().unwrap().path(), &bad, &time_of).is_err());
}
