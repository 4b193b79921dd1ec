//! `setQuota` and its family: what directories may hold.

use crate::{
    fs::{self, Failure, Item, Outcome, Shell},
    target::Target,
};
use base::StorageType;
use client::Limit;
use std::process::ExitCode;

/// Limit the names below directories, each directory itself included.
#[derive(Debug, clap::Args)]
pub struct SetQuota {
    /// Names; with k, m, g for 1024 times as many.
    #[arg(allow_hyphen_values = true)]
    quota: String,
    /// The directories, each with its own limit.
    #[arg(required = true)]
    directories: Vec<String>,
}

/// Lift the limit on the names below directories.
#[derive(Debug, clap::Args)]
pub struct ClearQuota {
    /// The directories.
    #[arg(required = true)]
    directories: Vec<String>,
}

/// Limit the bytes below directories, of all copies.
#[derive(Debug, clap::Args)]
pub struct SetSpaceQuota {
    /// Bytes; with k, m, g, t, p for 1024 times as many.
    #[arg(allow_hyphen_values = true)]
    quota: String,
    /// Only those that storage policies put on this medium: SSD, DISK, ARCHIVE, PROVIDED or NVDIMM.
    #[arg(long, visible_alias = "storageType", value_name = "TYPE", value_parser = storage_type)]
    storage_type: Option<StorageType>,
    /// The directories, each with its own limit.
    #[arg(required = true)]
    directories: Vec<String>,
}

/// Lift the limit on the bytes below directories.
#[derive(Debug, clap::Args)]
pub struct ClearSpaceQuota {
    /// The limit of this medium only.
    #[arg(long, visible_alias = "storageType", value_name = "TYPE", value_parser = storage_type)]
    storage_type: Option<StorageType>,
    /// The directories.
    #[arg(required = true)]
    directories: Vec<String>,
}

fn storage_type(text: &str) -> Result<StorageType, String> {
    StorageType::named(text).ok_or_else(|| {
        let known = StorageType::WITH_QUOTA.map(StorageType::name).join(", ");
        format!("Storage type {text} is not available. Available storage types are [{known}]")
    })
}

/// A change of the limits of each directory.
#[derive(Clone, Copy, Debug)]
struct Change {
    names: Limit,
    space: Limit,
    storage_type: Option<StorageType>,
}

const NOTHING: Change = Change { names: Limit::Keep, space: Limit::Keep, storage_type: None };

pub fn set(target: &Target, args: SetQuota) -> anyhow::Result<ExitCode> {
    let change = number(&args.quota).map(|quota| Change { names: Limit::Set(quota), ..NOTHING });
    run(target, "setQuota", change, args.directories)
}

pub fn clear(target: &Target, args: ClearQuota) -> anyhow::Result<ExitCode> {
    run(target, "clrQuota", Ok(Change { names: Limit::Clear, ..NOTHING }), args.directories)
}

pub fn set_space(target: &Target, args: SetSpaceQuota) -> anyhow::Result<ExitCode> {
    let storage_type = args.storage_type;
    let change =
        number(&args.quota).map(|quota| Change { space: Limit::Set(quota), storage_type, ..NOTHING });
    run(target, "setSpaceQuota", change, args.directories)
}

pub fn clear_space(target: &Target, args: ClearSpaceQuota) -> anyhow::Result<ExitCode> {
    let change = Change { space: Limit::Clear, storage_type: args.storage_type, ..NOTHING };
    run(target, "clrSpaceQuota", Ok(change), args.directories)
}

fn run(
    target: &Target,
    name: &'static str,
    change: Outcome<Change>,
    directories: Vec<String>,
) -> anyhow::Result<ExitCode> {
    fs::run_as(target, name, false, async move |shell: &mut Shell| {
        let change = change?;
        for item in shell.expand_all(&directories).await {
            let outcome = apply(&item, change).await;
            shell.check(outcome);
        }
        Ok(())
    })
}

async fn apply(item: &Item, change: Change) -> Outcome {
    match change.storage_type {
        Some(kind) => item.fs.set_type_quota(&item.path, kind, change.space).await?,
        None => item.fs.set_quota(&item.path, change.names, change.space).await?,
    }
    Ok(())
}

/// Hadoop's `string2long`: a number, with a letter for a power of 1024.
pub fn number(text: &str) -> Outcome<i64> {
    client::amount(text)
        .ok_or_else(|| Failure::Other(format!("\"{text}\" is not a valid value for a quota.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_numbers_with_a_letter() {
        for (text, expected) in [("5", 5), ("2k", 2048), ("1G", 1 << 30), ("-5", -5), ("7E", 7 << 60)] {
            assert_eq!(number(text).ok(), Some(expected), "{text}");
        }
        for text in ["", "k", "1x", "8e", "99999999999999999999", "1.5g"] {
            assert!(number(text).is_err(), "{text}");
        }
    }
}
