//! `du` and `df`: how much room things take, and how much there is.

use super::{
    failure::Outcome,
    format::{self, Table},
    item::Item,
    json,
    shell::Shell,
};
use serde_json::json;

/// Show how many bytes files and directories hold, and how many their copies take.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Du {
    /// One line an argument, instead of one an entry.
    #[arg(short)]
    summary: bool,
    /// Print sizes as 1.5 K.
    #[arg(short = 'h')]
    human: bool,
    /// Print a header.
    #[arg(short = 'v')]
    header: bool,
    /// Do not count what only snapshots hold.
    #[arg(short = 'x')]
    exclude_snapshots: bool,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// What to measure; your home directory if not given.
    paths: Vec<String>,
}

/// Show the capacity of the file system and what is left of it.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Df {
    /// Print sizes as 1.5 K.
    #[arg(short = 'h')]
    human: bool,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// The file systems, by any path of theirs; the configured one if not given.
    paths: Vec<String>,
}

pub async fn du(shell: &mut Shell, mut args: Du) -> Outcome {
    if args.paths.is_empty() {
        args.paths.push(".".into());
    }
    let mut table = Table::default();
    let header_rows = usize::from(args.header);
    if args.header {
        table.add(["SIZE", "DISK_SPACE_CONSUMED_WITH_ALL_REPLICAS", "FULL_PATH_NAME"].map(str::to_owned));
    }
    for item in shell.expand_all(&args.paths).await {
        let outcome = measure_all(shell, &args, &item, &mut table).await;
        shell.check(outcome);
    }
    if table.rows() > header_rows && !shell.is_json {
        for line in table.lines() {
            shell.say(line)?;
        }
    }
    Ok(())
}

async fn measure_all(shell: &mut Shell, args: &Du, item: &Item, table: &mut Table) -> Outcome {
    if args.summary || !item.existing()?.is_dir() {
        return measure(shell, args, item, table).await;
    }
    for child in item.children().await? {
        let outcome = measure(shell, args, &child, table).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn measure(shell: &mut Shell, args: &Du, item: &Item, table: &mut Table) -> Outcome {
    item.existing()?;
    let mut summary = item.fs.content_summary(&item.path).await?;
    if args.exclude_snapshots {
        summary.length = summary.length.saturating_sub(summary.snapshot.length);
        summary.space_consumed = summary.space_consumed.saturating_sub(summary.snapshot.space_consumed);
    }
    if shell.is_json {
        return shell.say(json::of_summary(&item.shown, &summary).to_string());
    }
    table.add([
        format::size(summary.length, args.human),
        format::size(summary.space_consumed, args.human),
        item.shown.clone(),
    ]);
    Ok(())
}

pub async fn df(shell: &mut Shell, mut args: Df) -> Outcome {
    if args.paths.is_empty() {
        args.paths.push("/".into());
    }
    let mut table = Table::with_right(&[1, 2, 3, 4]);
    table.add(["Filesystem", "Size", "Used", "Available", "Use%"].map(str::to_owned));
    for item in shell.expand_all(&args.paths).await {
        let outcome = capacity(shell, &args, &item, &mut table).await;
        shell.check(outcome);
    }
    if table.rows() > 1 && !shell.is_json {
        for line in table.lines() {
            shell.say(line)?;
        }
    }
    Ok(())
}

async fn capacity(shell: &mut Shell, args: &Df, item: &Item, table: &mut Table) -> Outcome {
    item.existing()?;
    let stats = item.fs.stats().await?;
    if shell.is_json {
        return shell.say(
            json!({
                "filesystem": item.fs.uri(),
                "capacity": stats.capacity,
                "used": stats.used,
                "remaining": stats.remaining,
                "under_replicated_blocks": stats.under_replicated_blocks,
                "corrupt_blocks": stats.corrupt_blocks,
                "missing_blocks": stats.missing_blocks,
            })
            .to_string(),
        );
    }
    let percent = match stats.capacity {
        0 => 0.0,
        capacity => stats.used as f64 / capacity as f64 * 100.0,
    };
    table.add([
        item.fs.uri(),
        format::size(stats.capacity, args.human),
        format::size(stats.used, args.human),
        format::size(stats.remaining, args.human),
        format!("{percent:.0}%"),
    ]);
    Ok(())
}
