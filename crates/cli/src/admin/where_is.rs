//! `clover admin where`: the group that has the files of a directory.

use super::servers::{Servers, reason};
use anyhow::bail;
use proto::clover::admin::{GetHomeRequestProto, GetHomeResponseProto};
use serde_json::json;
use std::{process::ExitCode, time::Duration};

/// Tell which group has the files of a directory, or what a path names in it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A directory, or anything below one; nothing need be there.
    #[arg(value_name = "PATH")]
    path: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const PATIENCE: Duration = Duration::from_secs(5);

pub async fn run(servers: Servers, args: Args) -> anyhow::Result<ExitCode> {
    let found = ask(&servers, &args.path).await?;
    if args.json {
        let line = json!({
            "path": args.path,
            "directory": found.directory,
            "directory_id": found.directory_id,
            "slot": found.slot,
            "group": found.group,
            "is_directory": found.is_directory,
        });
        println!("{line}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("Files in {} are in group {} (slot {}).", found.directory, found.group, found.slot);
    if !found.is_directory {
        println!("{} is no directory: what it names is there, or would be.", args.path);
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(servers: &Servers, path: &str) -> anyhow::Result<GetHomeResponseProto> {
    let request = GetHomeRequestProto { path: path.to_owned() };
    let mut refusals = Vec::new();
    for address in servers.addresses() {
        match servers.ask(address, "getHome", &request, PATIENCE).await {
            Ok(found) => return Ok(found),
            Err(rpc::CallError::Remote { message, .. }) => {
                bail!("{}", message.lines().next().unwrap_or_default())
            }
            Err(error) => refusals.push(format!("{address}: {}", reason(&error))),
        }
    }
    bail!("no metadata server answers ({})", refusals.join("; "))
}
