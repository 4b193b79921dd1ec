//! Histories of three clients at once over two groups, each checked for linearizability.
//!
//! A history is drawn from its seed: a few calls of each client on a dozen names in directories of both homes, by varying doors. It is played against
//! servers, and then one order of all calls is searched that explains every answer by what HDFS would answer. With faults, actives are killed
//! and hand over meanwhile.
//!
//! More of them: `CLOVER_SEED=40000000 CLOVER_HISTORIES=3000 cargo test -p clover-metad --test histories -- --nocapture`; `make histories` does.
//!
//! - `plan`: what the clients do; `caller`: a client; `disks`: where it writes; `play`: a history is played.
//! - `tree`: what HDFS would answer; `history`: the search for an order.
//! - `faults`: what becomes of the servers meanwhile. `found`: what was wrong once, as stories.

mod caller;
mod disks;
mod faults;
mod found;
mod history;
mod plan;
mod planted;
mod play;
mod tree;

#[path = "../cluster/mod.rs"]
mod cluster;

use caller::{Caller, Doors};
use cluster::{Cluster, two::Two};
use disks::Disks;
use faults::Weather;
use history::History;
use std::{
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// What each client asks for.
const CALLS: usize = 8;
const CLIENTS: usize = 3;
/// Histories at the same time.
const LANES: u64 = 4;
/// Histories from one fault to the next.
const PACE: u64 = 4;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// As many as the variable says, from the seed that `CLOVER_SEED` says.
fn seeds(variable: &str, otherwise: u64) -> Range<u64> {
    let first = number("CLOVER_SEED", 0);
    first..first + number(variable, otherwise)
}

/// Histories that are played side by side.
struct Lanes {
    next: AtomicU64,
    seeds: Range<u64>,
    doors: Doors,
    homes: usize,
    disks: Option<Arc<Disks>>,
    weather: Weather,
    failed: Mutex<Vec<u64>>,
    calls: AtomicU64,
    in_a_storm: AtomicU64,
}

impl Lanes {
    fn new(seeds: Range<u64>, doors: Doors, homes: usize, disks: Option<Arc<Disks>>) -> Arc<Self> {
        Arc::new(Self {
            next: AtomicU64::new(seeds.start),
            seeds,
            doors,
            homes,
            disks,
            weather: Weather::default(),
            failed: Mutex::default(),
            calls: AtomicU64::new(0),
            in_a_storm: AtomicU64::new(0),
        })
    }

    async fn play_one_after_the_other(&self, lane: u64, clients: usize, calls: usize) {
        let caller =
            |client| Caller::new(lane as u32 * 8 + client as u32, self.doors.clone(), self.disks.clone());
        let mut callers: Vec<Caller> = (0..clients).map(caller).collect();
        loop {
            let seed = self.next.fetch_add(1, Ordering::SeqCst);
            if !self.seeds.contains(&seed) {
                return;
            }
            let before = self.weather.now();
            let history = play::play(seed, &mut callers, self.homes, calls).await;
            let was_stormy = before.is_stormy() || self.weather.now() != before;
            self.in_a_storm.fetch_add(u64::from(was_stormy), Ordering::SeqCst);
            self.calls.fetch_add(history.0.len() as u64, Ordering::SeqCst);
            if history.explain().is_err() {
                self.failed.lock().unwrap().push(seed);
                self.tell(seed, &history);
            } else {
                play::clear(seed, &mut callers[0]).await;
            }
        }
    }

    fn tell(&self, seed: u64, history: &History) {
        let (all, least) = (history.tell(), history.smallest().tell());
        println!(
            "seed {seed}: no order explains\n{all}\nseed {seed}: no order explains this part of it\n{least}"
        );
    }

    /// The outcome of all.
    fn end(&self) {
        let failed = self.failed.lock().unwrap();
        println!(
            "{} histories from seed {}, {} of them with a fault, {} calls",
            self.seeds.end - self.seeds.start,
            self.seeds.start,
            self.in_a_storm.load(Ordering::SeqCst),
            self.calls.load(Ordering::SeqCst)
        );
        assert!(failed.is_empty(), "no order explains the histories of the seeds {failed:?}");
    }
}

/// Plays until all histories are there; whether the servers have faults meanwhile.
async fn play_on(two: &mut Two, seeds: Range<u64>, with_faults: bool) {
    // A server that is started again would have to hear of all replicas anew. So files stay empty where servers have faults.
    let all =
        [&two.first, &two.second].map(|cluster| cluster.running().into_iter().map(|it| cluster.address(it)));
    let disks = if with_faults { None } else { Some(Disks::of(all.into_iter().flatten()).await) };
    let lanes = Lanes::new(seeds, Arc::new(two.door()), 2, disks);
    let players: Vec<_> = (0..number("CLOVER_LANES", LANES))
        .map(|lane| {
            let lanes = lanes.clone();
            tokio::spawn(async move { lanes.play_one_after_the_other(lane, CLIENTS, CALLS).await })
        })
        .collect();
    let mut at = lanes.seeds.start;
    while with_faults && !players.iter().all(tokio::task::JoinHandle::is_finished) {
        if lanes.next.load(Ordering::SeqCst) > at {
            lanes.weather.storm(two, at).await;
            at = lanes.next.load(Ordering::SeqCst) + PACE;
        }
        two.first.tend().await;
        two.second.tend().await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    for player in players {
        player.await.unwrap();
    }
    lanes.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_order_explains_what_three_clients_of_two_groups_are_told() {
    let mut two = Two::start(1, "/h").await;
    play_on(&mut two, seeds("CLOVER_HISTORIES", 100), false).await;
    two.wait_until_same().await;
    two.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_order_explains_it_also_while_actives_come_and_go() {
    let mut two = Two::start(3, "/h").await;
    play_on(&mut two, seeds("CLOVER_FAULTED_HISTORIES", 16), true).await;
    Weather::settle(&mut two).await;
    two.wait_until_same().await;
    two.first.wait_until_equal().await;
    two.second.wait_until_equal().await;
    two.end().await;
}

/// One client of one group: each answer is the tree's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_tree_answers_as_a_lone_server_does() {
    let one = Cluster::alone().await;
    let address = one.address(1);
    let seeds = seeds("CLOVER_HISTORIES", 60);
    let lanes = Lanes::new(seeds, Arc::new(move |_| address), 1, Some(Disks::of([address]).await));
    lanes.play_one_after_the_other(0, 1, 30).await;
    lanes.end();
    one.end().await;
}
