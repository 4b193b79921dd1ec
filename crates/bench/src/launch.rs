//! Groups of metadata servers as processes of their own, with a real ZooKeeper, for benches that need them.

use anyhow::{Context, bail};
use proto::clover::admin::{GetGroupResponseProto, RoleProto};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Write,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use cli::admin::servers::Servers;

/// Where this repository keeps the script that starts ZooKeeper.
const SCRIPT: &str = "scripts/zookeeper";
/// A group of four on two busy cores takes seconds to be in sync.
const SYNC_PATIENCE: Duration = Duration::from_secs(120);

/// An ensemble: one that runs already, or one of our own that ends with this value.
pub struct ZooKeeper {
    pub servers: String,
    /// The file with our user and password there.
    user: PathBuf,
    own: Option<PathBuf>,
}

impl ZooKeeper {
    /// Uses the one given, else starts one in `dir`.
    pub fn take(given: Option<&str>, dir: &Path) -> anyhow::Result<Self> {
        if let Some(servers) = given {
            fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
            return Ok(Self { servers: servers.to_owned(), user: user_file(dir)?, own: None });
        }
        if !Path::new(SCRIPT).exists() {
            bail!(
                "a group needs a ZooKeeper: name one with --zookeeper HOST:PORT, or run this in Clover's own directory, \
                 where {SCRIPT} starts one"
            );
        }
        let output = Command::new(SCRIPT)
            .arg("start")
            .arg(dir)
            .arg(free_port()?.to_string())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("running {SCRIPT}"))?;
        if !output.status.success() {
            bail!("{SCRIPT} could not start a server");
        }
        let servers = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Self { servers, user: user_file(dir)?, own: Some(dir.to_owned()) })
    }
}

/// Writes a user and a password of this run's own into `dir`: what is kept in ZooKeeper is closed to others.
pub fn user_file(dir: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(dir.join("zookeeper-user"))?;
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
    let text = format!("bench:{:016x}\n", env::Env::production().random.next_u64());
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        if let Some(dir) = &self.own {
            let _ = Command::new(SCRIPT).arg("kill").arg(dir).stdout(Stdio::null()).status();
        }
    }
}

/// A group of processes; killed at the end.
pub struct Group {
    pub members: Vec<Member>,
    user: String,
}

/// A group to lay out.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// Where its members keep their files.
    pub dir: &'a Path,
    /// The number of the group: 1 is the root group, and a further one joins the namespace of that.
    pub number: u32,
    pub members: u32,
    pub zookeeper: &'a ZooKeeper,
    /// The cluster's place in ZooKeeper.
    pub name: &'a str,
    pub settings: &'a [String],
    /// The program of its members.
    pub program: &'a Path,
}

impl Plan<'_> {
    /// The members' numbers are their own in the whole cluster: group 2 has 11, 12, …
    fn ids(&self) -> impl Iterator<Item = u32> {
        let before = 10 * (self.number - 1);
        (1..=self.members).map(move |index| before + index)
    }
}

pub struct Member {
    pub id: u32,
    /// The address that clients call, `host:port`.
    pub rpc: String,
    pub dir: PathBuf,
    program: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Group {
    /// Makes the group and waits until all members are in sync.
    pub async fn start(plan: &Plan<'_>) -> anyhow::Result<Self> {
        let members = plan.ids().map(|id| Member::new(plan, id)).collect::<anyhow::Result<_>>()?;
        let mut group = Self { members, user: cli::user::of_this_process()? };
        let number = plan.number.to_string();
        for (index, member) in group.members.iter().enumerate() {
            let words: &[&str] = match (index, plan.number) {
                (0, 1) => &[],
                (0, _) => &["--group", &number, "--join"],
                _ => &["--join"],
            };
            member.format(words)?;
        }
        for member in &mut group.members {
            member.start()?;
        }
        group.wait_until_in_sync().await?;
        Ok(group)
    }

    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| member.rpc.clone()).collect()
    }

    pub fn servers(&self) -> Servers {
        Servers::of(self.user.clone(), self.addresses())
    }

    /// All members are in sync, and one serves.
    pub async fn wait_until_in_sync(&mut self) -> anyhow::Result<GetGroupResponseProto> {
        let (servers, begun) = (self.servers(), Instant::now());
        loop {
            let state = servers.group().await;
            if let Ok(group) = &state
                && active(group).is_some()
                && group.view.as_ref().is_some_and(|view| view.in_sync.len() == self.members.len())
            {
                return state;
            }
            for member in &mut self.members {
                member.check_alive()?;
            }
            if begun.elapsed() > SYNC_PATIENCE {
                let last = state.map_or_else(|error| error.to_string(), |group| format!("{:?}", group.view));
                bail!("not all members are in sync after {} s: {last}", SYNC_PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The member that serves.
    pub async fn active(&self) -> anyhow::Result<&Member> {
        let group = self.servers().group().await?;
        let id = active(&group).context("no member serves")?;
        self.members.iter().find(|member| member.id == id).context("the active is no member")
    }
}

fn names(dir: &Path) -> PathBuf {
    dir.join("names")
}

fn active(group: &GetGroupResponseProto) -> Option<u32> {
    group.members.iter().find(|member| member.role == RoleProto::Active as i32).map(|member| member.member)
}

impl Member {
    fn new(plan: &Plan<'_>, id: u32) -> anyhow::Result<Self> {
        let dir = plan.dir.join(format!("member-{id}"));
        fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        let rpc = format!("127.0.0.1:{}", free_port()?);
        let members: Vec<String> = plan.ids().map(|id| id.to_string()).collect();
        let (zookeeper, name) = (plan.zookeeper, plan.name);
        let mut assignments = vec![
            format!("name_dir={}", names(&dir).display()),
            format!("member={id}"),
            format!("members={}", members.join(",")),
            format!("rpc_address={rpc}"),
            "http_address=".to_owned(),
            format!("peer_address=127.0.0.1:{}", free_port()?),
            format!("coordinator=zookeeper://{}/{name}", zookeeper.servers),
            format!("coordinator_auth_file={}", zookeeper.user.display()),
            // There are no data servers, and nothing to wait for.
            "safe_mode_extension_ms=0".to_owned(),
        ];
        assignments.extend_from_slice(plan.settings);
        let arguments =
            assignments.into_iter().flat_map(|assignment| ["--set".to_owned(), assignment]).collect();
        Ok(Self { id, rpc, dir, program: plan.program.to_owned(), arguments, child: None })
    }

    /// The directory of its log and its images.
    pub fn name_directory(&self) -> PathBuf {
        names(&self.dir)
    }

    fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    fn format(&self, more: &[&str]) -> anyhow::Result<()> {
        let output = self.command().args(["meta", "format"]).args(more).args(&self.arguments).output()?;
        if !output.status.success() {
            bail!("making member {}: {}", self.id, String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    /// Starts the process. Its output goes to its log.
    pub fn start(&mut self) -> anyhow::Result<()> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let child = self
            .command()
            .arg("meta")
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting member {}", self.id))?;
        self.child = Some(child);
        Ok(())
    }

    fn command(&self) -> Command {
        Command::new(&self.program)
    }

    pub fn process_id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn check_alive(&mut self) -> anyhow::Result<()> {
        if let Some(child) = &mut self.child
            && let Some(status) = child.try_wait()?
        {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            bail!("member {} has ended ({status}): {}", self.id, log.lines().last().unwrap_or_default());
        }
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port of loopback that is free at present, and that was not given out before: the kernel may name one again as
/// long as nobody listens on it.
pub fn free_port() -> anyhow::Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::free_port;
    use std::collections::BTreeSet;

    #[test]
    fn no_port_is_given_out_twice() {
        let ports: BTreeSet<u16> = (0..500).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 500);
    }
}
