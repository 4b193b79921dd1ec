use super::*;
use base::{Entry, Epoch, GroupId, LogPoint, MemberId, Timestamp};
use bytes::Bytes;
use std::{path::PathBuf, sync::mpsc};

/// A directory that goes away with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clover-inspect-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A store whose log has the start of an epoch and three edits, and that was closed.
fn store(name: &str) -> (Place, PathBuf) {
    let place = Place::new(name);
    let directory = place.0.join("group-1");
    let env = Env::production();
    let identity =
        journal::Identity { cluster_id: "CID-inspect".into(), group: GroupId(1), member: MemberId(7) };
    journal::format(&env, &directory, &identity).unwrap();
    let journal =
        journal::open(&env, &directory, journal::Settings::default()).unwrap().replay(|_| Ok(())).unwrap().0;
    let mut at = LogPoint::default();
    let mut entries = vec![Entry::after(at, Epoch(3), base::EntryKind::EpochStart, Bytes::new())];
    for number in 1..=3 {
        at = entries.last().unwrap().point();
        let edit = namespace::Edit {
            time: Timestamp::from_ms(1_700_000_000_000 + number),
            origin: None,
            dues: None,
            body: namespace::ops::Body::Cleanup(namespace::ops::cleanup::CleanupEdit { inodes: Vec::new() }),
        };
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        entries.push(Entry::after(at, Epoch(3), base::EntryKind::Operation, bytes.into()));
    }
    let (sender, receiver) = mpsc::channel();
    journal.append(entries, Box::new(move |done| sender.send(done.is_ok()).unwrap())).unwrap();
    assert!(receiver.recv().unwrap());
    let image = LogPoint { id: base::TxId { epoch: Epoch(3), sn: base::Sn(2) }, ..LogPoint::default() };
    let tree = namespace::Namespace::new(1, "root", "supergroup", Timestamp::from_ms(1));
    let tree = tree.freeze();
    journal.write_image(image, |writer| tree.write(&mut |bytes| writer.write(bytes))).unwrap();
    (place, directory)
}

fn only_file(directory: &Path) -> PathBuf {
    let files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    file.clone()
}

fn segment_of(store: &Path) -> PathBuf {
    let mut names = std::fs::read_dir(store.join("log")).unwrap().map(|file| file.unwrap().path());
    let is_segment = |path: &PathBuf| path.file_name().unwrap() != "spare";
    names.find(is_segment).unwrap()
}

fn args(json: bool) -> Args {
    Args { paths: Vec::new(), from: 0, to: u64::MAX, deep: true, json }
}

/// Whether it is sound, and what was printed.
fn shown(path: &Path, args: &Args) -> (bool, String) {
    let env = Env::production();
    let mut out = Vec::new();
    let is_sound = match kind(&*env.disk, path).unwrap() {
        Kind::Store(store) => store::show(&*env.disk, &store, args, &mut out).unwrap(),
        Kind::Segment => segment::show(path, args, &mut out).unwrap(),
        Kind::Image => image::show(&*env.disk, path, args, &mut out).unwrap(),
    };
    (is_sound, String::from_utf8(out).unwrap())
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[offset] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_store_tells_who_it_is_and_what_it_holds() {
    let (place, store) = store("store");
    let (is_sound, text) = shown(&place.0, &args(false));
    assert!(is_sound, "{text}");
    assert!(text.contains("cluster    CID-inspect"), "{text}");
    assert!(text.contains("group      1, member 7"), "{text}");
    assert!(text.ends_with("verdict: sound; 2 files read to the end\n"), "{text}");
    assert!(text.contains("3-1   3-4        4"), "the segment's first and last entry: {text}");
    let (is_sound, line) = shown(&store, &args(true));
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(is_sound);
    assert_eq!((&line["member"], &line["sound"]), (&7.into(), &true.into()));
    assert_eq!(line["files"].as_array().unwrap().len(), 2, "an image and a segment: {line}");
}

#[test]
fn a_segment_tells_its_entries_one_a_line() {
    let (_place, store) = store("segment");
    let segment = segment_of(&store);
    let (is_sound, text) = shown(&segment, &args(false));
    assert!(is_sound, "{text}");
    assert!(text.contains("3-1  EPOCH_START  0 bytes  epoch 3 begins"), "{text}");
    assert!(text.contains("2023-11-14T22:13:20.002Z  Cleanup inodes=[]"), "{text}");
    assert!(text.contains("4 entries up to 3-4/"), "{text}");
    assert!(text.ends_with("verdict: sound; each entry follows the one before it\n"), "{text}");
    let (_, text) = shown(&segment, &Args { from: 3, to: 3, ..args(false) });
    assert_eq!(text.matches("OPERATION").count(), 1, "only what was asked for: {text}");
    let (_, lines) = shown(&segment, &args(true));
    let sns: Vec<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["sn"].clone())
        .collect();
    assert_eq!(
        sns,
        [1, 2, 3, 4]
            .map(serde_json::Value::from)
            .into_iter()
            .chain([serde_json::Value::Null])
            .collect::<Vec<_>>()
    );
}

#[test]
fn of_a_damaged_segment_the_place_and_the_records_around_it_are_shown() {
    let (place, store) = store("damage");
    let segment = segment_of(&store);
    // The second record of the batch: behind the header block and the first, which has no payload.
    flip(&segment, 4096 + 72 + 20);
    let (is_sound, text) = shown(&segment, &args(false));
    assert!(!is_sound);
    assert!(text.contains("3-1  EPOCH_START"), "what is before it: {text}");
    assert!(text.contains("DAMAGED at offset 4168: expected entry"), "{text}");
    assert!(text.contains("records behind it whose headers can be read:"), "{text}");
    assert!(text.contains("3-3  kind 1") && text.contains("3-4  kind 1"), "{text}");
    let (is_sound, text) = shown(&place.0, &args(false));
    assert!(!is_sound && text.contains("DAMAGED at 4168"), "{text}");
}

#[test]
fn an_image_tells_its_counts_and_a_damaged_one_where() {
    let (_place, store) = store("image");
    let image = only_file(&store.join("images"));
    let (is_sound, text) = shown(&image, &args(false));
    assert!(is_sound, "{text}");
    assert!(text.contains("everything up to 3-2/"), "{text}");
    assert!(text.contains("0 files (0 being written), 1 directories, 0 blocks"), "{text}");
    flip(&image, 80);
    let (is_sound, text) = shown(&image, &args(false));
    assert!(!is_sound && text.contains("checksum"), "{text}");
}

#[test]
fn what_is_none_of_these_is_refused() {
    let place = Place::new("foreign");
    let file = place.0.join("notes");
    std::fs::write(&file, "hello").unwrap();
    let env = Env::production();
    let refused = |path: &Path| kind(&*env.disk, path).err().map(|error| format!("{error:#}")).unwrap();
    assert!(refused(&file).contains("is neither a segment nor an image"));
    assert!(refused(&place.0).contains("holds no metadata server's store"));
    assert!(refused(&place.0.join("gone")).contains("gone"));
}
