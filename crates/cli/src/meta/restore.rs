//! `clover meta restore`: a metadata directory from a backup, as of an entry or a time.

use super::{
    Serve,
    backup::{Point, open, rebuilt, which},
    coordinator, make_private,
};
use crate::{config, user};
use anyhow::Context;
use env::Env;
use metad::{
    CoordinatorConfig,
    backup::{Wish, restore},
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
    let (group, directory) = (&config.group, &config.name_directory);
    let backup = open(&args.directory)?;
    // Quick checks come before the replay of the backup, which may take minutes.
    metad::format::refuse_if_not_empty(&Env::production(), directory)?;
    if let CoordinatorConfig::ZooKeeper(zookeeper) = &group.coordinator {
        coordinator::check_before_format(zookeeper)?;
    }
    let rebuilt = rebuilt(&backup, &args.point)?;
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
    println!("Restored cluster {} in {}, as of {state}.", restored.cluster.cluster_id, directory.display());
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
