//! `clover bench meta --members 1,2,3,4`: what a standby costs.
//!
//! Groups of each size run side by side as processes of their own, and every round measures all of them in turn, so
//! that a machine that grows slower or faster does so for all. The first round finds what a closed loop saturates
//! at; half of the smallest of these is then offered to every group, whatever its speed, and the CPU time that its
//! active spends on an operation can be compared. Figures are medians of the rounds.

use super::{Args, Op, Session, cpu, difference, workload::Workload};
use crate::{
    launch::{Group, Plan, ZooKeeper},
    rounds,
};
use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

#[derive(Debug, clap::Args)]
pub struct GroupArgs {
    /// Launch groups with so many metadata servers each, as 1,2,3,4, and compare them.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', conflicts_with = "target",
        value_parser = clap::value_parser!(u32).range(1..=7))]
    pub members: Vec<u32>,
    /// A ZooKeeper that runs already; else one is started by scripts/zookeeper.
    #[arg(long, value_name = "HOST:PORT", requires = "members")]
    pub zookeeper: Option<String>,
    /// Rounds after the first; the figures are their medians.
    #[arg(long, default_value_t = 5, value_name = "COUNT", requires = "members",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// How long each measurement takes.
    #[arg(long, default_value_t = 5, value_name = "SECONDS", requires = "members",
        value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Which members the calls of open, stat and list go to.
    #[arg(long, value_enum, default_value_t = ReadsAt::Active, requires = "members")]
    reads_at: ReadsAt,
    /// Operations a second to offer to each group, instead of half of what the slowest can take.
    #[arg(long, value_name = "COUNT", requires = "members")]
    pub offered: Option<u64>,
    /// The directory in which the groups keep their files; removed at the end.
    #[arg(long, value_name = "DIR", default_value = "target/bench-group", requires = "members")]
    pub work_dir: PathBuf,
    /// The program that the servers run, instead of the `clover` beside this one.
    #[arg(long, value_name = "FILE", requires = "members")]
    server: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadsAt {
    Active,
    /// In turn; the active, where there are none.
    Standbys,
    /// The active and the standbys, in turn.
    All,
}

impl GroupArgs {
    pub fn is_asked_for(&self) -> bool {
        !self.members.is_empty()
    }

    pub fn program(&self) -> anyhow::Result<PathBuf> {
        match &self.server {
            Some(server) => Ok(std::path::absolute(server)?),
            None => crate::clover(),
        }
    }
}

/// A running group of one size, and the operation numbers it has used up.
struct Subject {
    group: Group,
    session: Session,
    /// The session over which reads go.
    reading: Session,
    active: cpu::Process,
    standbys: Vec<cpu::Process>,
    next: u64,
}

/// One measurement of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    rate: f64,
    active_us: f64,
    /// All standbys together.
    standbys_us: f64,
    client_us: f64,
    p50_us: f64,
    p99_us: f64,
    errors: u64,
}

pub async fn run(args: &Args) -> anyhow::Result<bool> {
    let settings = &args.group;
    let dir = &settings.work_dir;
    if dir.exists() {
        bail!("{} is already there; remove it, or name another with --work-dir", dir.display());
    }
    if let Some(op) = args
        .op
        .iter()
        .find(|op| matches!(op, Op::Null | Op::Rename | Op::RenameAcross | Op::Delete | Op::Mix))
    {
        bail!(
            "--members: {} is not measured with groups; take mkdir, create, touch, stat, open or list",
            op.name()
        );
    }
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let outcome = measure_all(args, dir).await;
    // The logs are worth more than a clean directory when something went wrong.
    match outcome.is_ok() && !args.keep {
        true => std::fs::remove_dir_all(dir)?,
        false => eprintln!("what the servers said is in {}/*/member-*/log", dir.display()),
    }
    outcome
}

async fn measure_all(args: &Args, dir: &Path) -> anyhow::Result<bool> {
    let settings = &args.group;
    let zookeeper = ZooKeeper::take(settings.zookeeper.as_deref(), &dir.join("zookeeper"))?;
    let mut subjects = Vec::new();
    for count in &settings.members {
        subjects.push(
            Subject::start(args, dir, *count, &zookeeper)
                .await
                .with_context(|| format!("starting a group with {count} member(s)"))?,
        );
        eprintln!("a group of {count} is in sync");
    }
    let mut failed = false;
    if !args.json {
        println!("{}", heading());
    }
    for op in &args.op {
        let cells =
            compare(args, *op, &mut subjects).await.with_context(|| format!("measuring {}", op.name()))?;
        for cell in &cells {
            failed |= cell.paced.errors + cell.saturated.errors > 0;
            match args.json {
                true => println!("{}", cell.json()),
                false => println!("{}", cell.line(&cells)),
            }
        }
    }
    Ok(failed)
}

impl Subject {
    async fn start(args: &Args, dir: &Path, count: u32, zookeeper: &ZooKeeper) -> anyhow::Result<Self> {
        let name = format!("clover-bench-{}/{count}", std::process::id());
        let group = Group::start(&Plan {
            dir: &dir.join(count.to_string()),
            number: 1,
            members: count,
            zookeeper,
            name: &name,
            settings: &[],
            program: &args.group.program()?,
        })
        .await?;
        let active = group.active().await?.id;
        let process =
            |id: Option<u32>| cpu::Process::of(id.context("a member has a process")?).context("of a member");
        let (mut standbys, mut read_at) = (Vec::new(), Vec::new());
        let mut leader = None;
        for member in &group.members {
            let process = process(member.process_id())?;
            let is_active = member.id == active;
            let is_read_at = match args.group.reads_at {
                ReadsAt::Active => is_active,
                ReadsAt::Standbys => !is_active || count == 1,
                ReadsAt::All => true,
            };
            if is_read_at {
                read_at.push(member.rpc.parse().context("an RPC address")?);
            }
            match is_active {
                true => leader = Some((process, member.rpc.clone())),
                false => standbys.push(process),
            }
        }
        let (active, address) = leader.context("the active is one of the members")?;
        let session = Session::new(args, &address).await?;
        let reading = session.to(read_at);
        Ok(Self { group, session, reading, active, standbys, next: 0 })
    }

    fn members(&self) -> usize {
        self.group.members.len()
    }

    /// Runs operations for a while: at a rate, or as many as it takes.
    async fn measure(
        &mut self,
        work: &Arc<Workload>,
        length: Duration,
        rate: Option<f64>,
    ) -> anyhow::Result<Sample> {
        let itself = cpu::Process::this();
        let spent = |subject: &Self| {
            let standbys = subject.standbys.iter().filter_map(cpu::Process::time).sum::<Duration>();
            (subject.active.time(), standbys, itself.time())
        };
        let before = spent(self);
        let begun = Instant::now();
        let session = if work.op.is_read() { &self.reading } else { &self.session };
        let outcome = session.run_for(work, self.next, length, rate).await?;
        let elapsed = begun.elapsed();
        let after = spent(self);
        self.next += outcome.latency.len();
        let count = outcome.latency.len().max(1) as f64;
        let us = |spent: Option<Duration>| spent.map_or(f64::NAN, |spent| spent.as_secs_f64() * 1e6 / count);
        Ok(Sample {
            rate: count / elapsed.as_secs_f64(),
            active_us: us(difference(before.0, after.0)),
            standbys_us: us(Some(after.1.saturating_sub(before.1))),
            client_us: us(difference(before.2, after.2)),
            p50_us: outcome.latency.value_at_quantile(0.5) as f64 / 1e3,
            p99_us: outcome.latency.value_at_quantile(0.99) as f64 / 1e3,
            errors: outcome.errors.values().sum(),
        })
    }
}

/// The costs of one operation in a group of one size.
struct Cell {
    op: String,
    members: usize,
    offered: f64,
    paced: Sample,
    saturated: Sample,
}

async fn compare(args: &Args, op: Op, subjects: &mut [Subject]) -> anyhow::Result<Vec<Cell>> {
    let work = Arc::new(Workload {
        op,
        directory: format!("{}/{}", args.directory.trim_end_matches('/'), op.name()),
        files: args.files,
        directory_entries: args.directory_entries,
    });
    let length = Duration::from_secs(args.group.seconds);
    let mut slowest = f64::INFINITY;
    for subject in subjects.iter_mut() {
        subject.session.prepare(&work).await.context("preparing")?;
        subject.next = 0;
        slowest = slowest.min(subject.measure(&work, length, None).await?.rate);
    }
    let offered = args.group.offered.map_or(slowest / 2.0, |offered| offered as f64);
    let mut samples = vec![(Vec::new(), Vec::new()); subjects.len()];
    for round in 0..args.group.rounds {
        let size = subjects.len();
        for index in 0..size {
            // Each begins once in a while, so that none always follows the same other.
            let index = (index + round as usize) % size;
            let subject = &mut subjects[index];
            samples[index].0.push(subject.measure(&work, length, Some(offered)).await?);
        }
        for index in 0..size {
            let index = (index + round as usize) % size;
            samples[index].1.push(subjects[index].measure(&work, length, None).await?);
        }
    }
    let cells = subjects.iter().zip(samples).map(|(subject, (paced, saturated))| Cell {
        op: op.name(),
        members: subject.members(),
        offered,
        paced: median(&paced),
        saturated: median(&saturated),
    });
    Ok(cells.collect())
}

/// Each figure's own median; errors add up.
fn median(samples: &[Sample]) -> Sample {
    let of = |figure: fn(&Sample) -> f64| rounds::median(samples.iter().map(figure));
    Sample {
        rate: of(|sample| sample.rate),
        active_us: of(|sample| sample.active_us),
        standbys_us: of(|sample| sample.standbys_us),
        client_us: of(|sample| sample.client_us),
        p50_us: of(|sample| sample.p50_us),
        p99_us: of(|sample| sample.p99_us),
        errors: samples.iter().map(|sample| sample.errors).sum(),
    }
}

fn heading() -> String {
    format!(
        "{:<7} {:>7} | {:>9} {:>10} {:>7} {:>9} {:>7} {:>8} | {:>9} {:>9} {:>9} {:>9} {:>7}",
        "",
        "",
        "offered",
        "active",
        "",
        "p50",
        "",
        "p99",
        "saturated",
        "active",
        "standbys",
        "client",
        "errors"
    ) + "\n"
        + &format!(
            "{:<7} {:>7} | {:>9} {:>10} {:>7} {:>9} {:>7} {:>8} | {:>9} {:>9} {:>9} {:>9} {:>7}",
            "op",
            "members",
            "op/s",
            "us/op",
            "each",
            "us",
            "each",
            "us",
            "op/s",
            "us/op",
            "us/op",
            "us/op",
            ""
        )
}

impl Cell {
    /// `each`: what each standby after the first has added, in per cent of a group with one standby.
    fn line(&self, cells: &[Cell]) -> String {
        let pair = cells.iter().find(|cell| cell.members == 2);
        let each = |figure: fn(&Cell) -> f64| match pair {
            Some(pair) if self.members > 2 => {
                let growth = figure(self) / figure(pair) - 1.0;
                format!("{:+.1} %", growth * 100.0 / (self.members - 2) as f64)
            }
            _ => String::new(),
        };
        format!(
            "{:<7} {:>7} | {:>9.0} {:>10.2} {:>7} {:>9.0} {:>7} {:>8.0} | {:>9.0} {:>9.2} {:>9.2} {:>9.2} {:>7}",
            self.op,
            self.members,
            self.offered,
            self.paced.active_us,
            each(|cell| cell.paced.active_us),
            self.paced.p50_us,
            each(|cell| cell.paced.p50_us),
            self.paced.p99_us,
            self.saturated.rate,
            self.saturated.active_us,
            self.saturated.standbys_us,
            self.saturated.client_us,
            self.paced.errors + self.saturated.errors
        )
    }

    fn json(&self) -> Value {
        let sample = |sample: &Sample| {
            json!({
                "ops_per_second": sample.rate,
                "active_cpu_us_per_op": sample.active_us,
                "standbys_cpu_us_per_op": sample.standbys_us,
                "client_cpu_us_per_op": sample.client_us,
                "p50_us": sample.p50_us,
                "p99_us": sample.p99_us,
                "errors": sample.errors,
            })
        };
        json!({
            "op": self.op,
            "members": self.members,
            "offered_ops_per_second": self.offered,
            "paced": sample(&self.paced),
            "saturated": sample(&self.saturated),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_taken_of_each_figure() {
        let sample = |rate: f64, p50_us: f64| Sample { rate, p50_us, errors: 1, ..Sample::default() };
        let median = median(&[sample(1.0, 30.0), sample(100.0, 20.0), sample(3.0, 10.0), sample(2.0, 40.0)]);
        assert_eq!((median.rate, median.p50_us, median.errors), (2.5, 25.0, 4));
    }

    #[test]
    fn each_standby_after_the_first_has_its_share_of_the_growth() {
        let cell = |members: usize, active_us: f64| Cell {
            op: "mkdir".into(),
            members,
            offered: 1.0,
            paced: Sample { active_us, p50_us: 100.0, ..Sample::default() },
            saturated: Sample::default(),
        };
        let cells = [cell(1, 8.0), cell(2, 10.0), cell(4, 10.4)];
        assert!(cells[2].line(&cells).contains("+2.0 %"), "{}", cells[2].line(&cells));
        assert!(!cells[1].line(&cells).contains('%'));
    }
}
