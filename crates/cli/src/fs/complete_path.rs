//! `complete-path`: what the completion of a shell asks while somebody types.

use super::{failure::Outcome, shell::Shell};
use std::time::Duration;

/// How long the shell may stand still behind the TAB key.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most names that are looked at: as many as servers tell in one answer.
const NAMES_MAX: usize = 1_000;

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
    // Servers tell names in order. Those before the beginning are not asked for, those behind it are not read.
    let mut listing = match last_before(part) {
        Some(name) => place.fs.list_after(&place.path, &name),
        None => place.fs.list(&place.path),
    };
    for _ in 0..NAMES_MAX {
        let Some(status) = listing.next().await? else { break };
        if !status.name().starts_with(part) && status.name() > part {
            break;
        }
        // The listing of a file is the file itself.
        let is_itself = status.path.trim_end_matches('/') == place.path;
        if status.name().starts_with(part) && !is_itself {
            let slash = if status.is_dir() { "/" } else { "" };
            found.push(format!("{directory}{}{slash}", status.name()));
        }
    }
    Ok(found)
}

/// A name before all that begin with `part`, and behind nearly all others that are before them; `None` if there is none.
fn last_before(part: &str) -> Option<String> {
    let last = part.chars().next_back()?;
    // Not every number below a character is one: those of surrogates are not. A slash is in no name.
    let mut below = (1..u32::from(last)).rev().filter_map(char::from_u32);
    let before = below.find(|character| *character != '/')?;
    Some(format!("{}{before}{}", &part[..part.len() - last.len_utf8()], char::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_begins_just_before_the_names_that_are_looked_for() {
        for part in ["a", "ab", "0", "a0", "ä", "日", "\u{e000}", "\u{10000}"] {
            let before = last_before(part).unwrap();
            assert!(before.as_str() < part && !before.contains('/'), "{part}: {before}");
        }
        assert!(last_before("ac").unwrap().as_str() > "abzzz");
        assert_eq!(last_before(""), None);
    }
}
