//! `clover meta aside`: what was put aside of this server's store, which nothing removes by itself. A person looks, puts one back, or
//! drops it.

use super::Serve;
use crate::{config, table, user};
use anyhow::Context;
use env::Env;
use jiff::{Timestamp, tz::TimeZone};
use journal::aside::{self, Aside, Replaced};
use serde_json::json;
use std::{path::Path, process::ExitCode};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what was put aside: when, why, which entries it holds, how large it is.
    List(List),
    /// Put one back in the place of the store, while the server is stopped. What is there now is put aside first.
    Restore(Order),
    /// Remove one for good, while the server is stopped. It may be the last copy of something.
    Drop(Order),
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    serve: Serve,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Order {
    #[command(flatten)]
    serve: Serve,
    /// Which one: its number in the list.
    #[arg(value_name = "NUMBER")]
    number: u64,
    /// Do it, and do not only say what would be done.
    #[arg(long)]
    yes: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::List(list) => show(list),
        Command::Restore(order) => restore(order),
        Command::Drop(order) => drop_one(order),
    }
}

fn store_of(serve: &Serve) -> anyhow::Result<std::path::PathBuf> {
    let config = config::meta::config(&serve.settings()?, &user::of_this_process()?)?;
    Ok(metad::format::store_of(&Env::production(), &config.name_directory)?)
}

fn show(args: &List) -> anyhow::Result<ExitCode> {
    let store = store_of(&args.serve)?;
    let disk = Env::production().disk;
    let (all, replaced) = (aside::list(&*disk, &store)?, aside::replaced(&*disk, &store)?);
    if args.json {
        let all: Vec<_> = all.iter().map(as_json).chain(replaced.iter().map(replaced_as_json)).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() && replaced.is_empty() {
        println!("Nothing was put aside in {}.", store.display());
        return Ok(ExitCode::SUCCESS);
    }
    let headings = ["NUMBER", "WHEN", "FIRST SN", "LAST ENTRY", "IMAGES", "BYTES", "WHY"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(row));
    rows.extend(replaced.iter().map(replaced_row));
    println!("{}", table::lines(&rows).join("\n"));
    if !replaced.is_empty() {
        println!();
        println!(
            "{} holds damaged files as they were before a repair wrote them anew. They are for looking at: remove the directory \
             when nobody needs them.",
            store.join("damaged-…").display()
        );
    }
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

fn replaced_row(one: &Replaced) -> Vec<String> {
    let none = || "-".to_owned();
    vec![
        one.name.clone(),
        none(),
        none(),
        none(),
        one.images.to_string(),
        one.bytes.to_string(),
        format!("damaged files, replaced by a repair at start {}", one.start),
    ]
}

fn replaced_as_json(one: &Replaced) -> serde_json::Value {
    json!({
        "number": null,
        "directory": one.name,
        "start": one.start,
        "segments": one.segments,
        "images": one.images,
        "bytes": one.bytes,
    })
}

fn as_json(one: &Aside) -> serde_json::Value {
    json!({
        "directory": format!("set-aside-{}", one.generation),
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

fn find(env: &Env, store: &Path, number: u64) -> anyhow::Result<Aside> {
    let all = aside::list(&*env.disk, store)?;
    all.into_iter().find(|one| one.generation == number).with_context(|| {
        format!("nothing with number {number} was put aside in {}: `clover meta aside list`", store.display())
    })
}

fn describe(one: &Aside) -> String {
    format!(
        "{} segments up to {} and {} images, {} bytes",
        one.segments,
        one.last.map_or_else(|| "no entry that can be read".to_owned(), |id| format!("entry {id}")),
        one.images,
        one.bytes
    )
}

fn restore(args: &Order) -> anyhow::Result<ExitCode> {
    let (store, env) = (store_of(&args.serve)?, Env::production());
    if !args.yes {
        let one = find(&env, &store, args.number)?;
        eprintln!("Nothing has been done. This would put back {}.", describe(&one));
        eprintln!(
            "What is in its place now would be put aside first; nothing is removed. Afterwards the group does not rely on this member: an active \
             brings it up to date, or `clover admin group unclean-elect` lets it lead with what it has. Repeat with --yes, with the server \
             stopped."
        );
        return Ok(ExitCode::FAILURE);
    }
    // A store whose restore was interrupted is in no list any more.
    let put_back = journal::restore(&env, &store, args.number)?;
    let last =
        put_back.last.map_or_else(|| "no entry that can be read".to_owned(), |id| format!("entry {id}"));
    println!("Put back the store that was put aside as {}: its log ends with {last}.", args.number);
    if let Some(image) = put_back.image {
        println!("The next start begins from the image of {}.", image.at.id);
    }
    if let Some(number) = put_back.put_aside {
        println!("The store that was in its place is kept as number {number}.");
    }
    println!("Start the server: an active brings it up to date. Until then the group does not rely on it.");
    Ok(ExitCode::SUCCESS)
}

fn drop_one(args: &Order) -> anyhow::Result<ExitCode> {
    let (store, env) = (store_of(&args.serve)?, Env::production());
    let what = describe(&find(&env, &store, args.number)?);
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
