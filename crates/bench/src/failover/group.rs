//! A group of real `clover meta` processes, and the ZooKeeper that keeps their view.

use super::{network::Network, scene::Scene};
use crate::launch::{free_port, user_file};
use anyhow::{Context, bail, ensure};
use cli::admin::servers::{Servers, address_of};
use proto::clover::admin::{GetGroupResponseProto, HandOverRequestProto, HandOverResponseProto};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A member that starts reads its image first, and may have to fetch one.
const SETTLING_MAX: Duration = Duration::from_secs(900);
/// How often the group is asked whether it is whole again.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

pub struct Group {
    pub network: Network,
    directory: PathBuf,
    binary: PathBuf,
    members: Vec<Member>,
    servers: Servers,
    /// The directory of the ZooKeeper that was started here, and the script that ends it.
    zookeeper: Option<(PathBuf, PathBuf)>,
}

struct Member {
    number: u16,
    rpc: String,
    http: String,
    process: Option<Child>,
}

impl Group {
    /// Formats and starts everything in `directory`, which must be new.
    pub fn lay_out(scene: &Scene, network: Network, directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let mut members = Vec::new();
        for number in 1..=scene.members {
            let address =
                || -> anyhow::Result<String> { Ok(format!("{}:{}", network.host(number), free_port()?)) };
            members.push(Member { number, rpc: address()?, http: address()?, process: None });
        }
        let addresses = members.iter().map(|member| member.rpc.clone()).collect();
        let mut group = Self {
            servers: Servers::of(cli::user::of_this_process()?, addresses),
            network,
            directory: directory.to_owned(),
            binary: match &scene.server {
                Some(server) => std::path::absolute(server)?,
                None => crate::clover()?,
            },
            members,
            zookeeper: None,
        };
        let coordinator = group.coordinator(scene)?;
        let zookeeper_user = user_file(directory)?;
        let all: Vec<String> = (1..=scene.members).map(|number| number.to_string()).collect();
        for member in &group.members {
            let host = group.network.host(member.number);
            let text = format!(
                "name_dir = '{}'\nrpc_address = '{}'\nhttp_address = '{}'\npeer_address = '{host}:{}'\n\
                 member = {}\nmembers = [{}]\ncoordinator = '{coordinator}'\ncoordinator_auth_file = '{}'\nsafe_mode_extension_ms = 0\n\
                 insecure_simple_auth = {}\n{}\n",
                group.name_directory(member.number).display(),
                member.rpc,
                member.http,
                free_port()?,
                member.number,
                all.join(", "),
                zookeeper_user.display(),
                matches!(group.network, Network::Cables(_)),
                scene.set.join("\n"),
            );
            std::fs::write(group.settings(member.number), text)?;
        }
        for number in 1..=scene.members {
            group.format(number, if number > 1 { &["--join"] } else { &[] })?;
            if number == 1 && scene.files > 0 {
                group.fill(scene.files)?;
            }
        }
        let proved_by = group.settings(1);
        group.servers.prove_by(None, Some(proved_by));
        for number in 1..=scene.members {
            group.start(number)?;
        }
        Ok(group)
    }

    fn coordinator(&mut self, scene: &Scene) -> anyhow::Result<String> {
        if let Some(coordinator) = &scene.coordinator {
            return Ok(coordinator.clone());
        }
        let (directory, port) = (self.directory.join("zookeeper"), free_port()?);
        let script = std::path::absolute(&scene.zookeeper)?;
        let output = Command::new(&script).arg("start").arg(&directory).arg(port.to_string()).output();
        let output = output.with_context(|| format!("starting ZooKeeper with {}", script.display()))?;
        ensure!(
            output.status.success(),
            "{} start: {}",
            script.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        self.zookeeper = Some((directory, script));
        if let Network::Cables(_) = self.network {
            let hub = self.network.hub();
            super::network::relay(format!("{hub}:{port}"), format!("127.0.0.1:{port}"))?;
        }
        Ok(format!("zookeeper://{}:{port}/clover/bench", self.network.hub()))
    }

    fn name_directory(&self, member: u16) -> PathBuf {
        self.directory.join(format!("meta-{member}"))
    }

    fn settings(&self, member: u16) -> PathBuf {
        self.directory.join(format!("meta-{member}.toml"))
    }

    fn run(&self, mut command: Command, what: &str) -> anyhow::Result<()> {
        let output = command.output().with_context(|| what.to_owned())?;
        ensure!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    fn format(&self, member: u16, words: &[&str]) -> anyhow::Result<()> {
        let mut command = self.network.command(member, &self.binary);
        command.args(["meta", "format"]).args(words).arg("--config").arg(self.settings(member));
        self.run(command, &format!("formatting member {member}"))
    }

    /// Fills the first member with files. The others then take its image, as new disks do.
    fn fill(&self, files: u64) -> anyhow::Result<()> {
        let mut command = Command::new(&self.binary);
        command.args(["bench", "image", "--files", &files.to_string(), "--dir"]).arg(self.name_directory(1));
        self.run(command, "making the image")
    }

    pub fn start(&mut self, member: u16) -> anyhow::Result<()> {
        let log = self.directory.join(format!("meta-{member}.log"));
        let log = File::options().create(true).append(true).open(&log)?;
        let mut command = self.network.command(member, &self.binary);
        command.arg("meta").arg("--config").arg(self.settings(member));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = command.spawn().with_context(|| format!("starting member {member}"))?;
        self.member_mut(member).process = Some(process);
        Ok(())
    }

    fn member_mut(&mut self, number: u16) -> &mut Member {
        &mut self.members[usize::from(number) - 1]
    }

    /// A killed member's disk is lost, and it is to begin anew with an empty one.
    pub fn empty(&mut self, member: u16) -> anyhow::Result<()> {
        std::fs::remove_dir_all(self.name_directory(member))?;
        self.format(member, &["--join", "--replace"])
    }

    /// The text of a member's log file.
    pub fn log(&self, member: u16) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.directory.join(format!("meta-{member}.log")))?)
    }

    /// A number of its page of metrics, 0 where it is not there.
    pub async fn metric(&self, member: u16, name: &str) -> anyhow::Result<u64> {
        let address = &self.members[usize::from(member) - 1].http;
        let page = crate::http_get(address, "/metrics").await?;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        Ok(line.unwrap_or_default() as u64)
    }

    /// SIGKILL, and the process is gone.
    pub fn kill(&mut self, member: u16) -> anyhow::Result<()> {
        let Some(mut process) = self.member_mut(member).process.take() else {
            bail!("member {member} is off")
        };
        process.kill()?;
        process.wait()?;
        Ok(())
    }

    /// Sends a signal that the standard library has no word for.
    pub fn signal(&mut self, member: u16, name: &str) -> anyhow::Result<()> {
        let Some(process) = &self.member_mut(member).process else { bail!("member {member} is off") };
        let mut command = Command::new("kill");
        command.arg(format!("-{name}")).arg(process.id().to_string());
        self.run(command, "signalling a member")
    }

    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| member.rpc.clone()).collect()
    }

    /// The state of the group, if any member answers.
    pub async fn look(&self) -> anyhow::Result<GetGroupResponseProto> {
        self.servers.group().await
    }

    /// Waits until one member serves and all others are in sync with it; returns who leads.
    pub async fn wait_whole(&self) -> anyhow::Result<u16> {
        let deadline = Instant::now() + SETTLING_MAX;
        loop {
            let seen = self.look().await;
            if let Ok(group) = &seen
                && let Some(active) = whole(group, self.members.len())
            {
                return Ok(active);
            }
            if Instant::now() > deadline {
                bail!("the group in {} does not become whole: {seen:?}", self.directory.display());
            }
            tokio::time::sleep(LOOK_PERIOD).await;
        }
    }

    /// Asks the active to give the group to any other member.
    pub async fn hand_over(&self, active: u16) -> anyhow::Result<()> {
        let group = self.look().await?;
        let address = address_of(&group, active.into())
            .unwrap_or_else(|| self.members[usize::from(active) - 1].rpc.clone());
        let request = HandOverRequestProto { to: None };
        let secret = self.servers.secret()?;
        let answer: Result<HandOverResponseProto, _> =
            self.servers.give(&secret, &address, "handOver", &request).await;
        answer.map(drop).map_err(|error| anyhow::anyhow!("handing over: {error}"))
    }
}

fn whole(group: &GetGroupResponseProto, members: usize) -> Option<u16> {
    let view = group.view.as_ref()?;
    let active = view.active?;
    // Only the active itself knows.
    let is_whole = view.in_sync.len() == members && group.answered_by == active && group.is_writable();
    is_whole.then_some(active as u16)
}

impl Drop for Group {
    fn drop(&mut self) {
        for process in self.members.iter_mut().filter_map(|member| member.process.as_mut()) {
            let _ = process.kill();
            let _ = process.wait();
        }
        if let Some((directory, script)) = &self.zookeeper {
            let _ = Command::new(script).arg("stop").arg(directory).output();
        }
    }
}
