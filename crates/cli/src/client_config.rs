//! Writes what a stock Hadoop client needs to find a cluster.

use anyhow::{Context, bail};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory to write core-site.xml and hdfs-site.xml into; it is made if missing.
    dir: PathBuf,
    /// The file system that `fs.defaultFS` will name.
    #[arg(long, value_name = "URI", default_value = "hdfs://127.0.0.1:8020")]
    target: String,
    /// Copies of each block that clients ask for; Hadoop's default (3) if not given.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=512))]
    replication: Option<u16>,
    /// Overwrite files that are already there.
    #[arg(long)]
    force: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    // A target that makes no sense is better refused now than by every client.
    let location = client::Location::resolve(&args.target, &client::Config::new())?;
    let files =
        [("core-site.xml", core_site(&location.uri())), ("hdfs-site.xml", hdfs_site(args.replication))];
    std::fs::create_dir_all(&args.dir).with_context(|| format!("making {}", args.dir.display()))?;
    // Nothing is written unless everything can be.
    let in_the_way = files.iter().map(|(name, _)| args.dir.join(name)).find(|path| path.exists());
    if let Some(path) = in_the_way.filter(|_| !args.force) {
        bail!("{} is already there; --force overwrites it", path.display());
    }
    for (name, text) in &files {
        write(&args.dir.join(name), text, args.force)?;
    }
    println!("Wrote core-site.xml and hdfs-site.xml to {}. To use them:", args.dir.display());
    let dir = std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone());
    println!("  export HADOOP_CONF_DIR={}", dir.display());
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    let file = match force {
        true => File::create(path),
        false => OpenOptions::new().write(true).create_new(true).open(path),
    };
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))
}

fn core_site(target: &str) -> String {
    document(&[("fs.defaultFS", target, "Where paths without a scheme are.")])
}

fn hdfs_site(replication: Option<u16>) -> String {
    match replication {
        Some(count) => {
            document(&[("dfs.replication", &count.to_string(), "Copies of each block of a new file.")])
        }
        None => document(&[]),
    }
}

fn document(properties: &[(&str, &str, &str)]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration>\n");
    for (name, value, description) in properties {
        text += &format!(
            "  <property>\n    <name>{}</name>\n    <value>{}</value>\n    <description>{}</description>\n  \
             </property>\n",
            escape(name),
            escape(value),
            escape(description)
        );
    }
    text + "</configuration>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(dir: &Path, target: &str, force: bool) -> Args {
        Args { dir: dir.to_owned(), target: target.into(), replication: Some(2), force }
    }

    #[test]
    fn what_is_written_is_read_back_and_not_overwritten() {
        let dir = std::env::temp_dir().join(format!("clover-client-config-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        run(args(&dir, "hdfs://h:1/ignored", false)).unwrap();
        let config = client::Config::from_dir(&dir).unwrap();
        assert_eq!(config.get("fs.defaultFS").as_deref(), Some("hdfs://h:1"));
        assert_eq!(config.get("dfs.replication").as_deref(), Some("2"));

        let message = run(args(&dir, "hdfs://h:2", false)).unwrap_err().to_string();
        assert!(message.contains("core-site.xml is already there; --force"), "{message}");
        run(args(&dir, "hdfs://h:2", true)).unwrap();
        assert_eq!(
            client::Config::from_dir(&dir).unwrap().get("fs.defaultFS").as_deref(),
            Some("hdfs://h:2")
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_target_that_names_no_server_is_refused_before_anything_is_written() {
        let dir = std::env::temp_dir().join(format!("clover-client-config-none-{}", std::process::id()));
        for target in ["127.0.0.1:8020", "file:///a", "hdfs://", "hdfs://h:0"] {
            assert!(run(args(&dir, target, false)).is_err(), "{target}");
        }
        assert!(!dir.exists());
    }
}
