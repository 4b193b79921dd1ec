//! How fast full block reports are taken, and what a block costs in memory.
//!
//! `cargo run --release -p clover-blocks --example full_reports [BLOCKS] [SERVERS]`
//!
//! A namespace of `BLOCKS` blocks with three replicas on `SERVERS` servers of one storage each. Every server
//! reports three times: first to a server that has just started and knows no replica, then as it does every
//! few hours; once with its blocks in the order of ids and once shuffled, as a hash table gives them.

use base::{Block, BlockId, GenerationStamp, InodeId, Moment};
use blocks::*;
use std::hint::black_box;

const SLICE_ROWS: usize = 2_000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().expect("a number"));
    let blocks = arguments.next().unwrap_or(10_000_000);
    let servers = arguments.next().unwrap_or(100);
    let now = Moment::from_ms(1_000);
    let mut map = BlockMap::new(Config { max_servers: servers as usize, ..Config::default() }, 1, now);

    let began = cpu_seconds();
    for number in 0..blocks {
        map.add_block(block(number), InodeId(16_386 + number), 3, BlockState::Complete, &[], now);
    }
    rate("blocks told by the namespace", blocks, began);
    map.activate(now);
    for server in 0..servers {
        register(&mut map, server, now);
    }

    let mut reports: Vec<Vec<ReportedReplica>> =
        (0..servers).map(|server| rows(server, servers, blocks)).collect();
    let replicas = reports.iter().map(|report| report.len() as u64).sum();
    for (what, shuffled) in
        [("first reports", false), ("later reports, by id", false), ("later reports, shuffled", true)]
    {
        if shuffled {
            reports.iter_mut().for_each(|report| shuffle(report));
        }
        let began = cpu_seconds();
        for (server, report) in reports.iter().enumerate() {
            let done = take(&mut map, server as u64, report, now);
            assert!(!done.needs_sweep && done.duplicates == 0 && done.unknown == 0);
        }
        rate(what, replicas, began);
    }
    map.is_consistent().expect("a consistent map");
    let bytes = map.bytes_allocated() as f64 / blocks as f64;
    println!("{bytes:>10.1} bytes a block of {} replicas", replicas / blocks);

    let began = cpu_seconds();
    for number in 0..blocks.min(3_000_000) {
        black_box(map.locations(block(number * 7 % blocks).id, Reader::default(), number, now));
    }
    rate("look-ups of locations", blocks.min(3_000_000), began);
}

fn block(number: u64) -> Block {
    let id = BlockId(BlockId::LAST_RESERVED.0 + 1 + number);
    Block { id, generation_stamp: GenerationStamp(1_001 + number), length: 134_217_728 - number % 1000 }
}

/// The blocks that have one of their replicas on this server.
fn rows(server: u64, servers: u64, blocks: u64) -> Vec<ReportedReplica> {
    let holds = |number: &u64| (0..3).any(|replica| place(*number, replica, servers) == server);
    let row = |number| ReportedReplica { block: block(number), state: ReplicaState::Finalized };
    (0..blocks).filter(holds).map(row).collect()
}

/// Replicas of a block on different servers, of neighbouring blocks on unrelated ones.
fn place(number: u64, replica: u64, servers: u64) -> u64 {
    let first = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) % servers;
    (first + replica * (servers / 3).max(1)) % servers
}

fn register(map: &mut BlockMap, server: u64, now: Moment) {
    let registration = Registration {
        uuid: format!("server-{server}").as_str().into(),
        ip: format!("10.0.{}.{}", server / 250, server % 250).as_str().into(),
        transfer_port: 9866,
        ..Registration::default()
    };
    map.register(registration, session(server), now).expect("room for every server");
}

fn session(server: u64) -> SessionKey {
    SessionKey([server as u8; SessionKey::BYTES])
}

fn take(map: &mut BlockMap, server: u64, rows: &[ReportedReplica], now: Moment) -> ReportDone {
    let (uuid, ip) = (format!("server-{server}"), format!("10.0.{}.{}", server / 250, server % 250));
    let id =
        ServerId { uuid: &uuid, ip: &ip, transfer_port: 9866, session: &session(server).0, connection: 0 };
    let report =
        map.begin_report(id, &format!("DS-{server}"), StorageType::Disk, 0, now).expect("a known server");
    for slice in rows.chunks(SLICE_ROWS) {
        map.report_slice(report, slice, now).expect("a report under way");
    }
    map.finish_report(report, now).expect("a report under way")
}

fn shuffle(rows: &mut [ReportedReplica]) {
    let mut state = 1u64;
    for end in (1..rows.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        rows.swap(end, (state >> 33) as usize % (end + 1));
    }
}

/// Time that this thread has had on a core: others may be busy on the machine.
fn cpu_seconds() -> f64 {
    let schedstat =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts time on the core");
    let ns: f64 = schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds first");
    ns / 1e9
}

fn rate(what: &str, count: u64, began: f64) {
    let seconds = cpu_seconds() - began;
    println!("{:>10.2} M/s  {what}", count as f64 / seconds / 1e6);
}
