//! `setrep`: changes how many copies of files there are.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
    walk::Walk,
};
use std::time::Duration;

/// Pause between two looks at where the copies are.
const PAUSE: Duration = Duration::from_secs(1);

/// Change how many copies there are of files, and of everything below directories.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Accepted for scripts: directories are always followed.
    #[arg(short = 'R')]
    recursive: bool,
    /// Wait until there are as many copies.
    #[arg(short = 'w')]
    wait: bool,
    /// Copies of each file.
    #[arg(allow_hyphen_values = true)]
    replication: String,
    /// Files, or directories for all files below.
    #[arg(required = true)]
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let replication: u16 = match args.replication.parse::<i64>() {
        Ok(count @ 1..=32_767) => count as u16,
        Ok(count) if count < 1 => return Err(Failure::Usage("replication must be >= 1".into())),
        _ => {
            let reason = format!("Illegal replication `{}', a positive integer expected", args.replication);
            return Err(Failure::Usage(reason));
        }
    };
    let mut waiting = Vec::new();
    for item in shell.expand_all(&args.paths).await {
        let existing = item.existing().map(drop);
        if shell.check(existing).is_none() {
            continue;
        }
        let mut walk = Walk::new(item);
        while let Some(item) = walk.next().await {
            let Some(item) = shell.check(item) else { continue };
            let outcome = set(shell, &item, replication).await;
            if shell.check(outcome) == Some(true) && args.wait {
                waiting.push(item);
            }
        }
    }
    for item in &waiting {
        wait(shell, item, usize::from(replication)).await?;
    }
    Ok(())
}

/// True where there is something to wait for.
async fn set(shell: &mut Shell, item: &Item, replication: u16) -> Outcome<bool> {
    let status = item.existing()?;
    if !status.is_file() {
        return Ok(false);
    }
    if status.erasure_coding.is_some() {
        let text =
            format!("Did not set replication for: {}, because it's an erasure coded file.", item.shown);
        shell.say(text)?;
        return Ok(false);
    }
    if !item.fs.set_replication(&item.path, replication).await? {
        return Err(Failure::Other(format!("Could not set replication for: {}", item.shown)));
    }
    shell.say(format!("Replication {replication} set: {}", item.shown))?;
    Ok(true)
}

async fn wait(shell: &mut Shell, item: &Item, replication: usize) -> Outcome {
    shell.write(format!("Waiting for {} ...", item.shown).as_bytes())?;
    shell.flush()?;
    let mut is_warned = false;
    loop {
        let located = item.fs.block_locations(&item.path, 0, i64::MAX as u64).await?;
        let Some(other) =
            located.blocks.iter().map(|block| block.locs.len()).find(|count| *count != replication)
        else {
            return shell.say(" done");
        };
        if other > replication && !is_warned {
            is_warned = true;
            shell
                .say("\nWARNING: the waiting time may be long for DECREASING the number of replications.")?;
        }
        shell.write(b".")?;
        shell.flush()?;
        tokio::time::sleep(PAUSE).await;
    }
}
