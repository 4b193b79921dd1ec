//! `clover meta aside`: what was put aside of this server's store, which nothing removes by itself.

use super::Serve;
use crate::{config, table, user};
use env::Env;
use jiff::{Timestamp, tz::TimeZone};
use journal::aside::{self, Aside};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what was put aside: when, why, which entries it holds, how large it is.
    List(List),
    /// Remove one for good, while the server is stopped. It may be the last copy of something.
    Drop(Drop),
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    serve: Serve,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Drop {
    #[command(flatten)]
    serve: Serve,
    /// Which one: its number in the list.
    #[arg(value_name = "NUMBER")]
    number: u64,
    /// Remove it, and do not only say what would be removed.
    #[arg(long)]
    yes: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::List(list) => show(list),
        Command::Drop(order) => drop_one(order),
    }
}

fn store_of(serve: &Serve) -> anyhow::Result<std::path::PathBuf> {
    let config = config::meta::config(&serve.settings()?, &user::of_this_process()?)?;
    Ok(metad::format::Layout::of(&config.name_directory).store)
}

fn show(args: &List) -> anyhow::Result<ExitCode> {
    let store = store_of(&args.serve)?;
    let all = aside::list(&*Env::production().disk, &store)?;
    if args.json {
        let all: Vec<_> = all.iter().map(as_json).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        println!("Nothing was put aside in {}.", store.display());
        return Ok(ExitCode::SUCCESS);
    }
    let headings = ["NUMBER", "WHEN", "FIRST SN", "LAST ENTRY", "IMAGES", "BYTES", "WHY"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(row));
    println!("{}", table::lines(&rows).join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn row(one: &Aside) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        one.generation.to_string(),
        or_none(one.at_ms.map(time)),
        or_none(one.first.map(|sn| sn.to_string())),
        or_none(one.last.map(|id| id.to_string())),
        one.images.to_string(),
        one.bytes.to_string(),
        one.reason.clone().unwrap_or_else(|| "not noted: by an early release".to_owned()),
    ]
}

fn as_json(one: &Aside) -> serde_json::Value {
    json!({
        "number": one.generation,
        "at_ms": one.at_ms,
        "reason": one.reason,
        "first_sn": one.first.map(|sn| sn.0),
        "last": one.last.map(|id| json!({"epoch": id.epoch.0, "sn": id.sn.0})),
        "segments": one.segments,
        "images": one.images,
        "bytes": one.bytes,
    })
}

fn time(ms: u64) -> String {
    match Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX)) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "-".to_owned(),
    }
}

fn drop_one(args: &Drop) -> anyhow::Result<ExitCode> {
    let store = store_of(&args.serve)?;
    let env = Env::production();
    let all = aside::list(&*env.disk, &store)?;
    let Some(one) = all.iter().find(|one| one.generation == args.number) else {
        anyhow::bail!(
            "nothing with number {} was put aside in {}: `clover meta aside list`",
            args.number,
            store.display()
        );
    };
    let what = format!(
        "{} segments up to {} and {} images, {} bytes",
        one.segments,
        one.last.map_or_else(|| "no entry that can be read".to_owned(), |id| format!("entry {id}")),
        one.images,
        one.bytes
    );
    if !args.yes {
        eprintln!("Nothing has been done. This would remove {what}, for ever.");
        eprintln!(
            "Make sure that the group has all that was acknowledged (`clover admin group`), or copy it away; then repeat with --yes."
        );
        return Ok(ExitCode::FAILURE);
    }
    aside::drop_one(&env, &store, args.number)?;
    println!("Removed {what}.");
    Ok(ExitCode::SUCCESS)
}
