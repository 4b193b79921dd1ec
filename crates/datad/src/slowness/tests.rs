use super::*;
use base::Timestamp;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

/// A clock that a test turns on.
#[derive(Default)]
struct Turned(AtomicU64);

impl Turned {
    fn turn_ms(&self, ms: u64) {
        self.0.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for Turned {
    fn timestamp(&self) -> Timestamp {
        Timestamp::from_ms(0)
    }

    fn moment(&self) -> Moment {
        Moment { ns: self.0.load(Ordering::Relaxed) }
    }
}

struct Bench {
    clock: Arc<Turned>,
    env: Env,
    slowness: Slowness,
}

fn bench(config: SlownessConfig) -> Bench {
    let clock = Arc::new(Turned::default());
    let env = Env { clock: clock.clone(), ..Env::production() };
    Bench { clock, env, slowness: Slowness::new(config) }
}

fn peers() -> SlownessConfig {
    SlownessConfig {
        measures_peers: true,
        peer_packets_min: 2,
        peer_count_min: 4,
        ..SlownessConfig::default()
    }
}

fn disks() -> SlownessConfig {
    SlownessConfig { disk_percent: 100, disk_count_min: 3, ..SlownessConfig::default() }
}

fn peer(number: u32) -> DatanodeIdProto {
    DatanodeIdProto { ip_addr: format!("10.0.0.{number}"), info_port: 9864, ..DatanodeIdProto::default() }
}

impl Bench {
    fn now(&self) -> Moment {
        self.clock.moment()
    }

    fn send(&self, number: u32, ms: u64, packets: u64) {
        let times = self.slowness.peer(&peer(number), self.now()).unwrap();
        for _ in 0..packets {
            let begun = self.now();
            self.clock.turn_ms(ms);
            times.note(begun, &*self.clock);
        }
    }

    fn slow_peers(&self) -> Vec<String> {
        let slow = self.slowness.slow_peers(self.now());
        slow.iter().map(|report| report.data_node_id().to_owned()).collect()
    }

    fn work(&self, volume: u16, op: DiskOp, ms: u64, packets: u64) {
        let timer = self.slowness.begin(&self.env);
        self.clock.turn_ms(ms);
        self.slowness.end(&timer, &self.env, (VolumeIndex(volume), op), packets);
    }

    fn slow_disks(&self, volumes: &[StorageReport]) -> Vec<SlowDiskReportProto> {
        self.slowness.slow_disks(volumes, self.now())
    }
}

fn volume(number: u16, storage_type: StorageType) -> StorageReport {
    StorageReport {
        volume: VolumeIndex(number),
        storage_id: format!("DS-{number}").into(),
        storage_type,
        directory: PathBuf::from(format!("/data/{number}")),
        capacity_bytes: 1,
        used_bytes: 0,
        remaining_bytes: 1,
        non_dfs_used_bytes: 0,
        reserved_bytes: 0,
    }
}

#[test]
fn a_peer_to_which_packets_take_much_longer_is_reported_as_hadoops_servers_do() {
    let bench = bench(peers());
    (1..=3).for_each(|number| bench.send(number, 2, 3));
    assert!(bench.slow_peers().is_empty(), "three peers are too few");
    bench.send(4, 100, 2);
    assert!(bench.slow_peers().is_empty(), "two packets are too few");
    bench.send(4, 100, 1);
    let [report] = &bench.slowness.slow_peers(bench.now())[..] else { panic!("one is slow") };
    assert_eq!(report.data_node_id(), "10.0.0.4:9864");
    assert_eq!((report.aggregate_latency(), report.median(), report.mad()), (100.0, 2.0, 0.0));
    assert_eq!(report.upper_limit_latency(), 6.0);
}

#[test]
fn a_peer_is_well_again_once_its_slow_packets_are_forgotten() {
    let bench = bench(SlownessConfig { memory_ms: 36_000, ..peers() });
    (1..=3).for_each(|number| bench.send(number, 2, 3));
    bench.send(4, 100, 3);
    assert_eq!(bench.slow_peers(), ["10.0.0.4:9864"]);
    bench.clock.turn_ms(36_000);
    (1..=4).for_each(|number| bench.send(number, 2, 3));
    assert!(bench.slow_peers().is_empty());
}

#[test]
fn a_peer_with_secure_pages_is_named_by_their_port() {
    assert_eq!(name_of(&DatanodeIdProto { info_secure_port: Some(9865), ..peer(7) }), "10.0.0.7:9865");
    assert_eq!(name_of(&DatanodeIdProto { info_secure_port: Some(0), ..peer(7) }), "10.0.0.7:9864");
}

#[test]
fn nothing_is_measured_unless_the_configuration_says_so() {
    let bench = bench(SlownessConfig::default());
    assert!(bench.slowness.peer(&peer(1), bench.now()).is_none());
    bench.work(0, DiskOp::Read, 100, 1);
    assert!(bench.slowness.disks.lock().is_empty());
    bench.slowness.set_config(peers());
    assert!(bench.slowness.peer(&peer(1), bench.now()).is_some());
    bench.slowness.set_config(disks());
    bench.work(0, DiskOp::Read, 100, 1);
    assert_eq!(bench.slowness.disks.lock().len(), 1);
}

#[test]
fn clients_that_name_many_peers_take_a_bounded_place() {
    let bench = bench(peers());
    let named = |number: usize| {
        let id = DatanodeIdProto { info_port: number as u32, ..peer(1) };
        bench.slowness.peer(&id, bench.now())
    };
    // They were named, and no packet went there.
    (0..PEERS_MAX + 10).for_each(|number| drop(named(number)));
    assert!(bench.slowness.peers.lock().len() <= PEERS_MAX);
    let held: Vec<_> = (0..PEERS_MAX + 10).filter_map(named).collect();
    assert_eq!(held.len(), PEERS_MAX);
    drop(held);
    bench.send(9, 1, 1);
    assert_eq!(bench.slowness.peers.lock().len(), 1, "useless ones have made room");
}

#[test]
fn the_disks_of_a_medium_are_compared_with_each_other_and_by_what_they_do() {
    let bench = bench(disks());
    let mut volumes: Vec<_> = (0..3).map(|number| volume(number, StorageType::Ssd)).collect();
    volumes.extend((3..6).map(|number| volume(number, StorageType::Disk)));
    for (number, ms) in [(0, 1), (1, 1), (2, 1), (3, 60), (4, 60), (5, 60)] {
        bench.work(number, DiskOp::Write, ms, 1);
    }
    assert!(bench.slow_disks(&volumes).is_empty(), "disks are slower than memory that is soldered");
    bench.work(2, DiskOp::Write, 99, 1);
    for number in 3..6 {
        bench.work(number, DiskOp::Read, 10, 1);
        bench.work(number, DiskOp::Metadata, 1, 1);
    }
    bench.work(5, DiskOp::Metadata, 199, 1);
    let slow = bench.slow_disks(&volumes);
    let told: Vec<_> = slow
        .iter()
        .map(|report| {
            let latencies = (report.mean_metadata_op_latency, report.mean_read_io_latency);
            (report.base_path(), latencies, report.mean_write_io_latency)
        })
        .collect();
    assert_eq!(told, [("/data/2", (None, None), Some(50.0)), ("/data/5", (Some(100.0), None), None)]);
    assert!(bench.slow_disks(&volumes[..2]).is_empty(), "a disk that is gone is not told");
}

#[test]
fn many_packets_at_once_count_as_many() {
    let bench = bench(disks());
    let volumes: Vec<_> = (0..3).map(|number| volume(number, StorageType::Disk)).collect();
    (0..2).for_each(|number| bench.work(number, DiskOp::Read, 1, 1));
    bench.work(2, DiskOp::Read, 160, 16);
    bench.work(2, DiskOp::Read, 500, 0);
    assert!(bench.slow_disks(&volumes).is_empty(), "ten milliseconds each are below the threshold");
    bench.work(2, DiskOp::Read, 1_600, 16);
    assert_eq!(bench.slow_disks(&volumes)[0].mean_read_io_latency, Some(55.0));
}

#[test]
fn so_many_of_a_hundred_operations_are_measured() {
    for percent in [1, 30, 50, 100] {
        let bench = bench(SlownessConfig { disk_percent: percent, ..disks() });
        let sampled = (0..1_000).filter(|_| bench.slowness.begin(&bench.env).begun.is_some()).count();
        assert_eq!(sampled, 10 * percent as usize);
    }
}
