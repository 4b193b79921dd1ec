//! A lone metadata server with one data server, as processes of their own, and Hadoop's in the same shape.

use crate::{launch::free_port, meta::groups::hadoop::Hadoop};
use anyhow::{Context, bail};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Servers that are up; killed at the end.
pub struct Scene {
    /// Where clients call.
    pub uri: String,
    processes: Vec<Child>,
    _hadoop: Option<Hadoop>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Scene {
    /// Clover's servers, with everything below `dir`; `turns` as `disk_turns` has it.
    pub fn clover(dir: &Path, turns: &str) -> anyhow::Result<Self> {
        let program = crate::clover()?;
        let rpc = format!("127.0.0.1:{}", free_port()?);
        let meta = [
            format!("name_dir={}", dir.join("names").display()),
            format!("rpc_address={rpc}"),
            "http_address=".to_owned(),
            "safe_mode_extension_ms=0".to_owned(),
        ];
        let blocks = dir.join("blocks");
        fs::create_dir_all(&blocks).with_context(|| format!("making {}", blocks.display()))?;
        let data = [
            format!("data_dirs=[DISK]{}", blocks.display()),
            format!("metadata_servers={rpc}"),
            format!("transfer_address=127.0.0.1:{}", free_port()?),
            format!("ipc_address=127.0.0.1:{}", free_port()?),
            format!("data_http_address=127.0.0.1:{}", free_port()?),
            format!("disk_turns={turns}"),
            // Nothing but what is measured reads the disk.
            "block_scan_period_ms=0".to_owned(),
        ];
        let mut format = command(&program, &["meta", "format"], &meta);
        let output = format.output().context("making the metadata directory")?;
        if !output.status.success() {
            bail!("making the metadata directory: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let mut scene = Self { uri: format!("hdfs://{rpc}"), processes: Vec::new(), _hadoop: None };
        for (role, settings) in [("meta", &meta[..]), ("data", &data[..])] {
            let log = File::create(dir.join(format!("{role}.log")))?;
            let mut command = command(&program, &[role], settings);
            command.stdout(log.try_clone()?).stderr(log);
            scene.processes.push(command.spawn().with_context(|| format!("starting clover {role}"))?);
        }
        Ok(scene)
    }

    pub async fn hadoop(dir: &Path, jars: &Path) -> anyhow::Result<Self> {
        let blocks = dir.join("blocks");
        fs::create_dir_all(&blocks).with_context(|| format!("making {}", blocks.display()))?;
        let (hadoop, name_node) = Hadoop::start_with_data_node(jars, dir, &blocks).await?;
        Ok(Self { uri: format!("hdfs://{name_node}"), processes: Vec::new(), _hadoop: Some(hadoop) })
    }
}

fn command(program: &Path, words: &[&str], settings: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    for setting in settings {
        command.args(["--set", setting]);
    }
    command
}

/// The finished block files below a directory.
pub fn block_files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut directories) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else if name.starts_with("blk_") && !name.ends_with(".meta") {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}
