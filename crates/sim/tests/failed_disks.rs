//! Stores whose disk has failed, taken back: what the system shows of a file is not what the medium holds.

use base::{Entry, EntryKind, Epoch, GroupId, MemberId, Sn};
use bytes::Bytes;
use env::{Disk, Env};
use journal::{Accepted, FailedStore, Identity, Journal, RecoverError, Recovered, Settings, Word};
use sim::{Dice, Loss, SimClock, SimDisk, SimRandom, disk::Fault};
use std::{path::Path, sync::Arc};

const STORE: &str = "/s";

fn env(disk: &SimDisk) -> Env {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let random = Arc::new(SimRandom::new(Dice::new(1)));
    let descriptors = Arc::new(env::Descriptors::new(1 << 20));
    Env { clock: Arc::new(SimClock::new()), disk, random, descriptors }
}

fn new_store(seed: u64) -> SimDisk {
    let disk = SimDisk::new(Dice::new(seed));
    let identity = Identity { cluster_id: "CID-x".into(), group: GroupId(0), member: MemberId(1) };
    journal::format(&env(&disk), Path::new(STORE), &identity).unwrap();
    disk
}

/// Opens the store; all entries that it has.
fn open(disk: &SimDisk) -> Result<(Journal, Recovered, Vec<Entry>), String> {
    open_with(disk, 16 << 10)
}

fn open_with(disk: &SimDisk, segment_bytes: u64) -> Result<(Journal, Recovered, Vec<Entry>), String> {
    let settings = Settings { segment_bytes, reserve_bytes: 0, ..Settings::default() };
    let recovery =
        journal::open(&env(disk), Path::new(STORE), settings).map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    let apply = |entry| {
        entries.push(entry);
        Ok(())
    };
    let (journal, recovered) = recovery.replay(apply).map_err(|error| error.to_string())?;
    entries.extend(recovered.tail.iter().cloned());
    Ok((journal, recovered, entries))
}

/// Appends entries, a batch each; how many were acknowledged.
fn append(disk: &SimDisk, journal: &Journal, count: usize) -> (Vec<Entry>, usize) {
    let acknowledged = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut all = Vec::new();
    for _ in 0..count {
        let payload = Bytes::from(vec![7; 100 + all.len() * 331 % 3_000]);
        let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, payload);
        let told = acknowledged.clone();
        let done = move |result: Result<base::Durable, Arc<journal::Fault>>| {
            told.fetch_add(usize::from(result.is_ok()), std::sync::atomic::Ordering::SeqCst);
        };
        if journal.append(vec![entry.clone()], Box::new(done)).is_err() {
            break;
        }
        all.push(entry);
        disk.complete_all();
    }
    (all, acknowledged.load(std::sync::atomic::Ordering::SeqCst))
}

fn failed(disk: &SimDisk) -> FailedStore {
    FailedStore::open(&env(disk), Path::new(STORE)).unwrap().expect("the disk of this store has failed")
}

#[test]
fn what_only_the_systems_memory_shows_is_not_taken_back() {
    let mut shown_and_not_there = 0;
    for sync in 0..40 {
        let disk = new_store(sync);
        let (journal, ..) = open(&disk).unwrap();
        disk.fail_sync(sync, Fault::Io);
        let (all, acknowledged) = append(&disk, &journal, 60);
        assert!(acknowledged < all.len(), "the sync that fails is one of these");
        drop(journal);
        // The process alone is started again: the system still shows what never reached the medium.
        disk.crash(Loss::ProcessOnly);
        assert!(open(&disk).map(drop).unwrap_err().contains("not trusted"));
        let store = failed(&disk);
        assert_eq!(store.durable(), Sn(acknowledged as u64), "the note says how far it was durable");
        let looked = store.end().unwrap();
        let taken = store.take_back(Word::Member).unwrap();
        assert_eq!(taken.end, looked);
        assert!(taken.end.id.sn.0 >= acknowledged as u64);
        shown_and_not_there += usize::from(taken.end.id.sn.0 < all.len() as u64);

        // And it is as durable as anything else from then on.
        disk.crash(Loss::All);
        let (_journal, recovered, entries) = open(&disk).unwrap();
        assert_eq!(entries, all[..taken.end.id.sn.0 as usize]);
        assert!(recovered.is_suspect, "it claims only when all others have answered");
    }
    assert!(shown_and_not_there > 20, "{shown_and_not_there}");
}

#[test]
fn a_store_is_taken_back_whole_or_not_at_all_when_the_power_goes_meanwhile() {
    for loss in [Loss::All, Loss::Nothing, Loss::Random] {
        for step in 0..12 {
            let disk = new_store(step);
            let (journal, ..) = open(&disk).unwrap();
            append(&disk, &journal, 30);
            disk.fail_sync(0, Fault::Io);
            append(&disk, &journal, 1);
            drop(journal);
            disk.crash(Loss::ProcessOnly);
            disk.fail_sync(step, Fault::Io);
            let first = failed(&disk).take_back(Word::Member);
            disk.crash(loss);
            if let Some(again) = FailedStore::open(&env(&disk), Path::new(STORE)).unwrap() {
                assert!(first.is_err());
                again.take_back(Word::Member).unwrap();
            }
            let (_journal, recovered, entries) = open(&disk).unwrap();
            assert!(entries.len() >= 30 && recovered.is_suspect, "{loss:?}, {step}: {}", entries.len());
        }
    }
}

#[test]
fn a_medium_that_lacks_what_had_been_durable_is_found_out_and_a_persons_word_is_needed() {
    let lying = || {
        let disk = new_store(5);
        let (journal, ..) = open_with(&disk, 1 << 20).unwrap();
        append(&disk, &journal, 10);
        disk.lie_about_syncs();
        append(&disk, &journal, 5);
        disk.fail_sync(0, Fault::Io);
        append(&disk, &journal, 1);
        drop(journal);
        disk.crash(Loss::ProcessOnly);
        disk
    };
    let error = failed(&lying()).take_back(Word::Member).unwrap_err();
    assert!(matches!(&error, RecoverError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("up to entry 15, which had been durable"), "{error}");

    let disk = lying();
    let accepted = journal::accept_fault(&env(&disk), Path::new(STORE)).unwrap();
    let Accepted::TakenBack(taken) = accepted else { panic!("{accepted:?}") };
    assert_eq!((taken.end.id.sn, taken.durable), (Sn(10), Sn(15)), "and the person is told what is gone");
    assert!(matches!(journal::accept_fault(&env(&disk), Path::new(STORE)).unwrap(), Accepted::Nothing));
}

#[test]
fn want_of_room_is_no_failed_disk() {
    for (write, sync) in [(true, false), (false, true)] {
        let disk = new_store(6);
        let (journal, ..) = open(&disk).unwrap();
        append(&disk, &journal, 10);
        if write {
            disk.fail_write(0, Fault::Full);
        }
        if sync {
            disk.fail_sync(0, Fault::Full);
        }
        let (_, acknowledged) = append(&disk, &journal, 3);
        assert_eq!(acknowledged, 0, "this life ends with it");
        drop(journal);
        disk.crash(Loss::ProcessOnly);
        let (_journal, _, entries) = open(&disk).expect("nothing is held against the store");
        assert!(entries.len() >= 10, "{}", entries.len());
    }
}
