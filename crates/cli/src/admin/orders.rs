//! Questions and orders of one line: safe mode, images, files that are open or damaged.

use crate::table;
use client::{FileSystem, SafeModeOrder};
use serde_json::json;
use std::{process::ExitCode, time::Duration};

/// Ask whether safe mode is on, or switch it.
#[derive(Debug, clap::Args)]
pub struct SafeMode {
    /// What to do.
    #[arg(value_enum)]
    order: Order,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Order {
    /// Ask whether it is on.
    Get,
    /// Switch it on: nothing is changed, copied or deleted until it is left.
    Enter,
    /// Switch it off.
    Leave,
    /// Wait until it is off.
    Wait,
    /// Leave even if data servers hold blocks that the namespace knows nothing of: those are lost then.
    #[value(alias = "forceExit")]
    ForceExit,
}

/// Files, one a line.
#[derive(Debug, clap::Args)]
pub struct Files {
    /// Only files at or below this path.
    #[arg(long, default_value = "/")]
    path: String,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Tell all data servers how many bytes per second they may move for balancing.
#[derive(Debug, clap::Args)]
pub struct BalancerBandwidth {
    /// Bytes; with k, m, g for 1024 times as many.
    #[arg(value_parser = bandwidth)]
    bytes_per_second: u64,
}

/// Reads a bandwidth, in bytes a second, as Hadoop writes it: `10m` is ten times 2^20.
pub fn bandwidth(text: &str) -> Result<u64, String> {
    let number = super::quota::number(text).ok().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| format!("{text} is no number of bytes, as 104857600 or 100m"))
}

const WAIT_PERIOD: Duration = Duration::from_millis(500);

pub async fn safe_mode(fs: &FileSystem, args: SafeMode) -> anyhow::Result<ExitCode> {
    let is_on = match args.order {
        Order::Get => fs.safe_mode(SafeModeOrder::Ask).await?,
        Order::Enter => fs.safe_mode(SafeModeOrder::Enter).await?,
        Order::Leave => fs.safe_mode(SafeModeOrder::Leave).await?,
        Order::ForceExit => fs.safe_mode(SafeModeOrder::ForceExit).await?,
        Order::Wait => {
            while fs.safe_mode(SafeModeOrder::Ask).await? {
                tokio::time::sleep(WAIT_PERIOD).await;
            }
            false
        }
    };
    match args.json {
        true => println!("{}", json!({ "safe_mode": is_on })),
        false => println!("Safe mode is {}", if is_on { "ON" } else { "OFF" }),
    }
    let is_refused = is_on && matches!(args.order, Order::Leave);
    if is_refused {
        eprintln!(
            "It stays on: data servers hold blocks that the namespace knows nothing of. Leaving by force \
             (force-exit) gives them up."
        );
    }
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

pub async fn save_namespace(fs: &FileSystem) -> anyhow::Result<ExitCode> {
    fs.save_namespace().await?;
    println!("Save namespace successful");
    Ok(ExitCode::SUCCESS)
}

pub async fn roll_edits(fs: &FileSystem) -> anyhow::Result<ExitCode> {
    println!("New segment starts at txid {}", fs.roll_edits().await?);
    Ok(ExitCode::SUCCESS)
}

pub async fn refresh_nodes(fs: &FileSystem) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for (address, answer) in fs.refresh_nodes().await {
        match answer {
            Ok(()) => println!("Refresh nodes successful for {address}"),
            Err(reason) => {
                eprintln!("Refresh nodes failed for {address}: {reason}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

pub async fn balancer_bandwidth(fs: &FileSystem, args: BalancerBandwidth) -> anyhow::Result<ExitCode> {
    fs.set_balancer_bandwidth(args.bytes_per_second).await?;
    println!("Balancer bandwidth is set to {}", args.bytes_per_second);
    Ok(ExitCode::SUCCESS)
}

pub async fn open_files(fs: &FileSystem, args: Files) -> anyhow::Result<ExitCode> {
    let files = fs.open_files(&args.path).await?;
    if args.json {
        for file in &files {
            let line = json!({
                "path": file.path,
                "file_id": file.file_id,
                "client": file.client_name,
                "machine": file.client_machine,
            });
            println!("{line}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if files.is_empty() {
        println!("No file below {} is being written.", args.path);
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![["MACHINE", "CLIENT", "PATH"].map(str::to_owned).to_vec()];
    rows.extend(files.into_iter().map(|file| vec![file.client_machine, file.client_name, file.path]));
    table::lines(&rows).iter().for_each(|line| println!("{line}"));
    Ok(ExitCode::SUCCESS)
}

pub async fn corrupt_files(fs: &FileSystem, args: Files) -> anyhow::Result<ExitCode> {
    let mut files = fs.corrupt_files(&args.path).await?;
    files.sort();
    files.dedup();
    if files.is_empty() && !args.json {
        // Nothing goes to standard output, so that a script that counts lines counts none.
        eprintln!("No file below {} has lost a block.", args.path);
    }
    for path in files {
        match args.json {
            true => println!("{}", json!({ "path": path })),
            false => println!("{path}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
