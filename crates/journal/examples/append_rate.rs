//! How fast entries become durable, against the bare disk: `cargo run --release -p clover-journal --example
//! append_rate [directory] [seconds]`.
//!
//! Each of 1, 8 and 64 clients appends one entry of 200 bytes and waits for it before the next, as callers of
//! a metadata server do. The ceiling is one thread that writes 4 KiB and calls fdatasync, on a file written
//! with zeros.

use base::{Entry, EntryKind, Epoch, GroupId, MemberId};
use bytes::Bytes;
use env::{Disk, Env, File, OpenMode};
use journal::{Identity, Journal, Settings};
use std::{
    path::Path,
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().unwrap_or_else(|| "append-rate.tmp".into());
    let seconds = arguments.next().map_or(3, |text| text.parse().expect("a number of seconds"));
    let length = Duration::from_secs(seconds);
    let root = Path::new(&root);
    let _ = std::fs::remove_dir_all(root);
    std::fs::create_dir_all(root).expect("the directory can be made");
    let env = Env::production();
    report("fdatasync, 1 thread", bare(&*env.disk, &root.join("bare"), length), length);
    for clients in [1, 8, 64] {
        let directory = root.join(format!("store-{clients}"));
        let identity = Identity { cluster_id: "CID-bench".into(), group: GroupId(0), member: MemberId(1) };
        journal::format(&env, &directory, &identity).expect("a store can be made");
        let recovery = journal::open(&env, &directory, Settings::default()).expect("it opens");
        let (journal, _) = recovery.replay(|_| Ok(())).expect("it is empty");
        journal.prepare_segment().expect("a segment can be prepared");
        report(&format!("journal, {clients} waiting"), run(&journal, clients, length), length);
    }
    std::fs::remove_dir_all(root).expect("what was made can be removed");
}

fn bare(disk: &dyn Disk, path: &Path, length: Duration) -> Vec<Duration> {
    let file: Arc<dyn File> = disk.open(path, OpenMode::CreateNew).expect("a file can be made");
    let bytes = 64 << 20;
    file.allocate(bytes).expect("there is room");
    (0..64).for_each(|n| file.write_at(&vec![0; 1 << 20], n << 20).expect("there is room"));
    file.sync_data().expect("the disk syncs");
    let (block, begin) = ([7; 4096], Instant::now());
    let mut times = Vec::new();
    while begin.elapsed() < length {
        let start = Instant::now();
        file.write_at(&block, times.len() as u64 * 4096 % bytes).expect("the disk writes");
        file.sync_data().expect("the disk syncs");
        times.push(start.elapsed());
    }
    times
}

fn run(journal: &Journal, clients: usize, length: Duration) -> Vec<Duration> {
    // The order of the log is decided in one place, as by the writer of a server.
    let order = Mutex::new(());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|_| {
                scope.spawn(|| {
                    let mut times = Vec::new();
                    let (sender, receiver) = mpsc::channel();
                    while begin.elapsed() < length {
                        let start = Instant::now();
                        let sender = sender.clone();
                        {
                            let _order = order.lock().expect("nobody panicked");
                            let payload = Bytes::from_static(&[7; 200]);
                            let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, payload);
                            let done = Box::new(move |result: Result<_, _>| {
                                let _ = sender.send(result.map(|_proof| ()));
                            });
                            journal.append(vec![entry], done).expect("the journal takes it");
                        }
                        receiver.recv().expect("it answers").expect("the disk works");
                        times.push(start.elapsed());
                    }
                    times
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("no client panicked")).collect()
    })
}

fn report(what: &str, mut times: Vec<Duration>, length: Duration) {
    times.sort();
    let rate = times.len() as f64 / length.as_secs_f64();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_micros();
    println!("{what:22} {rate:9.0}/s   p50 {:6} µs   p99 {:6} µs", at(0.5), at(0.99));
}
