//! `complete-path`: what the completion of a shell asks while somebody types.

use super::{failure::Outcome, shell::Shell};
use std::time::Duration;

/// Somebody waits before the keyboard.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most suggestions that are printed; nobody reads more.
const CANDIDATES_MAX: usize = 1_000;

/// Print the paths that begin with a text, directories with a slash at the end; nothing where they cannot be known.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What was typed so far.
    #[arg(default_value = "")]
    beginning: String,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let found = tokio::time::timeout(PATIENCE, candidates(shell, &args.beginning)).await;
    for candidate in found.ok().and_then(Result::ok).unwrap_or_default() {
        shell.say(candidate)?;
    }
    Ok(())
}

async fn candidates(shell: &mut Shell, beginning: &str) -> Outcome<Vec<String>> {
    let (directory, part) = match beginning.rfind('/') {
        // The host is being typed.
        Some(slash) if beginning[..slash].ends_with('/') && beginning[..slash].contains(':') => {
            return Ok(Vec::new());
        }
        Some(slash) => beginning.split_at(slash + 1),
        None => ("", beginning),
    };
    let place = shell.locate(if directory.is_empty() { "." } else { directory })?;
    let mut found = Vec::new();
    let mut listing = place.fs.list(&place.path);
    while let Some(status) = listing.next().await? {
        // The listing of a file is the file itself.
        let is_itself = status.path.trim_end_matches('/') == place.path;
        if status.name().starts_with(part) && !is_itself {
            let slash = if status.is_dir() { "/" } else { "" };
            found.push(format!("{directory}{}{slash}", status.name()));
        }
        if found.len() == CANDIDATES_MAX {
            break;
        }
    }
    Ok(found)
}
