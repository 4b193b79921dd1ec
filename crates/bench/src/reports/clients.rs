//! Clients at a steady pace: what they feel is the time from when a call was due to its answer.

use crate::meta::{Op, Session, Workload, lane::Outcome};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

const CONNECTIONS: u32 = 4;
/// More calls than ever wait on one connection while a server keeps its pace.
const IN_FLIGHT: u32 = 256;
const FILES: u64 = 10_000;
const DIRECTORY: &str = "/clients";

pub struct Clients {
    session: Session,
    stats: (Arc<Workload>, f64),
    creates: (Arc<Workload>, f64),
    /// The number of the next file to be made.
    next: AtomicU64,
}

/// The answers to the clients' calls, with their latencies.
pub struct Felt {
    pub stat: Outcome,
    pub create: Outcome,
}

impl Clients {
    pub async fn new(address: SocketAddr, user: &str, stats: u32, creates: u32) -> anyhow::Result<Self> {
        let session = Session::of(address, user, CONNECTIONS, IN_FLIGHT);
        let work = |op| {
            let directory = format!("{DIRECTORY}/{op:?}");
            Arc::new(Workload { op, directory, files: FILES, directory_entries: 100 })
        };
        let (stat, create) = (work(Op::Stat), work(Op::Create));
        session.prepare(&stat).await?;
        Ok(Self {
            session,
            stats: (stat, f64::from(stats)),
            creates: (create, f64::from(creates)),
            next: AtomicU64::new(0),
        })
    }

    pub async fn run(&self, length: Duration) -> anyhow::Result<Felt> {
        // No name is made twice: a rate is kept, or not reached.
        let made_at_most = (self.creates.1 * length.as_secs_f64()).ceil() as u64 + u64::from(CONNECTIONS);
        let first = self.next.fetch_add(made_at_most, Ordering::Relaxed);
        let (stat, create) = tokio::try_join!(
            self.session.run_for(&self.stats.0, 0, length, Some(self.stats.1)),
            self.session.run_for(&self.creates.0, first, length, Some(self.creates.1)),
        )?;
        for (op, outcome) in [("stat", &stat), ("create", &create)] {
            if let Some((error, count)) = outcome.errors.iter().next() {
                anyhow::bail!("{count} times {op} was refused: {error}");
            }
        }
        Ok(Felt { stat, create })
    }
}
