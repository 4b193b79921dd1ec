//! `clover meta format --group N --join`, where the cluster has no group N yet: this server becomes its first member.
//!
//! The root group is told of the group, and then its directories are fetched: so they are those of a tree that knows the group. If this is broken
//! off in between, the same order goes on.

use super::{Serve, coordinator, make_private};
use crate::{admin::servers::Servers, runtime, user::of_this_process};
use anyhow::{Context, bail};
use base::{GroupId, MemberId};
use coord::{Coordinator, ZooKeeperConfig};
use env::Env;
use metad::{
    Cluster, MetaConfig,
    backup::{self, Event, Operator, Place},
};
use namespace::Namespace;
use proto::clover::admin::{AddGroupRequestProto, AddGroupResponseProto};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};
use tokio::runtime::Handle;

/// Makes the group's first member.
pub(super) fn found(serve: &Serve, config: &MetaConfig, zookeeper: &ZooKeeperConfig) -> anyhow::Result<()> {
    let (env, group, directory) = (Env::production(), &config.group, &config.name_directory);
    if !group.members.contains(&group.member) {
        bail!(
            "member = {}, and members = {}: the first server of a group is one of its members",
            group.member,
            list(&group.members)
        );
    }
    metad::format::refuse_if_not_empty(&env, directory)?;
    let coordinator = coordinator::reach(zookeeper)?;
    let root = metad::format::cluster_of_root(&*coordinator)?;
    let secret = metad::format::secret(&env, group.secret.as_deref(), &root);
    let secret = secret
        .map_err(|(path, what)| anyhow::anyhow!("{}: {what}", path.display()))?
        .context("the coordinator keeps no secret of this cluster: name the members' in secret_file")?;
    let places = places(&*coordinator)?;
    let mut servers = Servers::of(of_this_process()?, addresses(&places));
    servers.prove_with(secret.clone());
    let whose = backup::Group {
        cluster_id: root.cluster_id.clone(),
        group: GroupId::ROOT,
        secret,
        user: servers.user().to_owned(),
    };

    let beside = beside(directory)?;
    let id = group.id;
    let fetched = beside.clone();
    let mut tree = None;
    runtime::block_on(async {
        let is_new = tell_the_root(&servers, id).await?;
        println!("Group 1 {} group {id}.", if is_new { "has taken in" } else { "knows" });
        tree = Some(fetch(whose, &fetched, coordinator).await?);
        Ok(ExitCode::SUCCESS)
    })
    .with_context(|| format!("group {id} was not made; the same order goes on with it"))?;
    let tree = tree.context("nothing was fetched")?;
    println!("Fetched its {} directories.", tree.counts().directories);

    let made = make(&env, config, &tree);
    // It holds copies of what group 1 keeps, and is of no further use.
    let removed = fs::remove_dir_all(&beside);
    let cluster = made?;
    removed.with_context(|| format!("removing {}", beside.display()))?;
    tell(serve, config, &cluster, zookeeper);
    Ok(())
}

fn make(env: &Env, config: &MetaConfig, tree: &Namespace) -> anyhow::Result<Cluster> {
    make_private(&config.name_directory)?;
    Ok(metad::found_group(env, &config.name_directory, &config.group, tree)?)
}

/// Fetches the tree of group 1 into a directory of its own, as it is now.
///
/// # Errors
/// Its members do not give it, or the directory cannot be written.
pub async fn fetch(
    whose: backup::Group,
    into: &Path,
    coordinator: Arc<dyn Coordinator>,
) -> anyhow::Result<Namespace> {
    let (into, handle) = (into.to_owned(), Handle::current());
    let fetching = tokio::task::spawn_blocking(move || {
        let env = Env::production();
        backup::tree_of_now(&env, &into, whose, &handle, &mut Fetching { coordinator })
    });
    Ok(fetching.await.context("the thread that fetches has ended")??)
}

/// The order to count the group in. False: it was counted in before.
///
/// # Errors
/// Group 1 refuses, or nobody of it answers.
pub async fn tell_the_root(servers: &Servers, group: GroupId) -> anyhow::Result<bool> {
    let root = servers.group().await?;
    let request = AddGroupRequestProto { group: group.0 };
    let answer: AddGroupResponseProto = servers.order(&root, "addGroup", &request).await?;
    Ok(answer.is_new())
}

fn tell(serve: &Serve, config: &MetaConfig, cluster: &Cluster, zookeeper: &ZooKeeperConfig) {
    let group = &config.group;
    let others: Vec<MemberId> =
        group.members.iter().copied().filter(|member| *member != group.member).collect();
    println!(
        "Made group {} of cluster {} in {}.",
        group.id,
        cluster.cluster_id,
        config.name_directory.display()
    );
    println!("Block pool:  {}", cluster.block_pool);
    println!("Coordinator: ZooKeeper {}, below {}", zookeeper.servers, zookeeper.root);
    let to_join = if others.is_empty() { String::new() } else { format!("; {} are to join", list(&others)) };
    println!("Group:       member {} has all directories and is in sync{to_join}", group.member);
    if let Some(exposure) = metad::format::exposure(group) {
        eprintln!("WARNING: {exposure}.");
    }
    if group.members.len() == 1 || group.in_sync_min == Some(1) {
        eprintln!("WARNING: {}.", metad::ONE_COPY);
    }
    println!("Next:");
    println!("  {}", serve.command());
    if !others.is_empty() {
        println!(
            "  on the machine of each other member ({}), with its own `member` and addresses:",
            list(&others)
        );
        println!("    clover meta format --group {} --join --config FILE", group.id);
        println!("    clover meta --config FILE");
    }
    println!(
        "  name the members of all groups in metadata_servers of every data server, and start these again"
    );
    println!("  clover admin groups    shows whether group {} follows", group.id);
    println!("  clover admin groups give-slots {}    lets files of new directories be there", group.id);
}

/// A new directory beside the server's own: on the disk that has to have room for the directories anyway.
fn beside(directory: &Path) -> anyhow::Result<PathBuf> {
    let directory = std::path::absolute(directory)?;
    let name = directory.file_name().context("name_dir is a directory with a name")?.to_string_lossy();
    let beside = directory.with_file_name(format!("{name}.directories-of-group-1"));
    if beside.exists() {
        // What an order that was broken off has left.
        fs::remove_dir_all(&beside).with_context(|| format!("removing {}", beside.display()))?;
    }
    if let Some(above) = beside.parent() {
        fs::create_dir_all(above).with_context(|| format!("making {}", above.display()))?;
    }
    make_private(&beside)?;
    Ok(beside)
}

fn places(coordinator: &dyn Coordinator) -> anyhow::Result<Vec<Place>> {
    let records = coord::wait(|done| coordinator.read_members(GroupId::ROOT, done))?;
    let places: Vec<Place> = records
        .into_iter()
        .filter(|record| !record.rpc_address.is_empty())
        .map(|record| Place { member: record.life.store.member, rpc_address: record.rpc_address })
        .collect();
    if places.is_empty() {
        bail!("no server of group 1 has run yet: start it first");
    }
    Ok(places)
}

fn addresses(places: &[Place]) -> Vec<String> {
    places.iter().map(|place| place.rpc_address.clone()).collect()
}

fn list(members: &[MemberId]) -> String {
    members.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Fetches the directories.
struct Fetching {
    coordinator: Arc<dyn Coordinator>,
}

impl Operator for Fetching {
    fn find(&mut self) -> Option<Vec<Place>> {
        places(&*self.coordinator).ok()
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Image { from, have, total, .. } if have == total => {
                eprintln!("fetched an image of {total} bytes from member {from}");
            }
            Event::Waits(why) => eprintln!("waiting: {why}"),
            _ => {}
        }
    }
}
