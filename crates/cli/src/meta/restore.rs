//! `clover meta restore`: a metadata directory from a backup, as of an entry or a time.

use super::{
    Serve,
    backup::{Point, rebuilt, which},
    coordinator, make_private,
    opened::open,
};
use crate::{config, user};
use anyhow::{Context, bail};
use base::GroupId;
use env::Env;
use journal::archive::Backup;
use metad::{
    CoordinatorConfig, GroupConfig,
    backup::{Rebuilt, RestoreError, Restored, Until, Wish, place_of_root, restore},
};
use std::{path::PathBuf, process::ExitCode};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory of the backup. Nothing in it is changed.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    serve: Serve,
    #[command(flatten)]
    point: Point,
    /// Make another cluster of this id with the same names: without the blocks, and to the data servers of the old one a stranger.
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let settings = args.serve.settings()?;
    let config = config::meta::config(&settings, &user::of_this_process()?)?;
    config::group::check_for_format(&settings)?;
    let backup = open(&args.directory)?;
    let id = backup.manifest().whose.group;
    let group = &GroupConfig { id, ..config.group.clone() };
    let directory = &config.name_directory;
    // Quick checks come before the replay of the backup, which may take minutes.
    metad::format::refuse_if_not_empty(&Env::production(), directory)?;
    if let (GroupId::ROOT, CoordinatorConfig::ZooKeeper(zookeeper)) = (id, &group.coordinator) {
        coordinator::check_before_format(zookeeper)?;
    }
    let rebuilt = match id {
        GroupId::ROOT => of_root_group(&backup, &args.point)?,
        _ => rebuilt(&backup, beside_root_group(group, &args.point)?)?,
    };
    let (state, counts) = (which(&rebuilt), rebuilt.namespace.counts());
    make_private(directory)?;
    let wish = Wish {
        name_directory: directory,
        group,
        address: config.rpc_address.ip(),
        new_cluster_id: args.cluster_id.clone(),
    };
    let made = restore(&Env::production(), backup.manifest(), rebuilt, &wish);
    let restored =
        made.with_context(|| match metad::format::refuse_if_not_empty(&Env::production(), directory) {
            Ok(()) => format!("nothing was made: {} is empty, as it was before", directory.display()),
            Err(_) => format!(
                "nothing that can be used was made in {0}: empty {0} before you give the order again",
                directory.display()
            ),
        })?;
    let which = if id == GroupId::ROOT { String::new() } else { format!("group {id} of ") };
    println!(
        "Restored {which}cluster {} in {}, as of {state}.",
        restored.cluster.cluster_id,
        directory.display()
    );
    println!(
        "{} files, {} directories, {} blocks. Block pool: {}",
        counts.files, counts.directories, counts.blocks, restored.cluster.block_pool
    );
    if let CoordinatorConfig::ZooKeeper(zookeeper) = &group.coordinator {
        println!("Coordinator: ZooKeeper {}, below {}", zookeeper.servers, zookeeper.root);
    }
    if let Some(exposure) = metad::format::exposure(group) {
        eprintln!("WARNING: {exposure}.");
    }
    println!(
        "No replica on a data server is deleted for being unknown before `clover admin blocks allow-deletions`."
    );
    println!("Next:");
    if args.cluster_id.is_none() {
        println!("  stop every metadata server of the old cluster for good, and put their directories aside");
    }
    println!("  {}", args.serve.command());
    let others: Vec<String> =
        group.members.iter().filter(|member| **member != group.member).map(ToString::to_string).collect();
    if !others.is_empty() {
        println!("  on the machine of each other member ({}), with an empty name_dir:", others.join(", "));
        println!("    clover meta format --join --config FILE");
        println!("    clover meta --config FILE");
    }
    tell_others(args, id, &restored);
    if args.cluster_id.is_none() {
        println!(
            "  start the data servers again, and wait until all of them have reported: clover admin report"
        );
        println!(
            "  clover admin safe-mode leave       where it does not end by itself, since blocks are missing"
        );
        println!("  clover admin list-corrupt-files    the files whose blocks are gone since");
        println!(
            "  clover admin blocks allow-deletions    when you are sure that nothing newer can be brought back"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The root group's state. Where several groups hold the namespace it is at a place in the directory log.
fn of_root_group(backup: &Backup, point: &Point) -> anyhow::Result<Rebuilt> {
    let until = point.until();
    let found = rebuilt(backup, until)?;
    let Some(further) = found.namespace.further_groups().next() else { return Ok(found) };
    if found.found.place.is_some() {
        return Ok(found);
    }
    let dix = found.namespace.directory_log().dix;
    drop(found);
    if until == Until::End {
        return Err(RestoreError::AtNoPlace { further }.into());
    }
    eprintln!(
        "Several groups hold this namespace, and all are restored at one place in the directory log: the last one before that is {dix}."
    );
    rebuilt(backup, Until::Place(dix))
}

/// The state of another group is at the place of the root group, which the coordinator knows.
fn beside_root_group(group: &GroupConfig, point: &Point) -> anyhow::Result<Until> {
    let CoordinatorConfig::ZooKeeper(zookeeper) = &group.coordinator else {
        return Err(RestoreError::NeedsCoordinator.into());
    };
    let root = place_of_root(&*coordinator::reach(zookeeper)?)?.dix;
    match point.until() {
        Until::End => Ok(Until::Place(root)),
        Until::Place(found) if found == root => Ok(Until::Place(root)),
        Until::Place(found) => Err(RestoreError::OtherPlace { group: group.id, root, found }.into()),
        Until::Time(_) | Until::Entry(_) => bail!(
            "group {} is restored where the root group was, at the place {root} in the directory log: leave --at and --entry out",
            group.id
        ),
    }
}

/// Tells the operator to restore the other groups of the namespace, and how.
fn tell_others(args: &Args, id: GroupId, restored: &Restored) {
    let further: Vec<&GroupId> = restored.others.iter().filter(|group| **group != GroupId::ROOT).collect();
    if id != GroupId::ROOT || further.is_empty() {
        return;
    }
    let copy = args.cluster_id.as_ref().map_or_else(String::new, |copy| format!(" --cluster-id {copy}"));
    println!("  restore the other groups, each on its first machine, with the same path in `coordinator`:");
    for group in further {
        println!("    clover meta restore BACKUP-OF-GROUP-{group} --config FILE{copy}");
    }
    println!("  clover admin groups    shows whether they follow");
}
