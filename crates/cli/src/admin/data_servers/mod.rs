//! `clover admin decommission`, `maintenance`, `recommission` and `orders`: data servers that leave service, and come back.
//!
//! Each group of metadata servers keeps its own orders, and looks after its own blocks. An order goes to all of them, and the server may be switched
//! off when all say so. If one group has not taken the order, the command is given again, and completes it.

mod give;
mod groups;
mod list;
pub mod source;
mod time;
mod wait;

use super::servers::Servers;
pub use list::Orders;
use proto::clover::admin::DataServerWishProto as Wish;
use std::process::ExitCode;

/// Order data servers out of service for good: their blocks are copied to others, and then they may be switched off.
#[derive(Debug, clap::Args)]
pub struct Decommission {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    waits: Waits,
    /// Also where too few data servers would be left for the copies of a block.
    #[arg(long)]
    force: bool,
}

/// Order data servers out of service for a while: they may be switched off once each of their blocks has a copy elsewhere, and are not made up for.
#[derive(Debug, clap::Args)]
pub struct Maintenance {
    #[command(flatten)]
    named: Named,
    /// The maintenance ends so long after the order: 90s, 30m, 2h, 7d.
    #[arg(long = "for", value_name = "DURATION", value_parser = time::duration, conflicts_with = "until_ms")]
    for_ms: Option<u64>,
    /// The maintenance ends at this time: 2026-12-24T18:00 by this machine's time zone, or 2026-12-24T18:00:00Z. Without an end, `recommission` ends it.
    #[arg(long = "until", value_name = "TIME", value_parser = time::moment)]
    until_ms: Option<u64>,
    #[command(flatten)]
    waits: Waits,
    /// Also where too few data servers would be left for the copies of a block.
    #[arg(long)]
    force: bool,
}

/// Take back the orders for data servers: they are in service again.
#[derive(Debug, clap::Args)]
pub struct Recommission {
    #[command(flatten)]
    named: Named,
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The data servers, each by its host, its address (both with the port of its data transfer, if there are several) or its uuid.
    #[arg(required = true, value_name = "SERVER")]
    servers: Vec<String>,
    /// A server that is not known is yet to come, and obeys when it registers. It is named with its port.
    #[arg(long)]
    expected: bool,
}

#[derive(Debug, clap::Args)]
struct Waits {
    /// Wait until the servers may be switched off, and tell how many blocks still need them. ^C ends the waiting, not the order.
    #[arg(long)]
    wait: bool,
}

/// # Errors
/// Nothing was ordered, or not all groups have taken the order. The text says what to do.
pub async fn decommission(servers: &Servers, args: Decommission) -> anyhow::Result<ExitCode> {
    let Decommission { named, waits, force } = args;
    let order = give::Order { wish: Wish::Decommission, for_ms: None, until_ms: None, force };
    run(servers, named, order, waits.wait).await
}

/// # Errors
/// As [`decommission`].
pub async fn maintenance(servers: &Servers, args: Maintenance) -> anyhow::Result<ExitCode> {
    let Maintenance { named, for_ms, until_ms, waits, force } = args;
    let order = give::Order { wish: Wish::Maintenance, for_ms, until_ms, force };
    run(servers, named, order, waits.wait).await
}

/// # Errors
/// As [`decommission`].
pub async fn recommission(servers: &Servers, args: Recommission) -> anyhow::Result<ExitCode> {
    let order = give::Order { wish: Wish::InService, for_ms: None, until_ms: None, force: false };
    run(servers, args.named, order, false).await
}

async fn run(servers: &Servers, named: Named, order: give::Order, waits: bool) -> anyhow::Result<ExitCode> {
    let groups = groups::Groups::find(servers).await?;
    let places = give::give(&groups, &named.servers, named.expected, order).await?;
    if waits {
        wait::until_unneeded(&groups, places, order.wish).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// No group has told its orders.
pub async fn orders(servers: &Servers, args: Orders) -> anyhow::Result<ExitCode> {
    list::list(&groups::Groups::find(servers).await?, args).await
}
