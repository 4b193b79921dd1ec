//! Which directories may have snapshots, which they have, and what changed between them.

use crate::{fs::format, table, target::Target};
use client::FileSystem;
use serde_json::json;
use std::process::ExitCode;

/// Allow snapshots of directories.
#[derive(Debug, clap::Args)]
pub struct Allow {
    /// The directories; everything below them is in their snapshots, too.
    #[arg(required = true)]
    directories: Vec<String>,
}

/// Forbid snapshots of directories; refused for a directory that has snapshots.
#[derive(Debug, clap::Args)]
pub struct Disallow {
    /// The directories.
    #[arg(required = true)]
    directories: Vec<String>,
}

/// List the directories of which snapshots may be made: one's own, or all for a superuser.
#[derive(Debug, clap::Args)]
pub struct Directories {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// List the snapshots of a directory.
#[derive(Debug, clap::Args)]
pub struct Snapshots {
    /// The directory that the snapshots are of.
    directory: String,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Tell what changed in a directory from one of its snapshots to another, or to now.
///
/// M: modified, +: created, -: deleted, R: renamed. The directory may also be one below that of the snapshots.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// The directory that the snapshots are of, or one below.
    directory: String,
    /// The name of a snapshot; `.` means now.
    from: String,
    /// Another snapshot; `.` means now.
    to: String,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

fn connect(target: &Target) -> anyhow::Result<FileSystem> {
    let config = target.configuration()?;
    Ok(FileSystem::connect(&target.uri(&config), &config)?)
}

pub async fn allow(target: &Target, args: Allow) -> anyhow::Result<ExitCode> {
    let fs = connect(target)?;
    for directory in &args.directories {
        fs.allow_snapshot(directory).await?;
        println!("Allowing snapshot on {directory} succeeded");
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn disallow(target: &Target, args: Disallow) -> anyhow::Result<ExitCode> {
    let fs = connect(target)?;
    for directory in &args.directories {
        fs.disallow_snapshot(directory).await?;
        println!("Disallowing snapshot on {directory} succeeded");
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn directories(target: &Target, args: Directories) -> anyhow::Result<ExitCode> {
    let found = connect(target)?.snapshottable_directories().await?;
    if args.json {
        for directory in &found {
            println!(
                "{}",
                json!({
                    "path": directory.status.path,
                    "owner": directory.status.owner,
                    "group": directory.status.group,
                    "permission": format!("{:o}", directory.status.mode),
                    "modification_time": directory.status.modified_ms,
                    "snapshots": directory.snapshots,
                    "quota": directory.quota,
                })
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let heading = ["MODE", "OWNER", "GROUP", "MODIFIED", "SNAPSHOTS", "QUOTA", "PATH"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(found.iter().map(|directory| {
        let status = &directory.status;
        vec![
            format::kind_and_mode(status),
            status.owner.clone(),
            status.group.clone(),
            format::minute(status.modified_ms),
            directory.snapshots.to_string(),
            directory.quota.to_string(),
            status.path.clone(),
        ]
    }));
    table::lines(&rows).iter().for_each(|line| println!("{line}"));
    Ok(ExitCode::SUCCESS)
}

pub async fn snapshots(target: &Target, args: Snapshots) -> anyhow::Result<ExitCode> {
    let found = connect(target)?.snapshots(&args.directory).await?;
    if args.json {
        for snapshot in &found {
            println!(
                "{}",
                json!({
                    "path": snapshot.status.path,
                    "name": snapshot.status.name(),
                    "id": snapshot.id,
                    "owner": snapshot.status.owner,
                    "group": snapshot.status.group,
                    "permission": format!("{:o}", snapshot.status.mode),
                    "modification_time": snapshot.status.modified_ms,
                })
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let heading = ["ID", "MODE", "OWNER", "GROUP", "MADE", "PATH"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(found.iter().map(|snapshot| {
        let status = &snapshot.status;
        vec![
            snapshot.id.to_string(),
            format::kind_and_mode(status),
            status.owner.clone(),
            status.group.clone(),
            format::minute(status.modified_ms),
            status.path.clone(),
        ]
    }));
    table::lines(&rows).iter().for_each(|line| println!("{line}"));
    Ok(ExitCode::SUCCESS)
}

/// A snapshot may be written as Hadoop's tool takes it: `s1`, `.snapshot/s1`, or `.` for now.
fn name(written: &str) -> &str {
    match written {
        "." => "",
        written => {
            let short = written.strip_prefix('/').unwrap_or(written);
            short.strip_prefix(".snapshot/").unwrap_or(written)
        }
    }
}

pub async fn diff(target: &Target, args: Diff) -> anyhow::Result<ExitCode> {
    let (from, to) = (name(&args.from), name(&args.to));
    let lines = connect(target)?.snapshot_diff(&args.directory, from, to).await?;
    let shown = |path: &str| if path.is_empty() { ".".to_owned() } else { format!("./{path}") };
    if !args.json {
        let state = |name: &str| match name {
            "" => "current directory".to_owned(),
            name => format!("snapshot {name}"),
        };
        println!("Difference between {} and {} under directory {}:", state(from), state(to), args.directory);
    }
    for line in &lines {
        let target = line.target.as_deref().map(shown);
        if args.json {
            let label = line.change.label();
            println!("{}", json!({ "change": label, "path": shown(&line.path), "target": target }));
            continue;
        }
        let arrow = target.map(|target| format!(" -> {target}")).unwrap_or_default();
        println!("{}\t{}{arrow}", line.change.label(), shown(&line.path));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn snapshots_are_named_as_hadoop_names_them() {
        let names = ["s1", ".snapshot/s1", "/.snapshot/s1", ".", "a.b"].map(name);
        assert_eq!(names, ["s1", "s1", "s1", "", "a.b"]);
    }
}
