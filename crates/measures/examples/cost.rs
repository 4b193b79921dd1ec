//! How long it takes to measure a call: `cargo run --release -p clover-measures --example cost`.
//!
//! The one look at a clock that a server takes for it is included.

use base::Moment;
use measures::{Calls, Desk};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const CALLS: u32 = 5_000_000;

fn main() {
    for threads in [1, 2] {
        let calls = Arc::new(Calls::default());
        let ran: Vec<Duration> = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|connection| {
                    let mut desk = Desk::new(calls.clone(), connection);
                    scope.spawn(move || run(&mut desk))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        let slowest = ran.into_iter().max().expect("there is a thread");
        println!("{threads} threads: {:.1} ns a call", slowest.as_nanos() as f64 / f64::from(CALLS));
    }
}

fn run(desk: &mut Desk) -> Duration {
    let start = Instant::now();
    let mut now = Moment::default();
    for _ in 0..CALLS {
        let measured = desk.begin("anna", "ClientProtocol", "getFileInfo", now, now);
        now = Moment { ns: start.elapsed().as_nanos() as u64 };
        measured.answered(now, false);
    }
    start.elapsed()
}
