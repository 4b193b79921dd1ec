//! `clover admin blocks`: replicas on data servers that no file has.

use super::{
    confirm::is_confirmed,
    report::size,
    secret,
    servers::{OfGroup, Servers},
};

use anyhow::bail;
use proto::clover::admin::{AllowDeletionsRequestProto, AllowDeletionsResponseProto as Held};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Look after replicas on data servers that belong to no file.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    secret: secret::ProvedBy,
    #[command(flatten)]
    of: OfGroup,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show which replicas are kept because they may be the last copies of something, ask, and allow their deletion.
    AllowDeletions(Allow),
}

#[derive(Debug, clap::Args)]
struct Allow {
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Print JSON. Without --yes nothing is done.
    #[arg(long)]
    json: bool,
}

pub async fn run(servers: Servers, args: Args) -> anyhow::Result<ExitCode> {
    let mut servers = servers.of_group(args.of).await?;
    servers.prove_by(args.secret.secret_file, args.secret.config);
    let Command::AllowDeletions(order) = args.command;
    let group = servers.group().await?;
    let held: Held = servers.order(&group, "allowDeletions", &AllowDeletionsRequestProto::default()).await?;
    if !order.json {
        print!("{}", text(&held));
    }
    let is_needed = held.held_since.is_some() || held.replicas() > 0 || held.servers_over_share() > 0;
    let is_wanted = is_needed && (order.yes || (!order.json && is_confirmed("Delete them for ever?")?));
    if !is_wanted {
        if order.json {
            println!("{}", serde_json::to_string_pretty(&as_json(&held))?);
        }
        return Ok(if is_needed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let request = AllowDeletionsRequestProto { is_confirmed: Some(true), held_since: held.held_since };
    let done: Held = servers.order(&group, "allowDeletions", &request).await?;
    if !done.is_done() {
        bail!(
            "the active has not carried it out; `clover admin blocks allow-deletions` shows what is held back"
        );
    }
    match order.json {
        true => println!("{}", serde_json::to_string_pretty(&as_json(&done))?),
        false => println!("They are deleted from now on, with the data servers' next heartbeats."),
    }
    Ok(ExitCode::SUCCESS)
}

fn text(held: &Held) -> String {
    let mut text = String::new();
    if let Some(epoch) = held.held_since {
        text += &format!(
            "Deletions are held back since epoch {epoch}, which an unclean election began: the names may be older than what is \
             on the data servers.\n"
        );
    }
    if held.servers_over_share() > 0 {
        text += &format!(
            "On {} data servers more than the allowed share is unknown. This happens when names are lost, or restored from an \
             old copy, and where a data server was away for long.\n",
            held.servers_over_share()
        );
    }
    text += &format!("Held back: {} replicas that no file has, {}.\n", held.replicas(), size(held.bytes()));
    if held.skipped_replicas() > 0 {
        text += &format!(
            "Never deleted: {} replicas, {}, of blocks that were made by lost changes.\n",
            held.skipped_replicas(),
            size(held.skipped_bytes())
        );
    }
    if held.stale_storages() > 0 || held.in_safe_mode() {
        text += &format!(
            "{} storages have not reported to this active yet: there may be more.\n",
            held.stale_storages()
        );
    }
    text
}

fn as_json(held: &Held) -> Value {
    json!({
        "done": held.is_done(),
        "held_since_epoch": held.held_since,
        "replicas": held.replicas(),
        "bytes": held.bytes(),
        "servers_over_share": held.servers_over_share(),
        "skipped_replicas": held.skipped_replicas(),
        "skipped_bytes": held.skipped_bytes(),
        "storages_not_reported": held.stale_storages(),
        "safe_mode": held.in_safe_mode(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_reads_count_and_bytes_before_anything_is_deleted() {
        let held = Held {
            held_since: Some(7),
            replicas: Some(182),
            bytes: Some(3 << 30),
            skipped_replicas: Some(12),
            skipped_bytes: Some(1 << 20),
            stale_storages: Some(2),
            ..Held::default()
        };
        let text = text(&held);
        for word in ["epoch 7", "182 replicas", "3.00 GiB", "12 replicas, 1.00 MiB", "2 storages have not"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let none = super::text(&Held::default());
        assert_eq!(none, "Held back: 0 replicas that no file has, 0 B.\n");
    }
}
