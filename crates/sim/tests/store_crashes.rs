//! Power is lost at every step of cutting a log, packing it, installing an image and giving a store up: what is there at the
//! next start is the old store or the new one, never something between.

use base::{Entry, EntryKind, Epoch, GroupId, LogPoint, MemberId, Sn};
use bytes::Bytes;
use env::{
    Disk, Env, File, OpenMode, WriteDone,
    disk::{Lock, Space},
};
use journal::{Checkpoint, Identity, Journal, Recovered, Settings};
use sim::{Dice, Loss, SimClock, SimDisk, SimRandom};
use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

const STORE: &str = "/s";

/// A disk whose power goes after a number of changes: whatever is asked of it from then on fails.
#[derive(Clone)]
struct Failing {
    disk: SimDisk,
    /// Changes left.
    left: Arc<AtomicI64>,
}

struct FailingFile {
    file: Arc<dyn File>,
    disk: Failing,
}

impl Failing {
    fn new(disk: SimDisk, left: i64) -> Self {
        Self { disk, left: Arc::new(AtomicI64::new(left)) }
    }

    fn change(&self) -> io::Result<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 { Ok(()) } else { Err(io::Error::other("no power")) }
    }

    fn is_off(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }
}

impl Disk for Failing {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if matches!(mode, OpenMode::CreateNew | OpenMode::CreateOrTruncate) {
            self.change()?;
        }
        Ok(Arc::new(FailingFile { file: self.disk.open(path, mode)?, disk: self.clone() }))
    }
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        self.disk.create_directory(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?;
        self.disk.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        self.disk.remove_file(path)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        self.disk.remove_directory(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }
    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_directory(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        self.disk.sync_directory(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Disk::lock(&self.disk, path)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        self.disk.space(path)
    }
}

impl File for FailingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.change()?;
        self.file.write_at(bytes, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.disk.change()?;
        self.file.sync_data()
    }
    fn submit_write_sync(self: Arc<Self>, bytes: Bytes, offset: u64, done: WriteDone) {
        match self.disk.change() {
            Ok(()) => {
                self.file.clone().submit_write_sync(bytes, offset, done);
                self.disk.disk.complete_all();
            }
            Err(error) => done(Err(error)),
        }
    }
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.disk.change()?;
        self.file.set_length(length)
    }
    fn allocate(&self, length: u64) -> io::Result<()> {
        self.disk.change()?;
        self.file.allocate(length)
    }
}

fn env(disk: Arc<dyn Disk>) -> Env {
    let random = Arc::new(SimRandom::new(Dice::new(1)));
    Env {
        clock: Arc::new(SimClock::new()),
        disk,
        random,
        descriptors: Arc::new(env::Descriptors::new(1 << 20)),
    }
}

fn settings() -> Settings {
    Settings { segment_bytes: 16 << 10, reserve_bytes: 0, ..Settings::default() }
}

fn format(disk: &SimDisk, member: u32) {
    let identity = Identity { cluster_id: "CID-x".into(), group: GroupId(0), member: MemberId(member) };
    journal::format(&env(Arc::new(disk.clone())), Path::new(STORE), &identity).unwrap();
}

struct Opened {
    journal: Journal,
    image: Option<LogPoint>,
    /// Behind the image, committed or not.
    entries: Vec<Entry>,
    recovered: Recovered,
}

fn open(disk: Arc<dyn Disk>) -> Result<Opened, String> {
    open_with(disk, settings())
}

fn open_with(disk: Arc<dyn Disk>, settings: Settings) -> Result<Opened, String> {
    let text =
        |error: &dyn std::error::Error| format!("{error}: {:?}", error.source().map(|e| e.to_string()));
    let mut recovery = journal::open(&env(disk), Path::new(STORE), settings).map_err(|error| text(&error))?;
    let image = recovery
        .load_image(|reader| io::copy(reader, &mut io::sink()))
        .map_err(|error| text(&error))?
        .map(|(at, _)| at);
    let mut entries = Vec::new();
    let (journal, recovered) = recovery
        .replay(|entry| {
            entries.push(entry);
            Ok(())
        })
        .map_err(|error| text(&error))?;
    entries.extend(recovered.tail.iter().cloned());
    Ok(Opened { journal, image, entries, recovered })
}

/// Appends batches of up to four entries; everything is durable when it returns.
fn append(disk: &SimDisk, journal: &Journal, epoch: u64, batches: u64) -> Vec<Entry> {
    let mut all = Vec::new();
    for batch in 0..batches {
        let mut end = journal.end();
        let entries: Vec<Entry> = (0..1 + batch % 4)
            .map(|n| {
                let payload = Bytes::from(vec![epoch as u8; ((batch * 700 + n * 1300) % 4000) as usize]);
                let entry = Entry::after(end, Epoch(epoch), EntryKind::Operation, payload);
                end = entry.point();
                entry
            })
            .collect();
        all.extend(entries.iter().cloned());
        journal.append(entries, Box::new(|result| assert!(result.is_ok()))).unwrap();
        disk.complete_all();
    }
    assert_eq!(journal.durable(), journal.end().id.sn);
    all
}

/// How much of what was not synced is there after the power has gone.
const LOSSES: [Loss; 4] = [Loss::All, Loss::Nothing, Loss::ProcessOnly, Loss::Random];

/// Does it over and over, the power going one step later each time, until it ends by itself; after each loss
/// of power `check` sees the disk. Returns the number of steps.
fn at_every_step(
    before: &SimDisk,
    act: impl Fn(&Failing) -> bool,
    mut check: impl FnMut(&SimDisk, &str),
) -> i64 {
    for step in 0.. {
        let mut is_done = false;
        for (number, loss) in LOSSES.into_iter().enumerate() {
            let disk = before.copy_with(Dice::new(step as u64 * 7 + number as u64));
            let failing = Failing::new(disk.clone(), step);
            is_done = act(&failing) && !failing.is_off();
            disk.crash(loss);
            check(&disk, &format!("step {step}, {loss:?}"));
        }
        if is_done {
            return step;
        }
    }
    unreachable!("it ends by itself")
}

#[test]
fn a_log_whose_cutting_was_interrupted_is_a_beginning_of_it_and_has_what_was_to_stay() {
    let before = SimDisk::new(Dice::new(3));
    format(&before, 1);
    let mut all = Vec::new();
    // Two lives: segments sealed by a start, by being full, and an open one.
    for (epoch, batches) in [(1, 9), (2, 9)] {
        let opened = open(Arc::new(before.clone())).unwrap();
        all.extend(append(&before, &opened.journal, epoch, batches));
    }
    before.crash(Loss::All);
    let segments = before.files().iter().filter(|(path, _)| path.starts_with("/s/log")).count();
    assert!(segments >= 4, "{segments} files");
    let mut steps = 0;
    for keep in (0..all.len()).step_by(6) {
        let after = all[..keep].last().map(Entry::point).unwrap_or_default();
        let mut was_cut = 0;
        steps += at_every_step(
            &before,
            |disk| open(Arc::new(disk.clone())).is_ok_and(|opened| opened.journal.cut(after).is_ok()),
            |disk, when| {
                let opened = open(Arc::new(disk.clone())).unwrap_or_else(|error| {
                    let untrusted = error.contains("not trusted");
                    assert!(untrusted, "{when}, cut after {keep}: {error}");
                    journal::accept_fault(&env(Arc::new(disk.clone())), Path::new(STORE)).unwrap();
                    disk.crash(Loss::All);
                    open(Arc::new(disk.clone())).unwrap()
                });
                let found = opened.entries.len();
                assert!(found >= keep, "{when}: {found} entries are left of {keep}");
                assert_eq!(opened.entries, all[..found], "{when}");
                was_cut += u64::from(found == keep);
                // And it goes on from there, with other entries under the same numbers.
                let _ = opened.journal.cut(after).unwrap();
                let more = append(disk, &opened.journal, 7, 3);
                drop(opened);
                disk.crash(Loss::All);
                let opened = open(Arc::new(disk.clone())).unwrap();
                assert_eq!(opened.entries, [&all[..keep], &more].concat(), "{when}");
            },
        );
        assert!(was_cut > 0);
    }
    assert!(steps > 100, "{steps} steps");
}

#[test]
fn a_log_whose_packing_was_interrupted_has_every_entry() {
    let before = SimDisk::new(Dice::new(5));
    format(&before, 1);
    let small = |journal: &Journal| {
        let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, Bytes::from_static(b"small"));
        journal.append(vec![entry.clone()], Box::new(|result| assert!(result.is_ok()))).unwrap();
        before.complete_all();
        entry
    };
    // Fifteen blocks of entries, of which one is enough.
    let open = |disk: Arc<dyn Disk>| open_with(disk, Settings { segment_bytes: 68 << 10, ..settings() });
    let opened = open(Arc::new(before.clone())).unwrap();
    let all: Vec<Entry> = (0..50).map(|_| small(&opened.journal)).collect();
    assert_eq!(opened.journal.sealed().len(), 3);
    drop(opened);
    before.crash(Loss::All);
    let bytes = |disk: &SimDisk| -> usize {
        let log = disk.files().into_iter().filter(|(path, _)| path.starts_with("/s/log"));
        log.map(|(_, content)| content.len()).sum()
    };
    let (most, least) = (std::cell::Cell::new(0), std::cell::Cell::new(usize::MAX));
    let steps = at_every_step(
        &before,
        |disk| {
            open(Arc::new(disk.clone())).is_ok_and(|opened| {
                while let Ok(Some(_)) = opened.journal.pack_segment() {}
                !disk.is_off()
            })
        },
        |disk, when| {
            let opened = open(Arc::new(disk.clone())).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert_eq!(opened.entries, all, "{when}");
            most.set(bytes(disk).max(most.get()));
            least.set(bytes(disk).min(least.get()));
        },
    );
    assert!(steps > 40, "{steps} steps");
    assert!(least.get() < 13 * 4096 && most.get() > 50 * 4096, "{} to {} bytes", least.get(), most.get());
}

#[test]
fn a_promise_that_is_durable_is_not_written_again() {
    let before = SimDisk::new(Dice::new(8));
    format(&before, 1);
    let failing = Failing::new(before.clone(), i64::MAX);
    let changes = || i64::MAX - failing.left.load(Ordering::SeqCst);
    let opened = open(Arc::new(failing.clone())).unwrap();
    let at_start = changes();
    let _proof = opened.journal.promise(Epoch(4)).unwrap();
    let once = changes();
    assert_eq!(once - at_start, 3, "two slots, one sync");
    for _ in 0..5 {
        let _proof = opened.journal.promise(Epoch(4)).unwrap();
    }
    assert_eq!(changes(), once, "the same promise is durable");
    assert!(opened.journal.promise(Epoch(3)).is_err(), "and goes back for nobody");
    let _proof = opened.journal.promise(Epoch(5)).unwrap();
    assert_eq!(changes(), once + 3);
    drop(opened);
    // The next life has it from the disk: its files were made with it.
    before.crash(Loss::All);
    let opened = open(Arc::new(failing.clone())).unwrap();
    let at_start = changes();
    let _proof = opened.journal.promise(Epoch(5)).unwrap();
    assert_eq!(changes(), at_start);
    drop(opened);
    before.crash(Loss::All);
    assert_eq!(open(Arc::new(before)).unwrap().journal.state().promised, Epoch(5));
}

#[test]
fn a_promise_whose_sync_has_failed_is_made_to_nobody_who_asks_again() {
    for step in 0..3 {
        let disk = SimDisk::new(Dice::new(10 + step));
        format(&disk, 1);
        let failing = Failing::new(disk, i64::MAX);
        let opened = open(Arc::new(failing.clone())).unwrap();
        let _proof = opened.journal.promise(Epoch(4)).unwrap();
        failing.left.store(step as i64, Ordering::SeqCst);
        assert!(opened.journal.promise(Epoch(5)).is_err(), "step {step}");
        // The disk works again; this life of the store does not.
        failing.left.store(i64::MAX, Ordering::SeqCst);
        for epoch in [4, 5, 6] {
            assert!(opened.journal.promise(Epoch(epoch)).is_err(), "step {step}, epoch {epoch}");
        }
    }
}

/// An image of another member, and the checkpoint that names it.
fn made_elsewhere() -> (Checkpoint, Vec<u8>) {
    let disk = SimDisk::new(Dice::new(9));
    format(&disk, 2);
    let journal = open(Arc::new(disk.clone())).unwrap().journal;
    append(&disk, &journal, 1, 20);
    let checkpoint = journal.write_image(journal.end(), |writer| writer.write(&[7; 9000])).unwrap();
    let file = journal.open_image(&checkpoint).unwrap();
    let mut bytes = vec![0; checkpoint.file_bytes as usize];
    env::disk::read_exact_at(&*file, &mut bytes, 0).unwrap();
    (checkpoint, bytes)
}

#[test]
fn a_store_whose_renewal_was_interrupted_is_the_old_one_or_the_new_one() {
    let (checkpoint, bytes) = made_elsewhere();
    let before = SimDisk::new(Dice::new(4));
    format(&before, 1);
    let opened = open(Arc::new(before.clone())).unwrap();
    let old = append(&before, &opened.journal, 1, 6);
    let _ = opened.journal.promise(Epoch(3)).unwrap();
    drop(opened);
    before.crash(Loss::All);

    let renew = |disk: &Failing| -> Result<(), String> {
        let opened = open(Arc::new(disk.clone()))?;
        let mut staged = opened.journal.stage(checkpoint).map_err(|error| error.to_string())?;
        while !staged.is_complete() {
            let at = staged.have() as usize;
            let chunk = &bytes[at..(at + 4000).min(bytes.len())];
            staged.write_chunk(at as u64, chunk).map_err(|error| error.to_string())?;
        }
        let image = staged.finish().map_err(|error| error.to_string())?;
        opened.journal.install(image).map_err(|error| error.to_string())?;
        drop(opened);
        open(Arc::new(disk.clone())).map(drop)
    };
    let (mut was_old, mut was_new) = (0, 0);
    let steps = at_every_step(
        &before,
        |disk| renew(disk).is_ok(),
        |disk, when| {
            let opened = match open(Arc::new(disk.clone())) {
                Ok(opened) => opened,
                Err(error) => {
                    // The power went while the state was written: to the journal a failed disk.
                    assert!(error.contains("not trusted"), "{when}: {error}");
                    return;
                }
            };
            let state = opened.journal.state();
            assert_eq!(state.promised, Epoch(3), "{when}: a promise is for good");
            match opened.image {
                None => {
                    was_old += 1;
                    assert_eq!((&opened.entries, state.generation), (&old, 0), "{when}");
                    // The download goes on, and the second attempt succeeds.
                    drop(opened);
                    renew(&Failing::new(disk.clone(), i64::MAX)).unwrap();
                    assert_eq!(open(Arc::new(disk.clone())).unwrap().image, Some(checkpoint.at));
                }
                Some(at) => {
                    was_new += 1;
                    assert_eq!((at, opened.recovered.end), (checkpoint.at, checkpoint.at), "{when}");
                    assert_eq!((opened.entries.len(), state.generation), (0, 0), "{when}");
                }
            }
        },
    );
    assert!(steps > 30 && was_old > 20 && was_new > 20, "{steps} steps, {was_old} old, {was_new} new");
}

#[test]
fn a_store_whose_giving_up_was_interrupted_is_the_old_one_or_empty() {
    let before = SimDisk::new(Dice::new(6));
    format(&before, 1);
    let opened = open(Arc::new(before.clone())).unwrap();
    let old = append(&before, &opened.journal, 1, 6);
    opened.journal.note_commit(Sn(4));
    let checkpoint = opened.journal.write_image(old[3].point(), |writer| writer.write(b"four")).unwrap();
    opened.journal.checkpoint_committed(&checkpoint).unwrap();
    drop(opened);
    before.crash(Loss::All);
    let give_up = |disk: &Failing| -> Result<(), String> {
        let opened = open(Arc::new(disk.clone()))?;
        opened.journal.note_commit(Sn(5));
        opened.journal.persist_commit().map_err(|error| error.to_string())?;
        opened.journal.distrust("the story of this test").map_err(|error| error.to_string())?;
        drop(opened);
        open(Arc::new(disk.clone())).map(drop)
    };
    let (mut was_old, mut was_empty) = (0, 0);
    at_every_step(
        &before,
        |disk| give_up(disk).is_ok(),
        |disk, when| {
            let opened = match open(Arc::new(disk.clone())) {
                Ok(opened) => opened,
                Err(error) => return assert!(error.contains("not trusted"), "{when}: {error}"),
            };
            if opened.journal.state().generation == 0 {
                was_old += 1;
                assert_eq!((opened.image, &opened.entries[..]), (Some(checkpoint.at), &old[4..]), "{when}");
            } else {
                was_empty += 1;
                assert_eq!((opened.image, opened.recovered.end), Default::default(), "{when}");
                // The commit mark of the last life does not apply to the empty store.
                assert_eq!(opened.journal.state().known_commit, Sn(0), "{when}");
            }
        },
    );
    assert!(was_old > 10 && was_empty > 10, "{was_old} old, {was_empty} empty");
}
