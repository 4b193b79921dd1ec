//! Hadoop's NameNodes beside Clover's servers: one alone, or two with three JournalNodes.
//!
//! All settings are Hadoop's own, but for places and ports. There are no failover controllers, and no DataNodes but where blocks
//! are written: an operation on names needs neither.

use crate::{
    launch::free_port,
    meta::{
        cpu,
        groups::servers::{Role, Server},
    },
};
use anyhow::{Context, bail, ensure};
use proto::{
    common::{
        HaRequestSource, HaStateChangeRequestInfoProto, TransitionToActiveRequestProto,
        TransitionToActiveResponseProto,
    },
    protocol,
};
use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const NAME_NODE: &str = "org.apache.hadoop.hdfs.server.namenode.NameNode";
const JOURNAL_NODE: &str = "org.apache.hadoop.hdfs.qjournal.server.JournalNode";
const DATA_NODE: &str = "org.apache.hadoop.hdfs.server.datanode.DataNode";
const DATA_NODE_HEAP: &str = "1g";
const CLIENT_HEAP: &str = "1g";
const NAME_NODE_HEAP: &str = "2g";
const JOURNAL_NODE_HEAP: &str = "256m";
const JOURNALS: usize = 3;
/// The packages of the JDK that Hadoop reaches into.
const OPENED: [&str; 8] = ["lang", "util", "io", "net", "nio", "util.concurrent", "text", "time"];
/// JVMs on busy cores.
const PATIENCE: Duration = Duration::from_secs(180);
/// Only warnings are logged. Records of audits are made and dropped, as the distribution's settings have it.
const LOG: &str = "log4j.rootLogger=WARN,console\n\
    log4j.appender.console=org.apache.log4j.ConsoleAppender\n\
    log4j.appender.console.target=System.err\n\
    log4j.appender.console.layout=org.apache.log4j.PatternLayout\n\
    log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n\n\
    log4j.appender.none=org.apache.log4j.varia.NullAppender\n\
    log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=INFO,none\n\
    log4j.additivity.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=false\n\
    log4j.logger.org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark=INFO\n";

pub struct Hadoop {
    processes: Vec<Process>,
}

struct Process {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Drop for Hadoop {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

/// A server of Hadoop's before it runs: its class, and the directory of its configuration.
struct Java<'a> {
    jars: &'a Path,
    conf: PathBuf,
    name: String,
    heap: &'a str,
    class: &'a str,
}

impl Java<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("java");
        for package in OPENED {
            command.arg(format!("--add-opens=java.base/java.{package}=ALL-UNNAMED"));
        }
        command.args([format!("-Xms{}", self.heap), format!("-Xmx{}", self.heap)]);
        command.arg("-cp").arg(format!("{}:{}/*", self.conf.display(), self.jars.display()));
        command.arg(self.class).args(words).stdin(Stdio::null());
        command
    }

    fn log(&self) -> PathBuf {
        self.conf.join("log")
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<()> {
        let output = self.command(words).output().context("starting java")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} {}: {}", self.name, words.join(" "), said.trim());
        Ok(())
    }

    fn start(&self) -> anyhow::Result<Process> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let child =
            self.command(&[]).stdout(log.try_clone()?).stderr(log).spawn().context("starting java")?;
        Ok(Process { name: self.name.clone(), log: self.log(), child })
    }
}

impl Hadoop {
    /// Starts the servers in `dir`. The first one of those that are told is the active NameNode.
    pub async fn start(
        jars: &Path,
        dir: &Path,
        is_ha: bool,
        user: &str,
    ) -> anyhow::Result<(Self, Vec<Server>)> {
        let mut hadoop = Self { processes: Vec::new() };
        let servers = match is_ha {
            false => hadoop.start_alone(jars, dir).await?,
            true => hadoop.start_ha(jars, dir, user).await?,
        };
        Ok((hadoop, servers))
    }

    /// Starts a NameNode and one DataNode, which keeps its blocks in `blocks`. Answers where clients call.
    pub async fn start_with_data_node(
        jars: &Path,
        dir: &Path,
        blocks: &Path,
    ) -> anyhow::Result<(Self, SocketAddr)> {
        let mut hadoop = Self { processes: Vec::new() };
        let name_node = hadoop.start_alone(jars, dir).await?.pop().context("a NameNode was started")?.address;
        let (transfer, http, ipc) = (loopback()?, loopback()?, loopback()?);
        let properties = [
            ("fs.defaultFS", format!("hdfs://{name_node}")),
            ("dfs.datanode.address", transfer.to_string()),
            ("dfs.datanode.http.address", http.to_string()),
            ("dfs.datanode.ipc.address", ipc.to_string()),
            ("dfs.datanode.data.dir", format!("[DISK]file://{}", blocks.display())),
        ];
        let conf = configure(dir, "datanode", &properties)?;
        let node = Java { jars, conf, name: "the DataNode".into(), heap: DATA_NODE_HEAP, class: DATA_NODE };
        hadoop.add(&node, transfer, Role::Data).await?;
        Ok((hadoop, name_node))
    }

    async fn start_alone(&mut self, jars: &Path, dir: &Path) -> anyhow::Result<Vec<Server>> {
        let (rpc, http) = (loopback()?, loopback()?);
        let properties = [
            ("fs.defaultFS", format!("hdfs://{rpc}")),
            ("dfs.namenode.rpc-address", rpc.to_string()),
            ("dfs.namenode.http-address", http.to_string()),
            ("dfs.namenode.name.dir", format!("file://{}", dir.join("names").display())),
        ];
        let conf = configure(dir, "namenode", &properties)?;
        let node = Java { jars, conf, name: "the NameNode".into(), heap: NAME_NODE_HEAP, class: NAME_NODE };
        node.run(&["-format", "-force", "-nonInteractive"])?;
        Ok(vec![self.add(&node, rpc, Role::Root).await?])
    }

    async fn start_ha(&mut self, jars: &Path, dir: &Path, user: &str) -> anyhow::Result<Vec<Server>> {
        let mut servers = Vec::new();
        let mut journals = Vec::new();
        for number in 1..=JOURNALS {
            let (rpc, http) = (loopback()?, loopback()?);
            let properties = [
                ("dfs.journalnode.rpc-address", rpc.to_string()),
                ("dfs.journalnode.http-address", http.to_string()),
                ("dfs.journalnode.edits.dir", dir.join(format!("edits-{number}")).display().to_string()),
            ];
            let conf = configure(dir, &format!("journal-{number}"), &properties)?;
            let name = format!("JournalNode {number}");
            let node = Java { jars, conf, name, heap: JOURNAL_NODE_HEAP, class: JOURNAL_NODE };
            servers.push(self.add(&node, rpc, Role::Journal).await?);
            journals.push(rpc.to_string());
        }
        let places = [[loopback()?, loopback()?], [loopback()?, loopback()?]];
        let node = |number: usize| -> anyhow::Result<Java<'_>> {
            let mut properties = vec![
                ("fs.defaultFS".to_owned(), "hdfs://bench".to_owned()),
                ("dfs.nameservices".into(), "bench".into()),
                ("dfs.ha.namenodes.bench".into(), "nn1,nn2".into()),
                ("dfs.ha.namenode.id".into(), format!("nn{number}")),
                ("dfs.namenode.shared.edits.dir".into(), format!("qjournal://{}/bench", journals.join(";"))),
                ("dfs.ha.fencing.methods".into(), "shell(/bin/true)".into()),
                (
                    "dfs.namenode.name.dir".into(),
                    format!("file://{}", dir.join(format!("names-{number}")).display()),
                ),
            ];
            for (index, [rpc, http]) in (1..).zip(places) {
                properties.push((format!("dfs.namenode.rpc-address.bench.nn{index}"), rpc.to_string()));
                properties.push((format!("dfs.namenode.http-address.bench.nn{index}"), http.to_string()));
            }
            let conf = configure(dir, &format!("namenode-{number}"), &properties)?;
            let name = format!("NameNode {number}");
            Ok(Java { jars, conf, name, heap: NAME_NODE_HEAP, class: NAME_NODE })
        };
        let (first, second) = (node(1)?, node(2)?);
        first.run(&["-format", "-force", "-nonInteractive"])?;
        let active = self.add(&first, places[0][0], Role::Root).await?;
        second.run(&["-bootstrapStandby", "-force", "-nonInteractive"])?;
        let standby = self.add(&second, places[1][0], Role::Standby).await?;
        let client =
            rpc::Client::connect(active.address, protocol::HA_SERVICE, user, rpc::ClientOptions::default());
        let request = TransitionToActiveRequestProto {
            req_info: HaStateChangeRequestInfoProto { req_source: HaRequestSource::RequestByUser as i32 },
        };
        let _: TransitionToActiveResponseProto =
            client.call("transitionToActive", &request).await.context("making NameNode 1 active")?;
        servers.insert(0, active);
        servers.push(standby);
        Ok(servers)
    }

    /// Starts a server and waits until its port is open.
    async fn add(&mut self, java: &Java<'_>, address: SocketAddr, role: Role) -> anyhow::Result<Server> {
        self.processes.push(java.start()?);
        let started = self.processes.last_mut().context("one was just started")?;
        let begun = Instant::now();
        while tokio::net::TcpStream::connect(address).await.is_err() {
            if let Some(status) = started.child.try_wait()? {
                let log = fs::read_to_string(&started.log).unwrap_or_default();
                bail!("{} has ended ({status}): {}", started.name, log.lines().last().unwrap_or_default());
            }
            if begun.elapsed() > PATIENCE {
                bail!("{} does not answer; what it says is in {}", started.name, started.log.display());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let process = cpu::Process::of(started.child.id()).context("it has ended")?;
        Ok(Server { role, group: 1, process, address })
    }
}

/// A program of Hadoop's that ends by itself, as a client of `uri`. Its configuration is made in `dir`.
pub fn client(jars: &Path, dir: &Path, uri: &str, class: &str, words: &[&str]) -> anyhow::Result<Command> {
    let conf = configure(dir, "client", &[("fs.defaultFS", uri.to_owned())])?;
    Ok(Java { jars, conf, name: class.to_owned(), heap: CLIENT_HEAP, class }.command(words))
}

fn loopback() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

/// Writes a directory of configuration. All properties are in one file; Hadoop reads both.
fn configure(dir: &Path, name: &str, properties: &[(impl AsRef<str>, String)]) -> anyhow::Result<PathBuf> {
    let conf = dir.join(name);
    fs::create_dir_all(&conf).with_context(|| format!("making {}", conf.display()))?;
    let mut text = "<?xml version=\"1.0\"?>\n<configuration>\n".to_owned();
    for (name, value) in properties {
        text += &format!("<property><name>{}</name><value>{value}</value></property>\n", name.as_ref());
    }
    text += "</configuration>\n";
    for file in ["core-site.xml", "hdfs-site.xml"] {
        fs::write(conf.join(file), &text)?;
    }
    fs::write(conf.join("log4j.properties"), LOG)?;
    Ok(conf)
}
