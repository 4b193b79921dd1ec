//! What an operator asks of the metadata servers, and orders them to do.

mod group;
mod quota;
pub mod servers;
mod snapshots;
mod storage_policies;

use crate::{runtime, target::Target};
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

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let target = &args.target;
    match args.command {
        Command::Group(args) => {
            let servers = Servers::find(target)?;
            runtime::block_on(async move { group::run(&servers, args).await })
        }
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
