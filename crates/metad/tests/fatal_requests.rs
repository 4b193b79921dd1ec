//! A request that makes a member panic is refused by the next one, and does not end it as well.

mod cluster;

use base::{Moment, Timestamp};
use cluster::{Plan, set_safe_mode, until};
use env::{Clock, Env, SystemClock};
use metad::LastResort;
use proto::hdfs as p;
use std::{
    sync::{
        Arc,
        atomic::{AtomicI32, AtomicU32, Ordering},
    },
    thread,
};

/// A clock that makes the writer of its member panic within an operation: when it has been asked so often by that thread.
struct Trap {
    left: Arc<AtomicI32>,
    sprung: Arc<AtomicU32>,
}

impl Trap {
    fn look(&self) {
        if thread::current().name() == Some("meta-writer")
            && self.left.load(Ordering::Acquire) > 0
            && self.left.fetch_sub(1, Ordering::AcqRel) == 1
        {
            self.sprung.fetch_add(1, Ordering::AcqRel);
            panic!("planted by a test");
        }
    }
}

impl Clock for Trap {
    fn timestamp(&self) -> Timestamp {
        self.look();
        SystemClock.timestamp()
    }

    fn moment(&self) -> Moment {
        self.look();
        SystemClock.moment()
    }
}

/// A turn asks twice before it comes to its first operation; a refusal because of safe mode asks a third time.
const WITHIN_THE_OPERATION: i32 = 3;

fn arm(traps: &[Arc<AtomicI32>], member: u32) {
    traps[member as usize - 1].store(WITHIN_THE_OPERATION, Ordering::Release);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_ends_a_member_ends_no_other_one() {
    // This panic hook is that of the binary, except that it does not end the process. It prints no trace: on a busy
    // machine that takes longer than a thread may hang.
    std::panic::set_hook(Box::new(|panic| {
        println!("{panic}");
        if let Some(note) = metad::note_request_in_hand() {
            println!("{note}");
        }
    }));
    let traps: Vec<Arc<AtomicI32>> = (0..3).map(|_| Arc::default()).collect();
    let sprung: Arc<AtomicU32> = Arc::default();
    let (known, counted) = (traps.clone(), sprung.clone());
    let plan = Plan::group(3).in_worlds(move |member| {
        let clock = Trap { left: known[member as usize - 1].clone(), sprung: counted.clone() };
        (Env { clock: Arc::new(clock), ..Env::production() }, LastResort::default())
    });
    let (mut cluster, first) = plan.in_sync().await;
    cluster.mkdirs(first, "/before").await;

    for member in 1..=3 {
        set_safe_mode(&cluster.client(member), p::SafeModeActionProto::SafemodeEnter).await;
    }
    let client = cluster.client(first);
    arm(&traps, first);
    let call = tokio::spawn(async move { cluster::try_mkdirs(&client, "/fatal").await });
    let second = cluster.wait_for_active(&[first]).await;
    assert_eq!(sprung.load(Ordering::Acquire), 1, "one member has panicked");
    println!("its client hears: {:?}", call.await.unwrap());

    // The request would be as fatal there.
    arm(&traps, second);
    let refused = cluster::try_mkdirs(&cluster.client(second), "/fatal").await.unwrap_err().to_string();
    assert!(refused.contains("This mkdirs request is refused: it has ended metadata server"), "{refused}");
    assert!(refused.contains("fatal-requests"), "where the note lies: {refused}");
    assert_eq!(sprung.load(Ordering::Acquire), 1, "the second has not begun with it");

    // Every other request is let through, and comes to its end where it is not fatal.
    traps.iter().for_each(|trap| trap.store(0, Ordering::Release));
    for member in cluster.others(first) {
        set_safe_mode(&cluster.client(member), p::SafeModeActionProto::SafemodeLeave).await;
    }
    cluster.mkdirs(second, "/after").await;

    // All have it in writing: the one that died by itself, before it ended.
    let noted = |cluster: &cluster::Cluster, member: u32| {
        let text = std::fs::read_to_string(cluster.name_directory(member).join("fatal-requests"));
        text.is_ok_and(|text| text.contains("\npanic number=") && text.contains(" method=mkdirs "))
    };
    assert!(noted(&cluster, first));
    for member in 1..=3 {
        until("each member notes it", async || noted(&cluster, member)).await;
    }
    cluster.kill(first).await;
    cluster.restart(first).await;
    cluster.wait_in_sync(second, 3).await;
    let refused = cluster::try_mkdirs(&cluster.client(first), "/fatal").await.unwrap_err().to_string();
    assert!(refused.contains("is refused: it has ended"), "after its restart, too: {refused}");

    // The file is taken away under any member that runs: all forget it.
    std::fs::remove_file(cluster.name_directory(second).join("fatal-requests")).unwrap();
    until("the request is let through", async || {
        matches!(cluster::try_mkdirs(&cluster.client(second), "/fatal").await, Ok(true))
    })
    .await;
    for member in 1..=3 {
        until("no member refuses it", async || !noted(&cluster, member)).await;
    }
    cluster.end().await;
}
