//! `checksum`: Hadoop's checksums of files.

use super::{failure::Outcome, item::Item, shell::Shell};
use data_encoding::HEXLOWER;
use serde_json::json;

/// Print checksums of files; files of the same content, block size and chunk size have the same.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the block size, too.
    #[arg(short)]
    verbose: bool,
    /// The files.
    #[arg(required = true)]
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    for item in shell.expand_all(&args.paths).await {
        let outcome = one(shell, &item, args.verbose).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn one(shell: &mut Shell, item: &Item, verbose: bool) -> Outcome {
    let block_size = item.file()?.block_size;
    let checksum = item.fs.checksum(&item.path).await?;
    if shell.is_json {
        let hex = HEXLOWER.encode(&checksum.bytes());
        let object = json!({
            "path": item.shown,
            "algorithm": checksum.algorithm(),
            "checksum": hex,
            "block_size": block_size,
        });
        return shell.say(object.to_string());
    }
    let suffix = if verbose { format!("\tBlockSize={block_size}") } else { String::new() };
    shell.say(format!("{}\t{checksum}{suffix}", item.shown))
}
