use super::*;
use base::{GroupId, LogPoint};
use env::Env;
use journal::Journal;
use parking_lot::Mutex;
use std::path::Path;

const PIECE_BYTES: u32 = 1_000;

fn open(directory: &Path, member: u32) -> Journal {
    let env = Env::production();
    if !directory.exists() {
        let identity =
            journal::Identity { cluster_id: "CID-fetch".into(), group: GroupId(1), member: MemberId(member) };
        journal::format(&env, directory, &identity).unwrap();
    }
    let settings = journal::Settings { segment_bytes: 32 << 10, ..Default::default() };
    journal::open(&env, directory, settings).unwrap().replay(|_| Ok(())).unwrap().0
}

/// An image, and its file.
fn image(directory: &Path) -> (Checkpoint, Vec<u8>) {
    let journal = open(&directory.join("maker"), 1);
    let at = LogPoint { id: base::TxId { epoch: base::Epoch(1), sn: base::Sn(9) }, ..LogPoint::default() };
    let content: Vec<u8> = (0..20_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let checkpoint = journal.write_image(at, |writer| writer.write(&content)).unwrap();
    let file = journal.open_image(&checkpoint).unwrap();
    let mut bytes = vec![0; checkpoint.file_bytes as usize];
    env::disk::read_exact_at(&*file, &mut bytes, 0).unwrap();
    (checkpoint, bytes)
}

/// A member that has these bytes and dies after so many pieces.
struct Mortal<'a> {
    member: u32,
    bytes: &'a [u8],
    pieces_left: Mutex<usize>,
    asked: &'a Mutex<Vec<(u32, u64)>>,
}

impl Pieces for Mortal<'_> {
    fn member(&self) -> MemberId {
        MemberId(self.member)
    }

    fn read(&self, _: &Checkpoint, offset: u64, length: u32) -> Result<Bytes, String> {
        self.asked.lock().push((self.member, offset));
        let mut left = self.pieces_left.lock();
        *left = left.checked_sub(1).ok_or("it is gone")?;
        let from = offset as usize;
        Ok(Bytes::copy_from_slice(&self.bytes[from..from + length as usize]))
    }
}

fn means<'a>(progress: &'a Progress, bytes_per_second: u64, is_stopped: &'a dyn Fn() -> bool) -> Means<'a> {
    Means { progress, piece_bytes: PIECE_BYTES, bytes_per_second, is_stopped }
}

#[test]
fn when_a_source_dies_the_next_one_goes_on_at_the_same_piece() {
    let directory = tempfile::tempdir().unwrap();
    let (checkpoint, bytes) = image(directory.path());
    let taker = open(&directory.path().join("taker"), 2);
    let (asked, progress) = (Mutex::new(Vec::new()), Progress::default());
    let source =
        |member, pieces| Mortal { member, bytes: &bytes, pieces_left: Mutex::new(pieces), asked: &asked };
    let sources = [source(2, 3), source(3, 0), source(4, 100)];
    let staged = taker.stage(checkpoint).unwrap();
    let fetched = fetch(&means(&progress, 0, &|| false), &sources, staged).unwrap();
    assert_eq!(fetched.checkpoint(), &checkpoint);
    let asked = asked.lock();
    assert_eq!(asked[..6], [(2, 0), (2, 1_000), (2, 2_000), (2, 3_000), (3, 3_000), (4, 3_000)]);
    assert!(asked[6..].iter().all(|(member, offset)| *member == 4 && *offset > 3_000));
    assert_eq!(progress.get(), None, "nothing is being fetched any more");
}

#[test]
fn what_is_here_stays_when_nobody_has_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let (checkpoint, bytes) = image(directory.path());
    let taker = open(&directory.path().join("taker"), 2);
    let (asked, progress) = (Mutex::new(Vec::new()), Progress::default());
    let source = |pieces| Mortal { member: 2, bytes: &bytes, pieces_left: Mutex::new(pieces), asked: &asked };
    let mut staged = taker.stage(checkpoint).unwrap();
    let error = fetch_pieces(&means(&progress, 0, &|| false), &[source(7)], &mut staged, &checkpoint);
    assert!(error.unwrap_err().contains("no member has it whole"));
    assert_eq!(staged.have(), 7_000);
    fetch_pieces(&means(&progress, 0, &|| false), &[source(100)], &mut staged, &checkpoint).unwrap();
    staged.finish().unwrap();
}

#[test]
fn a_wrong_image_is_thrown_away_and_a_stop_is_heard() {
    let directory = tempfile::tempdir().unwrap();
    let (checkpoint, mut bytes) = image(directory.path());
    let taker = open(&directory.path().join("taker"), 2);
    let (asked, progress) = (Mutex::new(Vec::new()), Progress::default());
    bytes[5_000] ^= 1;
    let source = Mortal { member: 2, bytes: &bytes, pieces_left: Mutex::new(1_000), asked: &asked };
    let staged = taker.stage(checkpoint).unwrap();
    let error = fetch(&means(&progress, 0, &|| false), std::slice::from_ref(&source), staged).err().unwrap();
    assert!(error.contains("thrown away"), "{error}");
    let staged = taker.stage(checkpoint).unwrap();
    assert_eq!(staged.have(), 0);
    let stopped = fetch(&means(&progress, 0, &|| true), &[source], staged).err().unwrap();
    assert!(stopped.contains("stopping"), "{stopped}");
}

#[test]
fn a_fetch_is_no_faster_than_it_may_be() {
    let directory = tempfile::tempdir().unwrap();
    let (checkpoint, bytes) = image(directory.path());
    let taker = open(&directory.path().join("taker"), 2);
    let (asked, progress) = (Mutex::new(Vec::new()), Progress::default());
    let source = Mortal { member: 2, bytes: &bytes, pieces_left: Mutex::new(1_000), asked: &asked };
    let staged = taker.stage(checkpoint).unwrap();
    let began = Instant::now();
    // Twenty thousand bytes and a little.
    fetch(&means(&progress, 100_000, &|| false), &[source], staged).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(190), "{:?}", began.elapsed());
}

#[test]
fn the_pace_is_kept_within_a_second_too() {
    // (bytes a second, bytes of a piece that may have a million)
    let cases =
        [(0, 1_000_000), (50_000, 16_384), (400_000, 40_000), (5_000_000, 500_000), (128 << 20, 1_000_000)];
    for (pace, piece) in cases {
        assert_eq!(piece_within_pace(1_000_000, pace), piece, "{pace} bytes a second");
    }
    assert_eq!(piece_within_pace(1_000, 400_000), 1_000, "no more than was to be asked for at once");
}
