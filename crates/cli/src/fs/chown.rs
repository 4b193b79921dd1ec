//! `chown` and `chgrp`: changes owners and groups.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
    walk::Walk,
};

/// Change owners and groups.
#[derive(Debug, clap::Args)]
pub struct Chown {
    /// Everything below directories, too.
    #[arg(short = 'R')]
    recursive: bool,
    /// OWNER, OWNER:GROUP or :GROUP.
    owner: String,
    /// What to change.
    #[arg(required = true)]
    paths: Vec<String>,
}

/// Change groups.
#[derive(Debug, clap::Args)]
pub struct Chgrp {
    /// Everything below directories, too.
    #[arg(short = 'R')]
    recursive: bool,
    /// The new group.
    group: String,
    /// What to change.
    #[arg(required = true)]
    paths: Vec<String>,
}

struct Change {
    owner: Option<String>,
    group: Option<String>,
}

pub async fn chown(shell: &mut Shell, args: Chown) -> Outcome {
    let change = parse_owner(&args.owner)?;
    apply_all(shell, &change, args.recursive, &args.paths).await
}

pub async fn chgrp(shell: &mut Shell, args: Chgrp) -> Outcome {
    let group = args.group.trim();
    if !is_name(group) {
        let reason = format!("'{}' does not match expected pattern for group", args.group);
        return Err(Failure::Usage(reason));
    }
    let change = Change { owner: None, group: Some(group.to_owned()) };
    apply_all(shell, &change, args.recursive, &args.paths).await
}

fn parse_owner(text: &str) -> Outcome<Change> {
    let trimmed = text.trim();
    let (owner, group) = trimmed.split_once(':').unwrap_or((trimmed, ""));
    if ![owner, group].iter().all(|name| name.is_empty() || is_name(name)) {
        let reason = format!("'{text}' does not match expected pattern for [owner][:group].");
        return Err(Failure::Usage(reason));
    }
    let some = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    match (some(owner), some(group)) {
        (None, None) => Err(Failure::Usage(format!("'{text}' does not specify owner or group."))),
        (owner, group) => Ok(Change { owner, group }),
    }
}

/// The letters that Hadoop allows in names of users and groups.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-+_./@".contains(c))
}

async fn apply_all(shell: &mut Shell, change: &Change, recursive: bool, paths: &[String]) -> Outcome {
    for item in shell.expand_all(paths).await {
        let existing = item.existing().map(drop);
        if shell.check(existing).is_none() {
            continue;
        }
        let mut walk = Walk::new(item);
        while let Some(item) = walk.next().await {
            if let Some(item) = shell.check(item) {
                let outcome = apply(change, &item).await;
                shell.check(outcome);
            }
            if !recursive {
                break;
            }
        }
    }
    Ok(())
}

async fn apply(change: &Change, item: &Item) -> Outcome {
    let status = item.existing()?;
    let owner = change.owner.as_deref().filter(|owner| *owner != status.owner);
    let group = change.group.as_deref().filter(|group| *group != status.group);
    if owner.is_none() && group.is_none() {
        return Ok(());
    }
    item.fs
        .set_owner(&item.path, owner, group)
        .await
        .map_err(|error| Failure::Other(format!("changing ownership of '{}': {error}", item.shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_groups_are_taken_apart() {
        let parse = |text| parse_owner(text).map(|change| (change.owner, change.group)).ok();
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(parse("a"), Some((some("a"), None)));
        assert_eq!(parse("a:"), Some((some("a"), None)));
        assert_eq!(parse("a:b"), Some((some("a"), some("b"))));
        assert_eq!(parse(":b"), Some((None, some("b"))));
        for text in ["", ":", "a b", "a:b:c", "ä"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
