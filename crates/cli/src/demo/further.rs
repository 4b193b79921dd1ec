//! The further groups of a demo: they are made when group 1 serves, and become homes of files when data servers know them.

use super::READY_TIMEOUT;
use crate::{
    admin::{groups::Look, servers::Servers},
    meta::further_group,
};
use anyhow::Context;
use base::GroupId;
use env::Env;
use metad::{Cluster, MetaConfig, backup};
use proto::clover::admin::{GiveSlotsRequestProto, GiveSlotsResponseProto};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Makes a group that the demo does not have yet, with all its members.
pub async fn make(
    dir: &Path,
    env: &Env,
    cluster: &Cluster,
    servers: &Servers,
    configs: &[MetaConfig],
    coordinator: coord::Embedded,
) -> anyhow::Result<()> {
    let (first, others) = configs.split_first().context("a group has a member")?;
    let whose = backup::Group {
        cluster_id: cluster.cluster_id.clone(),
        group: GroupId::ROOT,
        secret: servers.secret()?,
        user: servers.user().to_owned(),
    };
    let fetched = dir.join("directories-of-group-1");
    if fetched.exists() {
        std::fs::remove_dir_all(&fetched)?;
    }
    tell_the_root(servers, first.group.id).await?;
    let tree = further_group::fetch(whose, &fetched, std::sync::Arc::new(coordinator)).await?;
    std::fs::remove_dir_all(&fetched)?;
    metad::found_group(env, &first.name_directory, &first.group, &tree)?;
    for config in others {
        metad::join(env, &config.name_directory, &config.group)?;
    }
    eprintln!("made group {} with {} members", first.group.id, configs.len());
    Ok(())
}

/// Group 1 has just begun: its active is awaited.
async fn tell_the_root(servers: &Servers, group: GroupId) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        match further_group::tell_the_root(servers, group).await {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() > READY_TIMEOUT => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// All groups serve, so many data servers have told each of them what they hold, and each is the home of files. `groups` is the number of groups.
pub async fn wait_until_homes(servers: &Servers, groups: usize, data_servers: usize) -> anyhow::Result<()> {
    let mut last = String::new();
    let ready = async {
        loop {
            match step(servers, groups, data_servers).await {
                Ok(None) => return,
                Ok(Some(lacking)) => last = lacking,
                Err(error) => last = format!("{error:#}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = tokio::time::timeout(READY_TIMEOUT, ready).await;
    waited.with_context(|| format!("not all groups serve after {} s: {last}", READY_TIMEOUT.as_secs()))
}

/// What is lacking.
async fn step(servers: &Servers, groups: usize, data_servers: usize) -> anyhow::Result<Option<String>> {
    let look = Look::at(servers).await?;
    if look.groups.len() < groups {
        return Ok(Some(format!("{} of {groups} groups are known", look.groups.len())));
    }
    let root = look.group(GroupId::ROOT.0).and_then(|root| root.itself.as_ref());
    let root = root.context("group 1 does not answer")?;
    for group in &look.groups {
        let (number, told) = (group.known.group, group.data_servers().unwrap_or(0) as usize);
        if told < data_servers {
            return Ok(Some(format!("{told} of {data_servers} data servers have told group {number}")));
        }
        if !group.log.as_ref().is_some_and(|log| log.is_serving) {
            return Ok(Some(format!("group {number} does not serve")));
        }
        if number != GroupId::ROOT.0 && group.known.slots == 0 {
            let request = GiveSlotsRequestProto { group: number };
            let _: GiveSlotsResponseProto = servers.order(root, "giveSlots", &request).await?;
        }
    }
    Ok(None)
}
