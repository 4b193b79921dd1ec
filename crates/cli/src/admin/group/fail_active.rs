//! `clover admin group fail-active`: a takeover to watch.

use super::{show, watch};
use crate::admin::servers::{Servers, active_address, reason};
use anyhow::{Context, bail};
use proto::clover::admin::{FailActiveRequestProto, FailActiveResponseProto};
use rpc::CallError;
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Fail the active even if nobody could go on: no other member is in sync, or the coordinator does not answer.
    #[arg(long)]
    force: bool,
}

pub async fn run(servers: &Servers, args: Args, is_json: bool) -> anyhow::Result<ExitCode> {
    let group = servers.group().await?;
    let view = group.view.as_ref().context("the group's view is not known to any member")?;
    let (Some(active), Some(address)) = (view.active, active_address(&group)) else {
        bail!("no member is active: there is nothing to fail. `clover admin group` shows the members");
    };
    if view.in_sync.len() + view.exiles.len() < 2 && !args.force {
        bail!(
            "member {active} is the only complete one: nobody could go on, and the file system would stand still until \
             it is back; nothing was done. `--force` does it all the same"
        );
    }
    let secret = servers.secret()?;
    let bystander = watch::Bystander::start(&group).await?;
    if !is_json {
        println!("Member {active} is active in epoch {}. It ends now, as if it had been killed.", view.epoch);
    }
    let order = async {
        let request = FailActiveRequestProto { is_forced: Some(args.force) };
        servers.give::<_, FailActiveResponseProto>(&secret, &address, "failActive", &request).await
    };
    let watched = async {
        tokio::select! {
            biased;
            refusal = async {
                match order.await {
                    // It may be gone before its answer is.
                    Ok(_) | Err(CallError::Io(_) | CallError::Timeout { .. }) => std::future::pending().await,
                    Err(error) => error,
                }
            } => bail!("{address}: {}", reason(&refusal)),
            successor = watch::successor(servers, &group, view.epoch) => successor,
        }
    };
    let outcome = watched.await;
    let noticed = bystander.stop().await;
    let successor = outcome?;
    if is_json {
        let line = json!({"failed": active, "active": successor.member, "epoch": successor.epoch,
            "after_ms": successor.after.as_millis() as u64,
            "takeover": successor.takeover.as_ref().map(show::takeover_json),
            "client_calls": noticed.calls, "client_failed": noticed.failed,
            "client_longest_ms": noticed.longest.as_millis() as u64});
        println!("{line}");
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "Member {} is active in epoch {}, {} ms later.",
        successor.member,
        successor.epoch,
        successor.after.as_millis()
    );
    if let Some(takeover) = &successor.takeover {
        println!("  {}", show::stages(takeover));
    }
    println!("{}", noticed.sentence());
    println!(
        "When member {active} is started again it follows, and is renewed: `clover admin group` shows it."
    );
    Ok(ExitCode::SUCCESS)
}
