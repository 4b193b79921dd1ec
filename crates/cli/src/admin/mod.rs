//! The questions and orders of an operator to the metadata servers.
//!
//! The words are those of `hdfs dfsadmin`, which may be used as well: `save-namespace` or `saveNamespace`.

mod backup;
mod blocks;
mod confirm;
mod data_server;
mod data_servers;
mod disk_balancer;
mod group;
pub mod groups;
mod login_link;
pub(crate) mod orders;
mod quota;
mod reconfigure;
pub(crate) mod report;
pub mod secret;
pub mod servers;
mod snapshots;
mod storage_policies;
mod upgrade;
mod where_is;

pub use group::have_handed_over;

pub use report::{service, size};

use crate::{runtime, target::Target};
use client::FileSystem;
use servers::Servers;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Group(group::Args),
    Groups(groups::Args),
    Where(where_is::Args),
    Backup(backup::Args),
    Blocks(blocks::Args),
    LoginLink(login_link::Args),
    Upgrade(upgrade::Args),
    Report(report::Report),
    Decommission(data_servers::Decommission),
    Maintenance(data_servers::Maintenance),
    Recommission(data_servers::Recommission),
    Orders(data_servers::Orders),
    #[command(alias = "printTopology")]
    Topology(report::Topology),
    #[command(alias = "safemode")]
    SafeMode(orders::SafeMode),
    /// Write an image of the namespace now; safe mode must be on.
    #[command(alias = "saveNamespace")]
    SaveNamespace,
    /// Have the journal begin a new segment with its next entry.
    #[command(alias = "rollEdits")]
    RollEdits,
    /// Read again which data servers may take part.
    #[command(alias = "refreshNodes")]
    RefreshNodes,
    /// List the files that are being written, and by whom.
    #[command(alias = "listOpenFiles")]
    ListOpenFiles(orders::Files),
    /// List the files that have lost a block.
    ListCorruptFiles(orders::Files),
    #[command(alias = "setBalancerBandwidth")]
    SetBalancerBandwidth(orders::BalancerBandwidth),
    DiskBalancer(disk_balancer::Args),
    Reconfigure(reconfigure::Args),
    AllowSnapshot(snapshots::Allow),
    DisallowSnapshot(snapshots::Disallow),
    #[command(name = "ls-snapshottable-dir")]
    Directories(snapshots::Directories),
    #[command(name = "ls-snapshot")]
    Snapshots(snapshots::Snapshots),
    #[command(name = "snapshot-diff")]
    Diff(snapshots::Diff),
    #[command(visible_alias = "setQuota")]
    SetQuota(quota::SetQuota),
    #[command(name = "clr-quota", visible_alias = "clrQuota")]
    ClearQuota(quota::ClearQuota),
    #[command(visible_alias = "setSpaceQuota")]
    SetSpaceQuota(quota::SetSpaceQuota),
    #[command(name = "clr-space-quota", visible_alias = "clrSpaceQuota")]
    ClearSpaceQuota(quota::ClearSpaceQuota),
    StoragePolicies(storage_policies::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let target = &args.target;
    match args.command {
        Command::Group(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { group::run(servers, args).await })
        }
        Command::Groups(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { groups::run(servers, args).await })
        }
        Command::Where(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { where_is::run(servers, args).await })
        }
        Command::Backup(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { backup::run(servers, args).await })
        }
        Command::Blocks(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { blocks::run(servers, args).await })
        }
        Command::LoginLink(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { login_link::run(servers, args).await })
        }
        Command::Upgrade(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { upgrade::run(servers, || connect(target), args).await })
        }
        Command::Report(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async { report::report(&servers, &connect(target)?, args).await })
        }
        Command::Decommission(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { data_servers::decommission(&servers, args).await })
        }
        Command::Maintenance(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { data_servers::maintenance(&servers, args).await })
        }
        Command::Recommission(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { data_servers::recommission(&servers, args).await })
        }
        Command::Orders(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { data_servers::orders(&servers, args).await })
        }
        Command::Topology(args) => {
            runtime::block_on(async { report::topology(&connect(target)?, args).await })
        }
        Command::SafeMode(args) => {
            runtime::block_on(async { orders::safe_mode(&connect(target)?, args).await })
        }
        Command::SaveNamespace => {
            runtime::block_on(async { orders::save_namespace(&connect(target)?).await })
        }
        Command::RollEdits => runtime::block_on(async { orders::roll_edits(&connect(target)?).await }),
        Command::RefreshNodes => runtime::block_on(async { orders::refresh_nodes(&connect(target)?).await }),
        Command::ListOpenFiles(args) => {
            runtime::block_on(async { orders::open_files(&connect(target)?, args).await })
        }
        Command::ListCorruptFiles(args) => {
            runtime::block_on(async { orders::corrupt_files(&connect(target)?, args).await })
        }
        Command::SetBalancerBandwidth(args) => {
            runtime::block_on(async { orders::balancer_bandwidth(&connect(target)?, args).await })
        }
        Command::DiskBalancer(args) => runtime::block_on(disk_balancer::run(target, args)),
        Command::Reconfigure(args) => runtime::block_on(reconfigure::run(target, args)),
        Command::AllowSnapshot(order) => runtime::block_on(snapshots::allow(target, order)),
        Command::DisallowSnapshot(order) => runtime::block_on(snapshots::disallow(target, order)),
        Command::Directories(wanted) => runtime::block_on(snapshots::directories(target, wanted)),
        Command::Snapshots(wanted) => runtime::block_on(snapshots::snapshots(target, wanted)),
        Command::Diff(wanted) => runtime::block_on(snapshots::diff(target, wanted)),
        Command::SetQuota(args) => quota::set(target, args),
        Command::ClearQuota(args) => quota::clear(target, args),
        Command::SetSpaceQuota(args) => quota::set_space(target, args),
        Command::ClearSpaceQuota(args) => quota::clear_space(target, args),
        Command::StoragePolicies(args) => storage_policies::run(target, args),
    }
}

fn connect(target: &Target) -> anyhow::Result<FileSystem> {
    let config = target.configuration()?;
    Ok(FileSystem::connect(&target.uri(&config), &config)?)
}
