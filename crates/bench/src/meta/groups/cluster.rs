//! Several groups of real servers that hold one namespace together.

use crate::{
    launch::{Group, Member, Plan},
    meta::{
        cpu,
        groups::servers::{Home, Role, Server},
        requests,
    },
};
use anyhow::{Context, bail};
use cli::admin::{groups::Look, servers::Servers};
use proto::{
    clover::admin::{
        GetHomeRequestProto, GetHomeResponseProto, GiveSlotsRequestProto, GiveSlotsResponseProto,
    },
    hdfs::MkdirsResponseProto,
    protocol,
};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// For a question about a directory.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// Directories are given their homes by chance. So many times the expected number are made at most.
const EXCESS_MAX: u32 = 20;

pub struct Cluster {
    groups: Vec<Group>,
    servers: Servers,
}

impl Cluster {
    /// Makes so many groups like the root group of the plan, and waits until each is the home of files.
    pub async fn start(count: u32, root: Plan<'_>) -> anyhow::Result<Self> {
        let mut groups = Vec::new();
        for number in 1..=count {
            let plan = Plan { number, ..root };
            groups.push(Group::start(&plan).await.with_context(|| format!("starting group {number}"))?);
        }
        let mut servers = groups[0].servers();
        let first = groups[0].members[0].name_directory();
        let cluster = metad::read_cluster(&env::Env::production(), &first)?;
        servers.prove_with(cluster.secret.context("the cluster has a secret")?);
        let cluster = Self { groups, servers };
        if count > 1 {
            cluster.wait_until_homes().await?;
        }
        Ok(cluster)
    }

    async fn wait_until_homes(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let lacking = match self.give_slots().await {
                Ok(None) => return Ok(()),
                Ok(Some(lacking)) => lacking,
                Err(error) => format!("{error:#}"),
            };
            if begun.elapsed() > PATIENCE {
                bail!("not all groups are homes after {} s: {lacking}", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Gives slots to the groups that follow and have none. Returns what is lacking.
    async fn give_slots(&self) -> anyhow::Result<Option<String>> {
        let look = Look::at(&self.servers).await?;
        let root = look.group(1).and_then(|root| root.itself.as_ref()).context("group 1 does not answer")?;
        for number in 2..=self.groups.len() as u32 {
            let Some(group) = look.group(number) else {
                return Ok(Some(format!("group {number} is not known")));
            };
            if !group.log.as_ref().is_some_and(|log| log.is_serving) {
                return Ok(Some(format!("group {number} does not serve")));
            }
            if group.known.slots == 0 {
                let request = GiveSlotsRequestProto { group: number };
                let _: GiveSlotsResponseProto = self.servers.order(root, "giveSlots", &request).await?;
                return Ok(Some(format!("group {number} has just been given slots")));
            }
        }
        Ok(None)
    }

    /// All servers with their roles, the groups in their order and the active of each first.
    pub async fn roles(&self) -> anyhow::Result<Vec<Server>> {
        let mut servers = Vec::new();
        for (number, group) in (1..).zip(&self.groups) {
            let active = group.active().await?.id;
            let server = |member: &Member, role| {
                let id = member.process_id().context("a member has a process")?;
                let process = cpu::Process::of(id).context("a member has ended")?;
                anyhow::Ok(Server { role, group: number, process, address: member.rpc.parse()? })
            };
            let (leads, follow): (Vec<_>, Vec<_>) =
                group.members.iter().partition(|member| member.id == active);
            for member in leads {
                servers.push(server(member, if number == 1 { Role::Root } else { Role::Home })?);
            }
            for member in follow {
                servers.push(server(member, Role::Standby)?);
            }
        }
        Ok(servers)
    }

    /// Makes so many directories in each home, and tells which they are.
    pub async fn make_homes(
        &self,
        actives: &[&Server],
        above: &str,
        each: usize,
    ) -> anyhow::Result<Vec<Home>> {
        let mut homes: Vec<Home> = actives
            .iter()
            .map(|active| Home { group: active.group, address: active.address, directories: Vec::new() })
            .collect();
        let root = actives.first().context("there is a root group")?.address.to_string();
        let client =
            rpc::Client::connect(&root, protocol::CLIENT_NAMENODE, self.servers.user(), Default::default());
        let most = EXCESS_MAX * (each * homes.len()) as u32;
        for number in 0..most {
            if homes.iter().all(|home| home.directories.len() == each) {
                return Ok(homes);
            }
            let path = format!("{above}/{number}");
            let request = requests::mkdirs(path.clone());
            let made: MkdirsResponseProto =
                client.call("mkdirs", &request).await.with_context(|| format!("making {path}"))?;
            anyhow::ensure!(made.result, "{path} was not made");
            let request = GetHomeRequestProto { path: path.clone() };
            let found: GetHomeResponseProto =
                self.servers.ask(&root, "getHome", &request, ANSWER_PATIENCE).await?;
            let home = homes.iter_mut().find(|home| home.group == found.group);
            let home = home.with_context(|| format!("{path} is in group {}", found.group))?;
            if home.directories.len() < each {
                home.directories.push(path);
            }
        }
        bail!("of {most} directories not each home got {each}")
    }
}
