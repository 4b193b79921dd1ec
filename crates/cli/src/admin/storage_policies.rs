//! `storage-policies`: on which media files' copies shall be.

use crate::{
    fs::{self, Outcome, Shell},
    table,
    target::Target,
};
use serde_json::json;
use std::process::ExitCode;

/// See and set on which media the copies of files shall be.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the policies that there are.
    #[command(visible_alias = "listPolicies")]
    List,
    /// Print the policy in force for a file or directory: its own, or the closest directory's.
    #[command(visible_alias = "getStoragePolicy")]
    Get {
        /// The file or directory.
        path: String,
    },
    /// Set the policy of a file, or of all below a directory that have none of their own. Copies stay where they are.
    #[command(visible_alias = "setStoragePolicy")]
    Set {
        /// The file or directory.
        path: String,
        /// One of those that `list` prints, as COLD.
        policy: String,
    },
    /// Take a policy away again.
    #[command(visible_alias = "unsetStoragePolicy")]
    Unset {
        /// The file or directory.
        path: String,
    },
    /// Have the copies of a file, or of all files below a directory, moved to the media that their policies want. The metadata server does it after
    /// this command has ended; as long as it is at it, the path has the attribute `user.hdfs.sps`.
    #[command(visible_alias = "satisfyStoragePolicy")]
    Satisfy {
        /// The file or directory.
        path: String,
    },
}

pub fn run(target: &Target, args: Args) -> anyhow::Result<ExitCode> {
    fs::run_as(target, "storage-policies", args.json, async move |shell: &mut Shell| match args.command {
        Command::List => list(shell).await,
        Command::Get { path } => get(shell, &path).await,
        Command::Set { path, policy } => {
            let item = shell.locate(&path)?;
            item.fs.set_storage_policy(&item.path, Some(&policy)).await?;
            shell.say(format!("Set storage policy {policy} on {path}"))
        }
        Command::Unset { path } => {
            let item = shell.locate(&path)?;
            item.fs.set_storage_policy(&item.path, None).await?;
            shell.say(format!("Unset storage policy from {path}"))
        }
        Command::Satisfy { path } => {
            let item = shell.locate(&path)?;
            item.fs.satisfy_storage_policy(&item.path).await?;
            shell.say(format!("Scheduled blocks to move based on the current storage policy on {path}"))
        }
    })
}

async fn list(shell: &mut Shell) -> Outcome {
    let policies = shell.locate("/")?.fs.storage_policies().await?;
    let names = |kinds: &[base::StorageType]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    if shell.is_json {
        for policy in policies {
            let line = json!({
                "id": policy.id,
                "name": policy.name,
                "storage_types": names(&policy.types),
                "creation_fallbacks": names(&policy.creation_fallbacks),
                "replication_fallbacks": names(&policy.replication_fallbacks),
            });
            shell.say(line.to_string())?;
        }
        return Ok(());
    }
    // The last of the media holds all further copies.
    let heading = ["NAME", "ID", "COPIES ON", "ELSE, WHEN WRITTEN", "ELSE, WHEN COPIED LATER"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(policies.iter().map(|policy| {
        let shown = |kinds: &[base::StorageType]| match kinds {
            [] => "-".to_owned(),
            kinds => names(kinds).join(", "),
        };
        vec![
            policy.name.clone(),
            policy.id.to_string(),
            shown(&policy.types),
            shown(&policy.creation_fallbacks),
            shown(&policy.replication_fallbacks),
        ]
    }));
    table::lines(&rows).iter().try_for_each(|line| shell.say(line))
}

async fn get(shell: &mut Shell, path: &str) -> Outcome {
    let item = shell.look_up(path).await?;
    let id = item.existing()?.storage_policy;
    let policies = item.fs.storage_policies().await?;
    let known = policies.into_iter().find(|policy| policy.id == id);
    if shell.is_json {
        let name = known.map(|policy| policy.name);
        return shell.say(json!({ "path": path, "policy": name }).to_string());
    }
    match known {
        Some(policy) => shell.say(format!("The storage policy of {path} is {}", policy.name)),
        None => shell.say(format!("The storage policy of {path} is unspecified")),
    }
}
