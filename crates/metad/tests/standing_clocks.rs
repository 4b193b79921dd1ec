//! A clock that stands still while its server works, as under a hypervisor: a lease that it measures never ends.

#[allow(dead_code, reason = "not every story needs all of it")]
mod cluster;

use base::{Epoch, GroupId, GroupView, MemberId, MemberLife, Moment, Timestamp};
use cluster::Cluster;
use coord::{Basis, ChangeError, Coordinator, Done, MemberRecord, ReadError, Version, Versioned, Watch};
use env::{Clock, Env, SystemClock};
use metad::{CoordinatorConfig, GroupConfig, LastResort, MetaConfig};
use proto::hdfs as p;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// One member's clock, and its way to the coordinator.
#[derive(Default)]
struct Surroundings {
    /// The moment at which the clock stands; 0 while it goes.
    stands_at_ns: AtomicU64,
    is_cut_off: AtomicBool,
}

impl Surroundings {
    fn strike(&self) {
        self.stands_at_ns.store(SystemClock.moment().ns, Ordering::Release);
        self.is_cut_off.store(true, Ordering::Release);
    }

    fn end(&self) {
        self.is_cut_off.store(false, Ordering::Release);
        self.stands_at_ns.store(0, Ordering::Release);
    }
}

struct StandingClock(Arc<Surroundings>);

impl Clock for StandingClock {
    fn timestamp(&self) -> Timestamp {
        SystemClock.timestamp()
    }

    fn moment(&self) -> Moment {
        match self.0.stands_at_ns.load(Ordering::Acquire) {
            0 => SystemClock.moment(),
            ns => Moment { ns },
        }
    }
}

/// The coordinator as one member reaches it. While that is cut off, it hears nothing and is told nothing.
struct Distant {
    real: Arc<dyn Coordinator>,
    surroundings: Arc<Surroundings>,
    confirmations: Arc<AtomicU64>,
}

impl Distant {
    fn is_cut_off(&self) -> bool {
        self.surroundings.is_cut_off.load(Ordering::Acquire)
    }

    fn silence(&self) -> ReadError {
        ReadError { reason: "cut off by a test".into() }
    }

    fn doubt(&self) -> ChangeError {
        ChangeError::Unknown { reason: "cut off by a test".into() }
    }
}

impl Coordinator for Distant {
    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>) {
        match self.is_cut_off() {
            true => done(Err(self.silence())),
            false => self.real.read(group, done),
        }
    }

    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>) {
        self.real.create(group, view, done);
    }

    fn change(
        &self,
        group: GroupId,
        expected: Basis,
        view: GroupView,
        requires: &[MemberLife],
        done: Done<Result<Version, ChangeError>>,
    ) {
        match self.is_cut_off() {
            true => done(Err(self.doubt())),
            false => self.real.change(group, expected, view, requires, done),
        }
    }

    fn read_members(&self, group: GroupId, done: Done<Result<Vec<MemberRecord>, ReadError>>) {
        match self.is_cut_off() {
            true => done(Err(self.silence())),
            false => self.real.read_members(group, done),
        }
    }

    fn write_member(&self, group: GroupId, record: MemberRecord, done: Done<Result<(), ChangeError>>) {
        self.real.write_member(group, record, done);
    }

    fn confirm(
        &self,
        group: GroupId,
        expected: Basis,
        member: MemberId,
        done: Done<Result<(), ChangeError>>,
    ) {
        self.confirmations.fetch_add(1, Ordering::Relaxed);
        match self.is_cut_off() {
            true => done(Err(self.doubt())),
            false => self.real.confirm(group, expected, member, done),
        }
    }

    fn hold_lock(&self, group: GroupId, member: MemberId, epoch: Epoch) {
        self.real.hold_lock(group, member, epoch);
    }

    fn release_lock(&self, group: GroupId) {
        self.real.release_lock(group);
    }

    fn read_cluster(&self, done: Done<Result<Option<Vec<u8>>, ReadError>>) {
        self.real.read_cluster(done);
    }

    fn create_cluster(&self, text: Vec<u8>, done: Done<Result<(), ChangeError>>) {
        self.real.create_cluster(text, done);
    }

    fn watch(&self, group: GroupId, watch: Watch) {
        let surroundings = self.surroundings.clone();
        let unless_cut_off: Watch = Arc::new(move |group, event| {
            if !surroundings.is_cut_off.load(Ordering::Acquire) {
                watch(group, event);
            }
        });
        self.real.watch(group, unless_cut_off);
    }
}

struct Story {
    cluster: Cluster,
    surroundings: Vec<Arc<Surroundings>>,
    confirmations: Arc<AtomicU64>,
}

impl Story {
    async fn start(confirm_reads: bool) -> Self {
        let surroundings: Vec<Arc<Surroundings>> = (0..3).map(|_| Arc::default()).collect();
        let confirmations = Arc::new(AtomicU64::new(0));
        let (of_clocks, of_doors, counted) =
            (surroundings.clone(), surroundings.clone(), confirmations.clone());
        let world = move |member: u32| {
            let clock = Arc::new(StandingClock(of_clocks[member as usize - 1].clone()));
            (Env { clock, ..Env::production() }, LastResort::default())
        };
        let adjust = move |member: u32, config: MetaConfig| {
            let CoordinatorConfig::Shared(real) = config.group.coordinator else { panic!("it is shared") };
            let surroundings = of_doors[member as usize - 1].clone();
            let distant = Distant { real, surroundings, confirmations: counted.clone() };
            let coordinator = CoordinatorConfig::Shared(Arc::new(distant));
            MetaConfig { group: GroupConfig { coordinator, confirm_reads, ..config.group }, ..config }
        };
        let cluster = Cluster::start_adjusted(3, world, adjust).await;
        Self { cluster, surroundings, confirmations }
    }

    fn strike(&self, member: u32) {
        self.surroundings[member as usize - 1].strike();
        self.cluster.cables.pull(member);
    }

    /// What a member answers to the question whether a path exists.
    async fn exists(&self, member: u32, path: &str) -> Result<bool, String> {
        let request = p::GetFileInfoRequestProto { src: path.into() };
        let client = self.cluster.client(member);
        let answer: Result<p::GetFileInfoResponseProto, _> = client.call("getFileInfo", &request).await;
        answer.map(|answer| answer.fs.is_some()).map_err(|error| error.to_string())
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
    assert_eq!(story.confirmations.load(Ordering::Relaxed), 0, "nobody asked");
    story.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_the_coordinator_confirms_is_never_old() {
    let story = Story::start(true).await;
    let (first, second) = deposed_without_knowing(&story).await;
    let refusal = story.exists(first, "/after").await.expect_err("it cannot know");
    assert!(refusal.contains("could not be confirmed"), "{refusal}");

    let before = story.confirmations.load(Ordering::Relaxed);
    for _ in 0..5 {
        assert_eq!(story.exists(second, "/after").await, Ok(true));
    }
    assert!(story.confirmations.load(Ordering::Relaxed) >= before + 5, "each was asked about");
    assert_eq!(story.exists(second, "/nowhere").await, Ok(false));

    story.surroundings[first as usize - 1].end();
    story.cluster.cables.plug_in(first);
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
    let before = story.confirmations.load(Ordering::Relaxed);
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
    let questions = story.confirmations.load(Ordering::Relaxed) - before;
    println!("{questions} questions for {} reads", CLIENTS * 20);
    assert!(questions < CLIENTS * 20, "{questions}");
}
