//! A clock that stands still while its server works, as under a hypervisor: a lease that it measures never ends.

mod cluster;

use base::{Moment, Timestamp};
use cluster::{Cluster, Plan, way::Way};
use env::{Clock, Env, SystemClock};
use metad::LastResort;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The machine's clock, until it is stopped.
#[derive(Clone, Default)]
struct StandingClock {
    /// The moment at which it stands; 0 while it goes.
    stands_at_ns: Arc<AtomicU64>,
}

impl StandingClock {
    fn stop(&self) {
        self.stands_at_ns.store(SystemClock.moment().ns, Ordering::Release);
    }

    fn go_on(&self) {
        self.stands_at_ns.store(0, Ordering::Release);
    }
}

impl Clock for StandingClock {
    fn timestamp(&self) -> Timestamp {
        SystemClock.timestamp()
    }

    fn moment(&self) -> Moment {
        match self.stands_at_ns.load(Ordering::Acquire) {
            0 => SystemClock.moment(),
            ns => Moment { ns },
        }
    }
}

struct Story {
    cluster: Cluster,
    /// The clock of each member, by its number less one.
    clocks: Vec<StandingClock>,
    ways: Vec<Way>,
}

impl Story {
    async fn start(confirm_reads: bool) -> Self {
        let clocks: Vec<StandingClock> = (0..3).map(|_| StandingClock::default()).collect();
        let ways: Vec<Way> = (0..3).map(|_| Way::default()).collect();
        let (of_members, to_coordinator) = (clocks.clone(), ways.clone());
        let plan = Plan::group(3).in_worlds(move |member| {
            let clock = Arc::new(of_members[member as usize - 1].clone());
            (Env { clock, ..Env::production() }, LastResort::default())
        });
        let plan = plan.adjusted(move |member, config| {
            to_coordinator[member as usize - 1].lay(&mut config.group.coordinator);
            config.group.confirm_reads = confirm_reads;
        });
        Self { cluster: plan.start().await, clocks, ways }
    }

    /// The member hears nothing and is heard by nobody, and its clock stands.
    fn strike(&self, member: u32) {
        self.clocks[member as usize - 1].stop();
        self.ways[member as usize - 1].cut();
        self.cluster.cables.pull(member);
    }

    fn mend(&self, member: u32) {
        self.ways[member as usize - 1].mend();
        self.clocks[member as usize - 1].go_on();
        self.cluster.cables.plug_in(member);
    }

    /// How often the coordinator was asked to confirm a view.
    fn confirmations(&self) -> u64 {
        self.ways.iter().map(Way::confirmations).sum()
    }

    /// Whether a path exists, by the answer of a member.
    async fn exists(&self, member: u32, path: &str) -> Result<bool, String> {
        let answer = cluster::exists(&self.cluster.client(member), path).await;
        answer.map_err(|error| error.to_string())
    }
}

/// The active is cut off and its clock stands, another member takes over and makes a directory.
async fn deposed_without_knowing(story: &Story) -> (u32, u32) {
    let first = story.cluster.wait_for_active(&[]).await;
    story.cluster.wait_in_sync(first, 3).await;
    story.cluster.mkdirs(first, "/before").await;
    story.strike(first);
    let second = story.cluster.wait_for_active(&[first]).await;
    story.cluster.mkdirs(second, "/after").await;
    assert!(story.cluster.server(first).replica().may_answer(), "by its own clock its lease lives");
    (first, second)
}

/// The documents say so, and name the setting that helps.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_rests_on_a_lease_is_old_where_the_clock_stands() {
    let story = Story::start(false).await;
    let (first, _) = deposed_without_knowing(&story).await;
    assert_eq!(story.exists(first, "/before").await, Ok(true));
    assert_eq!(story.exists(first, "/after").await, Ok(false));
    assert_eq!(story.confirmations(), 0, "nobody asked");
    story.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_the_coordinator_confirms_is_never_old() {
    let story = Story::start(true).await;
    let (first, second) = deposed_without_knowing(&story).await;
    let refusal = story.exists(first, "/after").await.expect_err("it cannot know");
    assert!(refusal.contains("could not be confirmed"), "{refusal}");

    let before = story.confirmations();
    for _ in 0..5 {
        assert_eq!(story.exists(second, "/after").await, Ok(true));
    }
    assert!(story.confirmations() >= before + 5, "each was asked about");
    assert_eq!(story.exists(second, "/nowhere").await, Ok(false));

    story.mend(first);
    story.cluster.wait_in_sync(second, 3).await;
    assert_eq!(story.exists(first, "/after").await, Ok(true), "it passes the question on");
    story.cluster.end().await;
}

/// Answers that wait share one question: many clients cost the coordinator no more than a few.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_wait_share_one_question() {
    const CLIENTS: u64 = 64;
    let story = Arc::new(Story::start(true).await);
    let active = story.cluster.wait_for_active(&[]).await;
    story.cluster.wait_in_sync(active, 3).await;
    let before = story.confirmations();
    let ask = |_| {
        let story = story.clone();
        tokio::spawn(async move {
            for _ in 0..20 {
                assert_eq!(story.exists(active, "/").await, Ok(true));
            }
        })
    };
    for asking in (0..CLIENTS).map(ask).collect::<Vec<_>>() {
        asking.await.unwrap();
    }
    let questions = story.confirmations() - before;
    println!("{questions} questions for {} reads", CLIENTS * 20);
    assert!(questions < CLIENTS * 20, "{questions}");
}
