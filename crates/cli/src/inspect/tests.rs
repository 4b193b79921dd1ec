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
    Args { paths: Vec::new(), from: 0, to: u64::MAX, deep: true, verify: false, json }
}

/// Whether it is sound, and what was printed.
fn shown(path: &Path, args: &Args) -> (bool, String) {
    let env = Env::production();
    let mut out = Vec::new();
    let is_sound = match kind(&*env.disk, path).unwrap() {
        Kind::Store(store) => store::show(&*env.disk, &store, args, &mut out).unwrap(),
        Kind::Segment => segment::show(path, args, &mut out).unwrap(),
        Kind::Image => image::show(&*env.disk, path, args, &mut out).unwrap(),
        Kind::DataDirectory => data_directory::show(&env, path, args, &mut out).unwrap(),
        Kind::Replica => replica::show(&*env.disk, path, args, &mut out).unwrap(),
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

/// A data directory with one replica of 1,000 bytes in chunks of 512, and the path of its block file.
fn data_directory(name: &str) -> (Place, PathBuf) {
    let place = Place::new(name);
    let current = place.0.join("current");
    let pool = current.join("BP-1-127.0.0.1-2/current");
    let shelf = pool.join("finalized/subdir0/subdir0");
    std::fs::create_dir_all(&shelf).unwrap();
    let version =
        "storageID=DS-1\nclusterID=CID-1\ndatanodeUuid=u-1\nstorageType=DATA_NODE\nlayoutVersion=-57\n";
    std::fs::write(current.join("VERSION"), version).unwrap();
    let version = "namespaceID=7\nblockpoolID=BP-1-127.0.0.1-2\nlayoutVersion=-57\n";
    std::fs::write(pool.join("VERSION"), version).unwrap();
    let bytes = [5; 1_000];
    let checksum = blockstore::Checksum::DEFAULT;
    let mut meta = blockstore::meta_file::encode_header(checksum).to_vec();
    bytes.chunks(512).for_each(|chunk| meta.extend(checksum.sum(chunk)));
    let block = shelf.join("blk_1073741825");
    std::fs::write(&block, bytes).unwrap();
    std::fs::write(shelf.join("blk_1073741825_1001.meta"), meta).unwrap();
    (place, block)
}

#[test]
fn a_replica_tells_its_facts_and_a_damaged_one_where() {
    let (_place, block) = data_directory("replica");
    let (is_sound, text) = shown(&block, &args(false));
    assert!(is_sound, "{text}");
    for line in [
        "kind       a finished replica\n",
        "block      1073741825, generation stamp 1001\n",
        "checksum   CRC32C, one for each 512 bytes, 2 chunks\n",
        "verdict: sound; 2 chunks match their checksums\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    flip(&block, 700);
    let (is_sound, text) = shown(&block.with_file_name("blk_1073741825_1001.meta"), &args(false));
    assert!(!is_sound);
    assert!(text.contains("DAMAGED at offset 512: the chunk at offset 512 does not match"), "{text}");
    let (is_sound, line) = shown(&block, &args(true));
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(!is_sound);
    assert_eq!((&line["damage"][0]["offset"], &line["matching_chunks"]), (&512.into(), &1.into()));
}

#[test]
fn a_data_directory_tells_whose_it_is_and_reads_its_replicas_if_it_is_told_to() {
    let (place, block) = data_directory("data");
    std::fs::write(place.0.join("notes"), "x").unwrap();
    flip(&block, 3);
    let (is_sound, text) = shown(&place.0, &args(false));
    assert!(is_sound, "names and lengths are right: {text}");
    assert!(text.contains("cluster    CID-1\nserver     u-1\nstorage    DS-1\nlayout     -57\n"), "{text}");
    assert!(text.contains("finalized      1         1000          15"), "{text}");
    assert!(text.contains("notes is a file that no server uses"), "{text}");
    let verified = Args { verify: true, ..args(false) };
    let (is_sound, text) = shown(&place.0, &verified);
    assert!(!is_sound);
    assert!(text.contains("blk_1073741825 the chunk at offset 0 does not match its checksum"), "{text}");
    let (is_sound, line) = shown(&place.0, &Args { json: true, ..verified });
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(!is_sound);
    assert_eq!((&line["damage_count"], &line["stranger_count"]), (&1.into(), &1.into()));
    assert_eq!(line["pools"][0]["places"]["finalized"]["replicas"], 1);
}

#[test]
fn what_only_has_the_name_of_a_block_is_refused_in_words() {
    let (_place, block) = data_directory("hostile");
    let link = block.with_file_name("blk_2");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    let directory = block.with_file_name("blk_3");
    std::fs::create_dir(&directory).unwrap();
    let env = Env::production();
    for (path, what) in [(link, "is a symbolic link"), (directory, "is a directory")] {
        let error = replica::show(&*env.disk, &path, &args(false), &mut Vec::new()).unwrap_err();
        assert!(format!("{error:#}").ends_with(what), "{error:#}");
    }
    let pipe = block.with_file_name("pipe");
    let _socket = std::os::unix::net::UnixListener::bind(&pipe).unwrap();
    assert!(kind(&*env.disk, &pipe).err().unwrap().to_string().contains("is a pipe, a socket or a device"));
}
