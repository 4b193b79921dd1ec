//! `clover meta format --once`: what a program that starts servers may order before each start. A directory that is made stays as it is; else
//! the first of the members makes the cluster, and the others join it when it is there.

use super::{Format, coordinator, found, join};
use crate::config;
use anyhow::{Context, bail};
use base::{GroupId, MemberId};
use coord::Coordinator;
use env::Env;
use metad::{ClusterError, CoordinatorConfig, MetaConfig, read_cluster};
use std::{
    thread,
    time::{Duration, Instant},
};

/// How long a member waits for the first one to make the cluster.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_PERIOD: Duration = Duration::from_secs(1);

pub fn run(args: &Format, settings: &config::settings::Settings, config: &MetaConfig) -> anyhow::Result<()> {
    let directory = &config.name_directory;
    match read_cluster(&Env::production(), directory) {
        Ok(cluster) => {
            println!(
                "{} belongs to cluster {} already; nothing was changed.",
                directory.display(),
                cluster.cluster_id
            );
            return Ok(());
        }
        // Also if there are other files in it: then it is refused below.
        Err(ClusterError::Missing(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let group = &config.group;
    let first = group.members.iter().min().copied().unwrap_or(group.member);
    let CoordinatorConfig::ZooKeeper(zookeeper) = &group.coordinator else {
        // A lone server.
        config::group::check_for_format(settings)?;
        return found(args, config);
    };
    let known = coordinator::reach(zookeeper)?;
    if is_made(&*known)? {
        return join(args, config);
    }
    if group.member == first {
        config::group::check_for_format(settings)?;
        return found(args, config);
    }
    wait_for_cluster(&*known, first)?;
    join(args, config)
}

/// Whether the coordinator knows a cluster that some server was made for.
fn is_made(coordinator: &dyn Coordinator) -> anyhow::Result<bool> {
    let groups =
        coord::wait(|done| coordinator.groups(done)).context("asking the coordinator for the groups")?;
    Ok(groups.contains(&GroupId::ROOT))
}

fn wait_for_cluster(coordinator: &dyn Coordinator, first: MemberId) -> anyhow::Result<()> {
    println!("There is no cluster yet: member {first} makes it. Waiting for that.");
    let begun = Instant::now();
    while !is_made(coordinator)? {
        if begun.elapsed() > PATIENCE {
            bail!("member {first} has made no cluster for {} s: look at what it says", PATIENCE.as_secs());
        }
        thread::sleep(LOOK_PERIOD);
    }
    Ok(())
}
