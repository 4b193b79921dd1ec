//! Load on several servers at once.

use crate::meta::{
    lane::{Lane, Outcome, Pace},
    workload::Calls,
};
use anyhow::bail;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Operations for one server.
#[derive(Clone)]
pub struct Stream {
    pub address: SocketAddr,
    pub work: Arc<dyn Calls>,
    /// The number of the next operation: each is made once.
    pub next: Arc<AtomicU64>,
    /// Operations from this number on have nothing to work on.
    pub bound: u64,
}

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Force {
    /// Of all streams together; each gets as many as any other.
    pub connections: u32,
    /// On each connection.
    pub in_flight: u32,
    /// Operations a second of each stream; without, one follows the other.
    pub rate: Option<f64>,
}

pub struct Done {
    pub elapsed: Duration,
    /// Of each stream.
    pub outcomes: Vec<Outcome>,
}

impl Done {
    pub fn together(&self) -> Outcome {
        let mut all = Outcome::default();
        for outcome in &self.outcomes {
            all.add(outcome.clone());
        }
        all
    }
}

/// Loads all streams for some time.
pub async fn run(streams: &[Stream], user: &str, force: Force, length: Duration) -> anyhow::Result<Done> {
    let start = Instant::now();
    let each = force.connections.div_ceil(streams.len() as u32);
    let mut lanes = tokio::task::JoinSet::new();
    for (number, stream) in streams.iter().enumerate() {
        for lane in 0..each {
            let (stream, user) = (stream.clone(), user.to_owned());
            let pace = force.rate.map(|rate| Pace {
                start: start + Duration::from_secs_f64(f64::from(lane) / rate),
                interval: Duration::from_secs_f64(f64::from(each) / rate),
            });
            let name = number as u32 * each + lane;
            lanes.spawn(async move {
                let lane = Lane::open(stream.address, &user, name, force.in_flight, stream.work).await?;
                let outcome = lane.run_until(&stream.next, stream.bound, start + length, pace).await?;
                anyhow::Ok((number, outcome))
            });
        }
    }
    let mut outcomes = vec![Outcome::default(); streams.len()];
    while let Some(lane) = lanes.join_next().await {
        let (number, outcome) = lane??;
        outcomes[number].add(outcome);
    }
    let elapsed = start.elapsed();
    for stream in streams {
        // Lanes take one number more than they use when there are none left.
        stream.next.fetch_min(stream.bound, Ordering::Relaxed);
    }
    Ok(Done { elapsed, outcomes })
}

/// Carries out the operations below `bound` of each stream, all of them.
pub async fn run_all(streams: &[Stream], user: &str, force: Force) -> anyhow::Result<()> {
    const LONG: Duration = Duration::from_secs(3_600);
    let done = run(streams, user, Force { rate: None, ..force }, LONG).await?.together();
    match done.errors.into_iter().next() {
        Some((error, count)) => bail!("{count} operations: {error}"),
        None => Ok(()),
    }
}
