//! `clover bench meta`: metadata operations over Hadoop's RPC, against any NameNode.
//!
//! A closed loop: each of C connections keeps K calls in flight. The same bytes go to Clover and to Hadoop, and the
//! time that a server spends on an operation is read from the kernel's account of its process, so the figures of two
//! servers can stand side by side. `--op null` measures the ceiling: a server of this program, in a process of its
//! own, that answers without doing anything. With `--members` and `--groups` it launches what it measures.

pub mod cpu;
mod group;
pub mod groups;
pub mod lane;
mod mix;
mod report;
pub mod requests;
mod workload;

use anyhow::{Context, bail};
use clap::ValueEnum;
use cli::runtime;
use report::Report;
use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    ops::Range,
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, Instant},
};
pub use workload::Workload;

pub const EXAMPLES: &str = "\
Examples:
  clover bench meta --target hdfs://HOST:PORT --op create,stat          a server that runs, Clover's or Hadoop's
  clover bench meta --members 1,2,3 --op create --rounds 3              what a standby costs
  clover bench meta --members 1,4 --op stat --reads-at all              what standbys bring to reads
  clover bench meta --groups 1,3 --members 1,2 --rounds 3 --connections 12 --in-flight 8
                                                                        what several groups cost and bring
  clover bench meta --groups 1,2,3,6 --members 1,2,4 --hadoop target/clients/contract-3.5.0 --svg rates.svg
                                                                        the same beside Hadoop, alone and HA

--members and --groups start a ZooKeeper by scripts/zookeeper: run them in Clover's own directory, or name one with --zookeeper.";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server, as hdfs://host:port. `--op null` without one starts its own.
    #[arg(long)]
    target: Option<String>,
    /// What to measure; several are measured one after another.
    #[arg(long, value_enum, value_delimiter = ',', required_unless_present = "groups")]
    op: Vec<Op>,
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Calls in flight on each connection.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    in_flight: u32,
    /// Operations to measure.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Operations before the measured ones; a tenth of them unless given.
    #[arg(long)]
    warm_up: Option<u64>,
    /// Files that open, stat and list go round.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    files: u64,
    /// Entries of each directory.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    directory_entries: u64,
    /// Where to work; made, and removed at the end.
    #[arg(long, default_value = "/clover-bench")]
    directory: String,
    /// Leave what was made.
    #[arg(long)]
    keep: bool,
    /// The user to speak for.
    #[arg(long)]
    user: Option<String>,
    /// One JSON object a line instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    group: Box<group::GroupArgs>,
    #[command(flatten)]
    groups: groups::GroupsArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Op {
    /// A call that does nothing, and its reply.
    Null,
    /// Create a file and leave it open.
    Create,
    /// Create an empty file and close it.
    Touch,
    Mkdir,
    /// Ask for a file's blocks.
    Open,
    Stat,
    List,
    /// Of a file; where there are several groups, to another directory of its home.
    Rename,
    /// Of a file, to a directory of another home.
    RenameAcross,
    Delete,
    /// Stats and opens, and one change in eleven, as Borthakur counted them on a NameNode.
    Mix,
}

impl Op {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether a member that does not lead may answer it.
    fn is_read(self) -> bool {
        matches!(self, Op::Open | Op::Stat | Op::List)
    }

    /// Whether a server answers operation `index` only with that it was done, or that it was not.
    fn asks_for_yes(self, index: u64) -> bool {
        match self {
            Op::Mkdir | Op::Rename | Op::RenameAcross | Op::Delete => true,
            Op::Mix => mix::asks_for_yes(index),
            Op::Null | Op::Create | Op::Touch | Op::Open | Op::Stat | Op::List => false,
        }
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    runtime::block_on(async move {
        if args.groups.are_asked_for() {
            let failed = groups::run(&args).await?;
            return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        if args.group.is_asked_for() {
            let failed = group::run(&args).await?;
            return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        let mut failed = false;
        for op in &args.op {
            let report = measure(&args, *op).await.with_context(|| format!("measuring {}", op.name()))?;
            failed |= report.error_count() > 0;
            if args.json {
                println!("{}", report.json());
            } else {
                println!("{report}");
            }
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    })
}

async fn measure(args: &Args, op: Op) -> anyhow::Result<Report> {
    if op == Op::RenameAcross {
        bail!("one server has one home: {} wants --groups", op.name());
    }
    let mut null_server = None;
    let target = match (&args.target, op) {
        (Some(target), _) => target.clone(),
        (None, Op::Null) => null_server.insert(NullServer::start()?).target.clone(),
        (None, _) => bail!("--target hdfs://host:port says which server to measure"),
    };
    let session = Session::new(args, &target).await?;
    let warm_up = args.warm_up.unwrap_or(args.count / 10);
    let total = warm_up + args.count;
    let work = Arc::new(Workload {
        op,
        directory: format!("{}/{}", args.directory.trim_end_matches('/'), op.name()),
        files: match op {
            Op::Rename | Op::Delete => total,
            _ => args.files,
        },
        directory_entries: args.directory_entries,
    });
    if op != Op::Null {
        session.prepare(&work).await.context("preparing")?;
    }
    session.run(&work, 0..warm_up).await.context("warming up")?;

    let server = cpu::Process::listening_on(session.address);
    let itself = cpu::Process::this();
    let before = (server.as_ref().and_then(cpu::Process::time), itself.time());
    let begun = Instant::now();
    let outcome = session.run(&work, warm_up..total).await?;
    let elapsed = begun.elapsed();
    let after = (server.as_ref().and_then(cpu::Process::time), itself.time());

    if op != Op::Null && !args.keep {
        session.clean_up(&args.directory).await.context("cleaning up")?;
    }
    Ok(Report {
        op: op.name(),
        target,
        connections: args.connections,
        in_flight: args.in_flight,
        elapsed,
        outcome,
        server: server.map(|process| process.name()),
        server_cpu: difference(before.0, after.0),
        client_cpu: difference(before.1, after.1),
    })
}

fn difference(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(after?.saturating_sub(before?))
}

/// A server and how to speak to it.
pub struct Session {
    address: SocketAddr,
    /// The servers to which connections go in turn. Empty: all connections go to `address`.
    further: Vec<SocketAddr>,
    user: String,
    connections: u32,
    in_flight: u32,
}

impl Session {
    async fn new(args: &Args, target: &str) -> anyhow::Result<Session> {
        let host = target.strip_prefix("hdfs://").unwrap_or(target).trim_end_matches('/');
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:8020") };
        let address = tokio::net::lookup_host(&host)
            .await
            .with_context(|| format!("looking up {host}"))?
            .next()
            .with_context(|| format!("{host} has no address"))?;
        let user = match &args.user {
            Some(user) => user.clone(),
            None => cli::user::of_this_process()?,
        };
        Ok(Self::of(address, &user, args.connections, args.in_flight))
    }

    /// A session with these servers: its connections go to them in turn.
    pub fn to(&self, addresses: Vec<SocketAddr>) -> Session {
        Session { further: addresses, user: self.user.clone(), ..*self }
    }

    /// The server that this connection is to.
    fn address_of(&self, connection: u32) -> SocketAddr {
        match self.further.len() {
            0 => self.address,
            count => self.further[connection as usize % count],
        }
    }

    /// A session of `connections` that have up to `in_flight` calls each under way.
    pub fn of(address: SocketAddr, user: &str, connections: u32, in_flight: u32) -> Session {
        Session { address, further: Vec::new(), user: user.to_owned(), connections, in_flight }
    }

    /// Runs the operations of a range, each once, over all connections.
    async fn run(&self, work: &Arc<Workload>, range: Range<u64>) -> anyhow::Result<lane::Outcome> {
        let next = Arc::new(AtomicU64::new(range.start));
        let mut lanes = tokio::task::JoinSet::new();
        for number in 0..self.connections {
            let (address, user, in_flight) = (self.address_of(number), self.user.clone(), self.in_flight);
            let (work, next) = (Arc::clone(work), Arc::clone(&next));
            lanes.spawn(async move {
                lane::Lane::open(address, &user, number, in_flight, work).await?.run(&next, range.end).await
            });
        }
        let mut outcome = lane::Outcome::default();
        while let Some(lane) = lanes.join_next().await {
            outcome.add(lane??);
        }
        Ok(outcome)
    }

    /// Runs operations from `first` on for some time: so many a second, or one after the other in each place.
    pub async fn run_for(
        &self,
        work: &Arc<Workload>,
        first: u64,
        length: Duration,
        rate: Option<f64>,
    ) -> anyhow::Result<lane::Outcome> {
        let next = Arc::new(AtomicU64::new(first));
        let start = Instant::now();
        let mut lanes = tokio::task::JoinSet::new();
        for number in 0..self.connections {
            let (address, user, in_flight) = (self.address_of(number), self.user.clone(), self.in_flight);
            let (work, next) = (Arc::clone(work), Arc::clone(&next));
            let pace = rate.map(|rate| lane::Pace {
                start: start + Duration::from_secs_f64(f64::from(number) / rate),
                interval: Duration::from_secs_f64(f64::from(self.connections) / rate),
            });
            lanes.spawn(async move {
                let lane = lane::Lane::open(address, &user, number, in_flight, work).await?;
                lane.run_until(&next, u64::MAX, start + length, pace).await
            });
        }
        let mut outcome = lane::Outcome::default();
        while let Some(lane) = lanes.join_next().await {
            outcome.add(lane??);
        }
        Ok(outcome)
    }

    /// Makes the files that the operations need.
    pub async fn prepare(&self, work: &Workload) -> anyhow::Result<()> {
        self.clean_up(&work.directory).await?;
        let Some(preparation) = work.preparation() else { return Ok(()) };
        let outcome = self.run(&Arc::new(preparation), 0..work.files).await?;
        match outcome.errors.into_iter().next() {
            Some((error, count)) => bail!("{count} of {} files: {error}", work.files),
            None => Ok(()),
        }
    }

    async fn clean_up(&self, directory: &str) -> anyhow::Result<()> {
        let client = rpc::Client::connect(
            self.address,
            proto::protocol::CLIENT_NAMENODE,
            &self.user,
            rpc::ClientOptions { call_timeout: Duration::from_secs(600), ..Default::default() },
        );
        let request = proto::hdfs::DeleteRequestProto { src: directory.into(), recursive: true };
        let _: proto::hdfs::DeleteResponseProto =
            client.call("delete", &request).await.with_context(|| format!("removing {directory}"))?;
        Ok(())
    }
}

/// `clover bench null-server` in a process of its own, so that its time is not counted with the client's.
struct NullServer {
    child: Child,
    target: String,
    /// The server ends when this does.
    _input: Option<ChildStdin>,
}

impl NullServer {
    fn start() -> anyhow::Result<NullServer> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut child = Command::new(program)
            .args(["null-server", "--until-input-ends"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the null server")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the null server's output")?;
        let mut target = String::new();
        BufReader::new(output).read_line(&mut target).context("waiting for the null server")?;
        Ok(NullServer { child, target: target.trim().to_owned(), _input: input })
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        drop(self._input.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_operation_is_made_once_over_all_connections() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = rpc::ServerConfig::new(address, Arc::new(rpc::NullService));
        let server = rpc::Server::bind(config).unwrap();
        let session = Session::of(server.local_addr(), "ann", 3, 4);
        // One server has one home.
        for op in Op::value_variants().iter().filter(|op| **op != Op::RenameAcross) {
            let work = Workload { op: *op, directory: "/b".into(), files: 10, directory_entries: 3 };
            let outcome = session.run(&Arc::new(work), 5..106).await.unwrap();
            assert_eq!(outcome.latency.len(), 101, "{op:?}");
            assert!(outcome.errors.is_empty());
        }
    }

    #[tokio::test]
    async fn refusals_are_counted_by_class() {
        struct Refusing;
        impl rpc::Service for Refusing {
            fn protocols(&self) -> &[(&'static str, u64)] {
                &[(proto::protocol::CLIENT_NAMENODE, 1)]
            }
            fn call(&self, call: rpc::Call, reply: rpc::Replier) {
                let request: proto::hdfs::MkdirsRequestProto = call.decode().unwrap();
                reply.fs_error(&base::FsError::SafeMode(format!("not {}", request.src)));
            }
        }
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = rpc::Server::bind(rpc::ServerConfig::new(address, Arc::new(Refusing))).unwrap();
        let session = Session::of(server.local_addr(), "ann", 1, 2);
        let work = Workload { op: Op::Mkdir, directory: "/b".into(), files: 1, directory_entries: 1 };
        let outcome = session.run(&Arc::new(work), 0..20).await.unwrap();
        assert_eq!(outcome.errors.into_values().collect::<Vec<_>>(), [20]);
    }
}
