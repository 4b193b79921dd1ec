//! One operation on one stage: the load, and what each server spends on it.

use super::{
    load::{self, Done, Force, Stream},
    servers::{Role, Server},
    stage::{DIRECTORIES, Decider, Stage},
    work::Work,
};
use crate::meta::{Op, cpu};
use anyhow::Context;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// The settings of all measurements.
#[derive(Clone, Debug)]
pub struct Settings {
    pub user: String,
    pub connections: u32,
    pub in_flight: u32,
    pub length: Duration,
    /// Files of each home that operations go round.
    pub files: u64,
    /// Of each directory that is listed.
    pub directory_entries: u64,
}

/// The figures of one measurement. Not a number: there is no such server.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub rate: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Processor time that the root group's active spends on an operation that it serves.
    pub root_us: f64,
    /// Processor time that the active of another group spends on an operation that it serves. Of operations that the root group orders (mkdir, rename between
    /// homes): what the actives of all other groups spend together on one operation.
    pub homes_us: f64,
    /// Of all standbys, on each operation.
    pub standbys_us: f64,
    /// Of all JournalNodes, on each operation.
    pub journals_us: f64,
    /// Of the load generator, on each operation.
    pub client_us: f64,
    /// The part of each operation that the busiest server spends.
    pub busiest_us: f64,
    pub errors: f64,
}

impl Figures {
    /// Of all servers, on each operation. Where there are several groups this is that of the root group's servers and of all others for an
    /// operation that each of them serves.
    pub fn servers_us(&self) -> f64 {
        let roles = [self.root_us, self.homes_us, self.standbys_us, self.journals_us];
        roles.into_iter().filter(|us| us.is_finite()).sum()
    }
}

/// The figures of calls for one home, sent to one server.
#[derive(Clone, Copy, Debug)]
pub struct OneHome {
    pub rate: f64,
    pub p50_us: f64,
    pub home_us: f64,
    pub door_us: f64,
    pub errors: f64,
}

/// The processor time that the servers and the load generator have spent in one measurement, and the operations they have spent it on.
struct Spent {
    done: Done,
    /// Of each server of the stage.
    servers: Vec<Duration>,
    client: Duration,
}

/// An operation's load on a stage, with the files that it needs.
pub struct Load<'a> {
    stage: &'a Stage,
    settings: &'a Settings,
    op: Op,
    streams: Vec<(Stream, Work)>,
}

impl<'a> Load<'a> {
    pub async fn prepare(stage: &'a Stage, settings: &'a Settings, op: Op) -> anyhow::Result<Self> {
        let files = match op {
            Op::List => DIRECTORIES as u64 * settings.directory_entries,
            _ => settings.files,
        };
        let streams = stage.streams(op, files);
        let load = Self { stage, settings, op, streams };
        if op != Op::Delete {
            let making = load.streams.iter().filter_map(|(stream, work)| {
                let work = Arc::new(work.preparation()?);
                Some(Stream { work, bound: files, next: Arc::default(), ..stream.clone() })
            });
            let making: Vec<Stream> = making.collect();
            if !making.is_empty() {
                load::run_all(&making, &settings.user, load.force(None)).await.context("making files")?;
            }
        }
        Ok(load)
    }

    fn force(&self, rate: Option<f64>) -> Force {
        Force { connections: self.settings.connections, in_flight: self.settings.in_flight, rate }
    }

    /// Loads all homes, with so many operations a second for each server that decides them, or with as many as they take.
    pub async fn measure(&mut self, rate: Option<f64>) -> anyhow::Result<Figures> {
        self.make_what_goes().await?;
        let streams: Vec<Stream> = self.streams.iter().map(|(stream, _)| stream.clone()).collect();
        let spent = self.spend(&streams, self.force(rate)).await?;
        Ok(self.figures(&spent))
    }

    /// A client that makes one call after the other, and has the servers to itself. The answer is its median.
    pub async fn alone(&mut self) -> anyhow::Result<f64> {
        self.make_what_goes().await?;
        // The last home is another group than the root group, if there are several.
        let (stream, _) = self.streams.last().context("there is a home")?.clone();
        let force = Force { connections: 1, in_flight: 1, rate: None };
        let done = load::run(&[stream], &self.settings.user, force, self.settings.length).await?;
        Ok(done.together().latency.value_at_quantile(0.5) as f64 / 1e3)
    }

    /// Calls about files of group 2 only, all sent to one server, which is the active of group `door`.
    pub async fn one_home(&mut self, door: u32, rate: Option<f64>) -> anyhow::Result<OneHome> {
        self.make_what_goes().await?;
        const HOME: u32 = 2;
        let index =
            self.stage.homes.iter().position(|home| home.group == HOME).context("there is group 2")?;
        let active = |group: u32| {
            let is_it = |server: &Server| server.group == group && server.role != Role::Standby;
            self.stage.servers.iter().position(is_it).context("the group has an active")
        };
        let (home, door) = (active(HOME)?, active(door)?);
        let address = self.stage.servers[door].address;
        let stream = Stream { address, ..self.streams[index].0.clone() };
        let spent = self.spend(&[stream], self.force(rate)).await?;
        let outcome = spent.done.together();
        let count = outcome.latency.len().max(1) as f64;
        let us = |server: usize| spent.servers[server].as_secs_f64() * 1e6 / count;
        Ok(OneHome {
            rate: count / spent.done.elapsed.as_secs_f64(),
            p50_us: outcome.latency.value_at_quantile(0.5) as f64 / 1e3,
            home_us: us(home),
            door_us: if door == home { f64::NAN } else { us(door) },
            errors: outcome.errors.values().sum::<u64>() as f64,
        })
    }

    /// What deletions work on is gone afterwards: new files are made for each measurement.
    async fn make_what_goes(&mut self) -> anyhow::Result<()> {
        if self.op != Op::Delete {
            return Ok(());
        }
        let making = |(stream, work): &(Stream, Work)| {
            // Deletions go on behind the last of the files that were made before.
            let next = Arc::clone(&stream.next);
            Stream { work: Arc::new(work.making()), next, bound: u64::MAX, ..stream.clone() }
        };
        let mut first = Vec::new();
        for (stream, _) in &self.streams {
            first.push(match stream.bound {
                u64::MAX => 0,
                bound => bound,
            });
            stream.next.store(first[first.len() - 1], Ordering::Relaxed);
        }
        let making: Vec<Stream> = self.streams.iter().map(making).collect();
        let done =
            load::run(&making, &self.settings.user, self.force(None), self.settings.length * 2).await?;
        if let Some((error, count)) = done.together().errors.into_iter().next() {
            anyhow::bail!("making files: {count} operations: {error}");
        }
        for ((stream, _), first) in self.streams.iter_mut().zip(first) {
            stream.bound = stream.next.load(Ordering::Relaxed);
            stream.next.store(first, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn spend(&self, streams: &[Stream], force: Force) -> anyhow::Result<Spent> {
        let itself = cpu::Process::this();
        let look = || -> anyhow::Result<(Vec<cpu::Account>, cpu::Account)> {
            let servers = self.stage.servers.iter();
            let accounts: Option<Vec<_>> = servers.map(|server| server.process.account()).collect();
            Ok((
                accounts.context("a server has ended")?,
                itself.account().context("this process has an account")?,
            ))
        };
        let before = look()?;
        let done = load::run(streams, &self.settings.user, force, self.settings.length).await?;
        let after = look()?;
        for (error, count) in &done.together().errors {
            tracing::warn!("{}: {}: {count} x {error}", self.stage.kind, self.op.name());
        }
        let servers = after.0.iter().zip(&before.0).map(|(after, before)| after.since(before)).collect();
        Ok(Spent { done, servers, client: after.1.since(&before.1) })
    }

    fn figures(&self, spent: &Spent) -> Figures {
        let all = spent.done.together();
        let count = all.latency.len().max(1) as f64;
        let of = |role: Role| -> Vec<f64> {
            let servers = self.stage.servers.iter().zip(&spent.servers);
            servers.filter(|(server, _)| server.role == role).map(|(_, spent)| spent.as_secs_f64()).collect()
        };
        let served = |is_wanted: fn(u32) -> bool| match Decider::of(self.op) {
            Decider::Root => count,
            Decider::Home => {
                let homes = self.stage.homes.iter().zip(&spent.done.outcomes);
                let counts = homes.filter(|(home, _)| is_wanted(home.group));
                counts.map(|(_, outcome)| outcome.latency.len()).sum::<u64>() as f64
            }
        };
        let us = |role: Role, count: f64| match of(role) {
            times if times.is_empty() => f64::NAN,
            times => times.iter().sum::<f64>() * 1e6 / count.max(1.0),
        };
        let busiest = spent.servers.iter().max().copied().unwrap_or_default();
        Figures {
            rate: count / spent.done.elapsed.as_secs_f64(),
            p50_us: all.latency.value_at_quantile(0.5) as f64 / 1e3,
            p99_us: all.latency.value_at_quantile(0.99) as f64 / 1e3,
            root_us: us(Role::Root, served(|group| group == 1)),
            homes_us: us(Role::Home, served(|group| group != 1)),
            standbys_us: us(Role::Standby, count),
            journals_us: us(Role::Journal, count),
            client_us: spent.client.as_secs_f64() * 1e6 / count,
            busiest_us: busiest.as_secs_f64() * 1e6 / count,
            errors: all.errors.values().sum::<u64>() as f64,
        }
    }
}
