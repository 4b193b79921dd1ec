//! Disks that take seconds for everything: a member waits for its disk, and does not take it for a thread that hangs.

mod cluster;

use base::{Entry, EntryKind, Epoch, GroupId, MemberId};
use cluster::{Cluster, Plan, failing_disk::FailingDisk};
use env::{
    Env,
    pulse::{Pulse, Pulses},
};
use group::{Sign, Watch};
use journal::Journal;
use metad::{Ended, LastResort};
use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

/// Longer than a thread may stand.
const SLOW_MS: u64 = 1_300;

/// The reasons with which each member called its last resort, which ends a process.
type Resorts = Arc<Mutex<Vec<String>>>;

/// Small segments and frequent images, so that every kind of file is met.
async fn begin() -> (Cluster, Resorts) {
    let resorts = Resorts::default();
    let told = resorts.clone();
    let plan = Plan::group(3).in_worlds(move |member| {
        let told = told.clone();
        let end = move |reason: &str| told.lock().unwrap().push(format!("member {member}: {reason}"));
        (Env::production(), LastResort::new(end))
    });
    let plan = plan.adjusted(|_, config| {
        config.group.journal.segment_bytes = 64 << 10;
        config.edits_per_image = 100;
    });
    (plan.in_sync().await.0, resorts)
}

/// These members' disks are slow for a while, under load, and then as fast as before.
async fn nobody_ends_for(slow: impl Fn(u32, u32) -> bool) {
    let (mut cluster, resorts) = begin().await;
    let active = cluster.wait_for_active(&[]).await;
    let writers: Vec<_> = (0..3).map(|writer| cluster.write_until_told(writer)).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for member in (1..=3).filter(|member| slow(*member, active)) {
        cluster.disk_of(member).set_slow(SLOW_MS);
    }
    tokio::time::sleep(Duration::from_secs(12)).await;
    (1..=3).for_each(|member| cluster.disk_of(member).set_slow(0));
    cluster.say_stop();
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    assert_eq!(*resorts.lock().unwrap(), [""; 0], "threads were taken for dead");
    for member in 1..=3 {
        let ended = cluster.server(member).replica().ended().borrow().clone();
        assert!(!matches!(ended, Some(Ended::Failed(_))), "member {member}: {ended:?}");
    }
    let active = cluster.tend_until_active().await;
    println!("{} directories were acknowledged", acknowledged.len());
    for writer in 0..3 {
        let made = cluster.names(active, &format!("/{writer}")).await;
        for path in acknowledged.iter().filter(|path| path.starts_with(&format!("/{writer}/"))) {
            assert!(made.iter().any(|name| path.ends_with(name)), "{path} was acknowledged and is lost");
        }
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_active_whose_disk_takes_seconds_ends_not() {
    nobody_ends_for(|member, active| member == active).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn standbys_whose_disks_take_seconds_end_not() {
    nobody_ends_for(|member, active| member != active).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_whose_disks_all_take_seconds_end_not() {
    nobody_ends_for(|_, _| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_do_not_wait_while_a_slow_disk_begins_a_file() {
    let plan = Plan::group(1).adjusted(|_, config| config.group.journal.segment_bytes = 64 << 10);
    let (cluster, _) = plan.in_sync().await;
    cluster.mkdirs(1, "/kept").await;
    cluster.wait_until_equal().await;
    // Nearly enough to fill a file, one batch after the other.
    for number in 0..12 {
        cluster.mkdirs(1, &format!("/kept/{number}")).await;
    }
    cluster.disk_of(1).set_slow(300);
    let writer = cluster.write_until_told(7);
    let (began, mut slowest, mut count) = (Instant::now(), Duration::ZERO, 0);
    while began.elapsed() < Duration::from_secs(10) {
        let asked = Instant::now();
        assert_eq!(cluster.names(1, "/kept").await.len(), 12);
        slowest = slowest.max(asked.elapsed());
        count += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("{count} looks, the slowest took {} ms", slowest.as_millis());
    assert!(slowest < Duration::from_millis(1_000), "a look waited {slowest:?} for the disk");
    cluster.disk_of(1).set_slow(0);
    cluster.say_stop();
    writer.await.unwrap();
    cluster.end().await;
}

#[test]
fn a_write_that_fails_while_the_state_is_written_slowly_waits_for_the_disk() {
    let (directory, disk) = (tempfile::tempdir().unwrap(), FailingDisk::default());
    let env = Env { disk: Arc::new(disk.clone()), ..Env::production() };
    let store = directory.path().join("store");
    let identity =
        journal::Identity { cluster_id: "CID-slow".into(), group: GroupId(1), member: MemberId(1) };
    journal::format(&env, &store, &identity).unwrap();
    let settings = journal::Settings { segment_bytes: 64 << 10, reserve_bytes: 0, ..Default::default() };
    let journal = journal::open(&env, &store, settings).unwrap().replay(|_| Ok(())).unwrap().0;
    append(&journal).recv().unwrap().unwrap();
    let image = journal.write_image(journal.end(), |writer| writer.write(b"all of it")).unwrap();

    disk.set_slow(300);
    disk.set_failing(true);
    let pulses = Pulses::default();
    thread::scope(|scope| {
        // The state is written for three seconds, under its lock.
        let noting = scope.spawn(|| journal.checkpoint_committed(&image));
        thread::sleep(Duration::from_millis(400));
        let writing = scope.spawn(|| {
            let _watched = pulses.begin("writes");
            append(&journal).recv().unwrap().unwrap_err()
        });
        let (mut watch, mut rested) = (Watch::new(1_000), false);
        while !writing.is_finished() {
            let signs = pulses.all();
            rested |= signs.iter().any(|pulse| pulse.rests());
            let sign = |pulse: &Arc<Pulse>| Sign {
                number: pulse.number(),
                steps: pulse.steps(),
                rests: pulse.rests(),
            };
            let stands = watch.look(env.clock.moment(), 0, signs.iter().map(sign));
            assert!(!stands.is_some_and(|stands| stands.hangs), "it was taken for dead: {stands:?}");
            thread::sleep(Duration::from_millis(watch.look_ms()));
        }
        assert!(rested, "it waited for the disk");
        assert!(writing.join().unwrap().to_string().contains("the array is gone"));
        let _ = noting.join().unwrap();
    });
}

#[test]
fn a_thread_that_waits_for_room_in_the_log_shows_that_it_lives() {
    let (directory, disk) = (tempfile::tempdir().unwrap(), FailingDisk::default());
    let env = Env { disk: Arc::new(disk.clone()), ..Env::production() };
    let store = directory.path().join("store");
    let identity =
        journal::Identity { cluster_id: "CID-room".into(), group: GroupId(1), member: MemberId(1) };
    journal::format(&env, &store, &identity).unwrap();
    let settings = journal::Settings {
        flights_max: 1,
        waiting_bytes_max: 0,
        reserve_bytes: 0,
        ..journal::Settings::default()
    };
    let journal = journal::open(&env, &store, settings).unwrap().replay(|_| Ok(())).unwrap().0;
    append(&journal).recv().unwrap().unwrap();
    disk.set_slow(500);
    let pulses = Pulses::default();
    thread::scope(|scope| {
        // The first is under way for a second, and the second waits behind it.
        let written = [append(&journal), append(&journal)];
        let waiting = scope.spawn(|| {
            let _watched = pulses.begin("waits for room");
            let pulse = pulses.all().remove(0);
            journal.wait_for_room();
            pulse.steps()
        });
        while !waiting.is_finished() {
            assert!(
                pulses.all().iter().all(|pulse| !pulse.rests()),
                "it could be frozen, and nobody would notice"
            );
            thread::sleep(Duration::from_millis(5));
        }
        assert!(waiting.join().unwrap() >= 2, "it has counted its looks");
        disk.set_slow(0);
        written.iter().for_each(|written| written.recv().unwrap().unwrap());
    });
}

/// One entry more; what becomes of it.
fn append(journal: &Journal) -> mpsc::Receiver<Result<(), Arc<journal::Fault>>> {
    let (sender, receiver) = mpsc::channel();
    let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, "an edit".into());
    journal.append(vec![entry], Box::new(move |result| sender.send(result.map(drop)).unwrap())).unwrap();
    receiver
}
