//! `clover admin group`: the servers that together hold the names, and orders to them.

mod fail_active;
mod orders;
mod repair;
pub mod show;
mod unclean_elect;
mod watch;

use super::{
    secret,
    servers::{OfGroup, Servers},
};
use std::process::ExitCode;

pub use orders::have_handed_over;

/// Show the group of metadata servers: roles, who is in sync, the last takeovers; or give it an order.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long, global = true, help_heading = crate::EVERYWHERE)]
    json: bool,
    #[command(flatten)]
    secret: secret::ProvedBy,
    #[command(flatten)]
    of: OfGroup,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the group, as without an order.
    #[command(alias = "status")]
    Show,
    /// Take a server into the group.
    Add(orders::Add),
    /// Take a server out of the group.
    Remove(orders::Remove),
    /// Say how many servers must hold a change before it is acknowledged.
    Minimum(orders::Minimum),
    /// Let another server become active, without a gap in what clients see.
    HandOver(orders::HandOver),
    /// Let the active end as if it had been killed, and watch who takes over and how long it takes.
    FailActive(fail_active::Args),
    /// Make a server active that may lack acknowledged changes, when no complete one can come back.
    UncleanElect(unclean_elect::Args),
    /// Write the coordinator's view of the group anew, from what the servers hold, when the coordinator has lost history.
    Repair(repair::Args),
}

pub async fn run(servers: Servers, args: Args) -> anyhow::Result<ExitCode> {
    let mut servers = servers.of_group(args.of).await?;
    let config = args.secret.config.clone();
    servers.prove_by(args.secret.secret_file, args.secret.config);
    let servers = &servers;
    match args.command {
        None | Some(Command::Show) => {
            let group = servers.group().await?;
            match args.json {
                true => println!("{}", serde_json::to_string_pretty(&show::json(&group))?),
                false => print!("{}", show::text(&group)),
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Add(order)) => orders::add(servers, order).await,
        Some(Command::Remove(order)) => orders::remove(servers, order).await,
        Some(Command::Minimum(order)) => orders::minimum(servers, order).await,
        Some(Command::HandOver(order)) => {
            orders::hand_over(servers, order, config.as_deref(), args.json).await
        }
        Some(Command::FailActive(order)) => fail_active::run(servers, order, args.json).await,
        Some(Command::UncleanElect(order)) => unclean_elect::run(servers, order).await,
        Some(Command::Repair(order)) => repair::run(servers, order, args.json).await,
    }
}
