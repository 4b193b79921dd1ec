//! A lone metadata server with one data server or none, as processes of their own; or Hadoop's NameNode with one
//! DataNode or none.

use crate::{
    launch::free_port,
    meta::{groups::hadoop::Hadoop, requests},
};
use anyhow::{Context, bail};
use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
};

/// Servers that have been started; killed at the end.
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
    /// Clover's metadata server, with everything below `dir`. It takes changes when this returns.
    pub async fn clover(dir: &Path) -> anyhow::Result<Self> {
        let rpc = format!("127.0.0.1:{}", free_port()?);
        let settings = [
            format!("name_dir={}", dir.join("names").display()),
            format!("rpc_address={rpc}"),
            "http_address=".to_owned(),
            "safe_mode_extension_ms=0".to_owned(),
        ];
        fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        let output = command(&crate::clover()?, &["meta", "format"], &settings).output();
        let output = output.context("making the metadata directory")?;
        if !output.status.success() {
            bail!("making the metadata directory: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let mut scene = Self { uri: format!("hdfs://{rpc}"), processes: Vec::new(), _hadoop: None };
        scene.start(dir, "meta", &settings)?;
        let user = cli::user::of_this_process()?;
        let served = requests::make_directories(&rpc, &user, &["/".to_owned()]).await;
        served.with_context(|| format!("the metadata server takes no changes: see {}", dir.display()))?;
        Ok(scene)
    }

    /// Clover's metadata server and one data server, whose directory is `blocks`. `turns` is the value of its key `disk_turns`.
    pub async fn clover_with_data(dir: &Path, blocks: &Path, turns: &str) -> anyhow::Result<Self> {
        let mut scene = Self::clover(dir).await?;
        fs::create_dir_all(blocks).with_context(|| format!("making {}", blocks.display()))?;
        let settings = [
            format!("data_dirs=[DISK]{}", blocks.display()),
            format!("metadata_servers={}", scene.address()),
            format!("transfer_address=127.0.0.1:{}", free_port()?),
            format!("ipc_address=127.0.0.1:{}", free_port()?),
            format!("data_http_address=127.0.0.1:{}", free_port()?),
            format!("disk_turns={turns}"),
            // Nothing but what is measured reads the disk.
            "block_scan_period_ms=0".to_owned(),
        ];
        scene.start(dir, "data", &settings)?;
        Ok(scene)
    }

    fn start(&mut self, dir: &Path, role: &str, settings: &[String]) -> anyhow::Result<()> {
        let log = File::create(dir.join(format!("{role}.log")))?;
        let mut command = command(&crate::clover()?, &[role], settings);
        command.stdout(log.try_clone()?).stderr(log);
        self.processes.push(command.spawn().with_context(|| format!("starting clover {role}"))?);
        Ok(())
    }

    /// Hadoop's NameNode alone.
    pub async fn hadoop(dir: &Path, jars: &Path, user: &str) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        // Its settings are URIs, in which a relative path would begin with a host.
        let dir = std::path::absolute(dir)?;
        let (hadoop, servers) = Hadoop::start(jars, &dir, false, user).await?;
        let name_node = servers.first().context("a NameNode was started")?.address;
        Ok(Self { uri: format!("hdfs://{name_node}"), processes: Vec::new(), _hadoop: Some(hadoop) })
    }

    /// Hadoop's NameNode and one DataNode.
    pub async fn hadoop_with_data(dir: &Path, blocks: &Path, jars: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        fs::create_dir_all(blocks).with_context(|| format!("making {}", blocks.display()))?;
        let (dir, blocks) = (std::path::absolute(dir)?, std::path::absolute(blocks)?);
        let (hadoop, name_node) = Hadoop::start_with_data_node(jars, &dir, &blocks).await?;
        Ok(Self { uri: format!("hdfs://{name_node}"), processes: Vec::new(), _hadoop: Some(hadoop) })
    }

    /// Where clients call, as `host:port`.
    pub fn address(&self) -> &str {
        self.uri.trim_start_matches("hdfs://")
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
