//! `clover bench meta --groups 1,2,3,6 --members 1,2,4`: what one namespace over several groups costs and brings.
//!
//! A shape is a number of groups and of members in each, or Hadoop alone, or Hadoop's HA. Each shape is laid out anew
//! in each round, as processes of its own with a real ZooKeeper, measured and ended before the next begins. So a
//! machine that grows slower or faster does so for all, and servers that are not measured take nothing of it. The load
//! is spread over directories of all homes, and each call is sent to the active that decides it; calls that another
//! group's server passes on are measured apart. All servers share the machine: what more machines would give is
//! calculated from the processor time of each, and called so.

mod cluster;
pub mod hadoop;
mod load;
mod measure;
mod plot;
mod report;
mod room;
mod servers;
mod stage;
mod work;

use super::{Args, Op};
use crate::launch::{Plan, ZooKeeper};
use anyhow::{Context, bail};
use measure::{Load, Settings};
use report::{Cell, Doors};
use serde_json::json;
use stage::{Decider, Kind, Stage};
use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Debug, clap::Args)]
pub struct GroupsArgs {
    /// Launch namespaces of so many groups each, as 1,3, with each number of --members, and compare them.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', requires = "members",
        value_parser = clap::value_parser!(u32).range(1..=32))]
    groups: Vec<u32>,
    /// Measure Hadoop beside them, alone and HA: a directory with the jars of its servers, as
    /// target/clients/contract-3.5.0, which scripts/setup-test makes.
    #[arg(long, value_name = "DIR", requires = "groups")]
    hadoop: Option<PathBuf>,
    /// Which of Hadoop's shapes stand beside Clover's.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["alone", "ha"], requires = "hadoop")]
    beside: Vec<Beside>,
    /// Measure only how many operations the servers take: no steady rate, no client that is alone.
    #[arg(long, requires = "groups")]
    only_saturated: bool,
    /// Write the rates of all shapes as a picture.
    #[arg(long, value_name = "FILE", requires = "groups")]
    svg: Option<PathBuf>,
}

impl GroupsArgs {
    pub fn are_asked_for(&self) -> bool {
        !self.groups.is_empty()
    }
}

/// A shape of Hadoop's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Beside {
    /// One NameNode.
    Alone,
    /// Two NameNodes and three JournalNodes.
    Ha,
}

impl Beside {
    fn kind(self) -> Kind {
        match self {
            Self::Alone => Kind::Hadoop,
            Self::Ha => Kind::HadoopHa,
        }
    }
}

/// The operations that the bench measures if `--op` names none, in the order of the paper's Figure 5.
const OPS: [Op; 6] = [Op::Create, Op::Stat, Op::Delete, Op::Mkdir, Op::Rename, Op::RenameAcross];
/// The operations whose calls the bench sends to the server of another group as well.
const BY_DOORS: [Op; 2] = [Op::Create, Op::Stat];
/// A JVM compiles what it runs often; it gets so many times the length of a measurement for that.
const JVM_WARM_UP: u32 = 3;

/// A measurement that the bench has left out, and why.
struct LeftOut {
    kind: Kind,
    /// `None`: the bench has left out all operations, in this round and in later ones.
    op: Option<Op>,
    why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Some(op) => write!(f, "{} of {} in one round: {}", op.name(), self.kind, self.why),
            None => write!(f, "{}: {}", self.kind, self.why),
        }
    }
}

struct Bench<'a> {
    args: &'a Args,
    settings: Settings,
    dir: PathBuf,
    ops: Vec<Op>,
    cells: Vec<Cell>,
    left_out: Vec<LeftOut>,
    /// ^C has ended it before all was measured.
    is_broken_off: bool,
}

/// Returns whether anything has failed.
pub async fn run(args: &Args) -> anyhow::Result<bool> {
    let dir = std::path::absolute(&args.group.work_dir)?;
    if dir.exists() {
        bail!("{} is already there; remove it, or name another with --work-dir", dir.display());
    }
    let ops = if args.op.is_empty() { OPS.to_vec() } else { args.op.clone() };
    if ops.contains(&Op::Null) {
        bail!("--groups: null is measured without --groups and --members");
    }
    let shapes = args.groups.groups.iter();
    if let Some(op) = ops.iter().find(|op| !shapes.clone().any(|groups| Kind::one(*groups).knows(**op))) {
        bail!("--groups: {} cannot be measured with so many groups", op.name());
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let settings = Settings {
        user: match &args.user {
            Some(user) => user.clone(),
            None => cli::user::of_this_process()?,
        },
        connections: args.connections,
        in_flight: args.in_flight,
        length: Duration::from_secs(args.group.seconds),
        files: args.files,
        directory_entries: args.directory_entries,
    };
    let mut bench = Bench {
        args,
        settings,
        dir: dir.clone(),
        ops,
        cells: Vec::new(),
        left_out: Vec::new(),
        is_broken_off: false,
    };
    let outcome = tokio::select! {
        outcome = bench.measure() => outcome,
        stopped = cli::runtime::stop_signal() => stopped.map(|()| bench.is_broken_off = true),
    };
    match outcome.is_ok() && bench.left_out.is_empty() && !args.keep {
        true => std::fs::remove_dir_all(&dir)?,
        false => eprintln!("what the servers said is in {}", dir.display()),
    }
    outcome?;
    bench.tell();
    if let Some(file) = &args.groups.svg {
        plot::write(file, &bench.ops, &bench.cells)?;
    }
    let has_failed = bench.left_out.iter().any(|left| left.op.is_some());
    Ok(bench.is_broken_off || has_failed || bench.cells.iter().any(|cell| cell.errors() > 0.0))
}

impl Bench<'_> {
    fn kinds(&self) -> Vec<Kind> {
        let members = &self.args.group.members;
        let groups = self.args.groups.groups.iter();
        groups
            .flat_map(|groups| {
                members.iter().map(|members| Kind::Clover { groups: *groups, members: *members })
            })
            .collect()
    }

    async fn measure(&mut self) -> anyhow::Result<()> {
        let group = &self.args.group;
        let zookeeper = ZooKeeper::take(group.zookeeper.as_deref(), &self.dir.join("zookeeper"))?;
        let kinds = self.kinds();
        let mut offered = group.offered.map(|rate| vec![rate as f64; self.ops.len()]);
        if offered.is_none() && !self.args.groups.only_saturated {
            for kind in &kinds {
                self.visit(*kind, &zookeeper, 0, None).await?;
            }
            offered = Some(self.ops.iter().map(|op| self.bearable(*op)).collect());
        }
        let beside: Vec<Kind> = match self.args.groups.hadoop {
            Some(_) => self.args.groups.beside.iter().map(|shape| shape.kind()).collect(),
            None => Vec::new(),
        };
        for round in 1..=group.rounds {
            for kind in kinds.iter().chain(&beside) {
                self.visit(*kind, &zookeeper, round, offered.as_deref()).await?;
            }
        }
        Ok(())
    }

    /// Half of what the slowest shape takes, for each server that decides the operation: every shape can bear it.
    fn bearable(&self, op: Op) -> f64 {
        let rates = self.cells.iter().filter(|cell| cell.op == op).map(|cell| {
            let deciders = match Decider::of(op) {
                Decider::Home => cell.kind.homes(),
                Decider::Root => 1,
            };
            cell.rate() / f64::from(deciders) / 2.0
        });
        rates.fold(f64::INFINITY, f64::min)
    }

    fn leave_out(&mut self, kind: Kind, op: Option<Op>, why: String) {
        let left = LeftOut { kind, op, why };
        eprintln!("left out: {left}");
        self.left_out.push(left);
    }

    /// Lays a shape out, measures it, and ends it. `offered` is the rate for each operation. What does not go is left out,
    /// and told.
    async fn visit(
        &mut self,
        kind: Kind,
        zookeeper: &ZooKeeper,
        round: u32,
        offered: Option<&[f64]>,
    ) -> anyhow::Result<()> {
        if self.left_out.iter().any(|left| left.kind == kind && left.op.is_none()) {
            return Ok(());
        }
        if let Some(why) = room::obstacle(kind, room::available()) {
            self.leave_out(kind, None, why);
            return Ok(());
        }
        let name = kind.to_string().to_lowercase().replace(' ', "-");
        let dir = self.dir.join(format!("{name}-{round}"));
        std::fs::create_dir_all(&dir)?;
        let stage = match self.lay_out(kind, &dir, zookeeper).await {
            Ok(stage) => stage,
            Err(error) => {
                self.leave_out(kind, None, format!("it does not come up: {error:#}"));
                return Ok(());
            }
        };
        eprintln!("round {round}: {kind} is up");
        for (index, op) in self.ops.clone().into_iter().enumerate().filter(|(_, op)| kind.knows(*op)) {
            let rate = offered.map(|offered| offered[index]);
            if let Err(error) = self.measure_op(&stage, op, rate).await {
                self.leave_out(kind, Some(op), format!("{error:#}"));
            }
        }
        drop(stage);
        // The logs are worth more than a clean directory when something went wrong.
        if !self.args.keep && !self.left_out.iter().any(|left| left.kind == kind) {
            std::fs::remove_dir_all(&dir)?;
        }
        Ok(())
    }

    async fn lay_out(&self, kind: Kind, dir: &Path, zookeeper: &ZooKeeper) -> anyhow::Result<Stage> {
        match (kind, &self.args.groups.hadoop) {
            (Kind::Clover { groups, members }, _) => {
                let name = dir.file_name().unwrap_or_default().to_string_lossy();
                let name = format!("clover-bench-{}/{name}", std::process::id());
                let program = self.args.group.program()?;
                let (name, program) = (&*name, &*program);
                let root = Plan { dir, number: 1, members, zookeeper, name, settings: &[], program };
                Stage::clover(groups, root).await
            }
            (kind, Some(jars)) => {
                Stage::hadoop(kind, &std::path::absolute(jars)?, dir, &self.settings.user).await
            }
            (_, None) => bail!("--hadoop names Hadoop's jars"),
        }
    }

    async fn measure_op(&mut self, stage: &Stage, op: Op, rate: Option<f64>) -> anyhow::Result<()> {
        let kind = stage.kind;
        let mut load = Load::prepare(stage, &self.settings, op).await?;
        for _ in 0..if kind.is_clover() { 1 } else { JVM_WARM_UP } {
            load.measure(None).await.context("warming up")?;
        }
        let saturated = load.measure(None).await?;
        let (mut paced, mut alone_us, mut doors) = (None, None, None);
        if let Some(rate) = rate {
            if kind.is_clover() {
                paced = Some(load.measure(Some(rate)).await?);
            }
            alone_us = Some(load.alone().await?);
            if kind.homes() > 1 && BY_DOORS.contains(&op) {
                // Neither the home itself nor, if that can be, the root group.
                let door = if kind.homes() > 2 { 3 } else { 1 };
                doors = Some(Doors {
                    own: load.one_home(2, Some(rate)).await?,
                    other: load.one_home(door, Some(rate)).await?,
                    other_saturated: load.one_home(door, None).await?,
                });
            }
        }
        let index = self.cells.iter().position(|cell| cell.kind == kind && cell.op == op);
        let index = index.unwrap_or_else(|| {
            self.cells.push(Cell::new(kind, op));
            self.cells.len() - 1
        });
        let cell = &mut self.cells[index];
        cell.saturated.push(saturated);
        cell.offered = rate.unwrap_or(cell.offered);
        cell.paced.extend(paced);
        cell.alone_us.extend(alone_us);
        cell.doors.extend(doors);
        eprintln!("{kind}: {} {:.0} op/s", op.name(), saturated.rate);
        Ok(())
    }

    fn tell(&self) {
        if self.args.json {
            self.cells.iter().for_each(|cell| println!("{}", cell.json()));
            if self.is_broken_off {
                println!("{}", json!({"broken_off": true}));
            }
            for left in &self.left_out {
                let op = left.op.map(Op::name);
                println!("{}", json!({"shape": left.kind.to_string(), "op": op, "left_out": left.why}));
            }
            return;
        }
        self.ops.iter().for_each(|op| println!("{}", report::tables(*op, &self.cells)));
        print!("{}", report::LEGEND);
        if self.is_broken_off {
            println!("broken off: what was not measured until then is missing");
        }
        for left in &self.left_out {
            println!("left out: {left}");
        }
    }
}
