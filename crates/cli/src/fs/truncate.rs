//! `truncate`: cuts files to a shorter length.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
};
use std::time::Duration;

/// Pause between two looks at a file that is being cut.
const PAUSE: Duration = Duration::from_millis(500);

/// Cut files to a shorter length.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Wait until the files have their new length.
    #[arg(short = 'w')]
    wait: bool,
    /// The new length in bytes.
    #[arg(allow_hyphen_values = true)]
    length: String,
    /// The files to cut.
    #[arg(required = true)]
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let length = match args.length.parse::<i64>() {
        Ok(length) => u64::try_from(length).map_err(|_| Failure::Usage("length must be >= 0".into()))?,
        Err(_) => {
            shell.warn("Illegal length, a non-negative integer expected");
            return Err(Failure::Usage(format!("For input string: \"{}\"", args.length)));
        }
    };
    let mut waiting = Vec::new();
    for item in shell.expand_all(&args.paths).await {
        let outcome = truncate(shell, &item, length, args.wait).await;
        // Hadoop's shell ends at an argument that makes no sense, too.
        if let Err(Failure::Usage(_)) = outcome {
            return outcome.map(drop);
        }
        if shell.check(outcome) == Some(false) {
            waiting.push(item);
        }
    }
    for item in waiting.iter().filter(|_| args.wait) {
        shell.say(format!("Waiting for {} ...", item.shown))?;
        shell.flush()?;
        while item.fs.status(&item.path).await?.length != length {
            tokio::time::sleep(PAUSE).await;
        }
        shell.say(format!("Truncated {} to length: {length}", item.shown))?;
    }
    Ok(())
}

/// False where the data servers have still to cut a block.
async fn truncate(shell: &mut Shell, item: &Item, length: u64, wait: bool) -> Outcome<bool> {
    let status = item.file()?;
    if length > status.length {
        return Err(Failure::Usage(format!(
            "Cannot truncate to a larger file size. Current size: {}, truncate size: {length}.",
            status.length
        )));
    }
    let is_done = item.fs.truncate(&item.path, length).await?;
    if is_done {
        shell.say(format!("Truncated {} to length: {length}", item.shown))?;
    } else if !wait {
        shell.say(format!(
            "Truncating {} to length: {length}. Wait for block recovery to complete before further updating \
             this file.",
            item.shown
        ))?;
    }
    Ok(is_done)
}
