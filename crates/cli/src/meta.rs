//! Runs or prepares a metadata server.

mod aside;
pub mod backup;
mod coordinator;
pub mod further_group;
mod name_directory;
mod once;
pub mod opened;
mod places;
mod restore;

use crate::{
    config::{self, loopback, settings::Settings},
    console, runtime,
    supervisor::{self, Look},
    user, webhdfs,
};
use anyhow::Context;
use base::GroupId;
use env::Env;
use journal::Accepted;
use metad::{CoordinatorConfig, GroupConfig, MetaConfig, Outlook};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a new cluster, or with --join this server's part of one, in an empty directory. Never done implicitly.
    Format(Format),
    /// Give a cluster that was made for one server a ZooKeeper, so that further servers can be added. The server is stopped, and
    /// its file names the ZooKeeper and a peer_address already.
    MakeGroup(Serve),
    /// Use a store again that stopped because its disk had failed. Check the disk first.
    AcceptDisk(Serve),
    /// Look at stores that were put aside because they were not trusted any more; put one back, or remove it.
    Aside(aside::Args),
    /// What a backup holds, whether it is sound, and the names in it as of then. Made by `clover admin backup`.
    Backup(backup::Args),
    /// Make a directory from which a Hadoop NameNode starts, with the names of a backup.
    NameDirectory(name_directory::Args),
    /// Make the directory of a server from a backup: a lone one, or the first of a group, whose others join it. Deletions of replicas are off there.
    Restore(restore::Args),
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// The TOML file with this server's settings; `clover config meta` prints all keys.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override a key of the file, by our name or Hadoop's.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Format {
    #[command(flatten)]
    serve: Serve,
    /// The new cluster's id; random by default.
    #[arg(long, value_name = "ID", conflicts_with = "join")]
    cluster_id: Option<String>,
    /// Make no new cluster: prepare a further server of the one that the coordinator knows.
    #[arg(long, group = "joins")]
    join: bool,
    /// For what starts servers by itself, before each start: a directory that is made stays as it is. Else the first of `members` makes the
    /// cluster, and the others wait until it is there, and join it.
    #[arg(long, group = "joins")]
    once: bool,
    /// With --join: the group of this server, where several groups hold one namespace. If the cluster has no such group, this server makes it.
    #[arg(long, value_name = "N", requires = "join", value_parser = clap::value_parser!(u32).range(1..=128))]
    group: Option<u32>,
    /// This server takes the place of one with the same number whose directory is lost for good.
    #[arg(long, requires = "joins")]
    replace: bool,
}

impl Serve {
    fn settings(&self) -> anyhow::Result<Settings> {
        let mut settings = Settings::defaults(config::META);
        if let Some(file) = &self.config {
            settings.read_file(file)?;
        }
        for assignment in &self.set {
            settings.set(assignment)?;
        }
        Ok(settings)
    }

    /// How to start the server that these arguments prepare.
    fn command(&self) -> String {
        match &self.config {
            Some(file) => format!("clover meta --config {}", file.display()),
            None => "clover meta --config FILE".to_owned(),
        }
    }
}

impl Args {
    /// Whether a server is to run, and not only something to be made.
    pub fn is_server(&self) -> bool {
        self.command.is_none()
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Some(Command::Format(format)) => make(&format),
        Some(Command::MakeGroup(args)) => make_group(&args),
        Some(Command::AcceptDisk(args)) => accept_disk(&args),
        Some(Command::Aside(args)) => aside::run(&args),
        Some(Command::Backup(args)) => backup::run(&args),
        Some(Command::NameDirectory(args)) => name_directory::run(&args),
        Some(Command::Restore(args)) => restore::run(&args),
        None => serve(&args.serve),
    }
}

fn make(args: &Format) -> anyhow::Result<ExitCode> {
    let settings = args.serve.settings()?;
    let config = config::meta::config(&settings, &user::of_this_process()?)?;
    if args.once {
        once::run(args, &settings, &config)?;
    } else if args.join {
        join(args, &config)?;
    } else {
        config::group::check_for_format(&settings)?;
        found(args, &config)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The first server of a cluster.
fn found(args: &Format, config: &MetaConfig) -> anyhow::Result<()> {
    let (env, directory) = (Env::production(), &config.name_directory);
    if let CoordinatorConfig::ZooKeeper(zookeeper) = &config.group.coordinator {
        coordinator::check_before_format(zookeeper)?;
    }
    let cluster_id = args.cluster_id.clone();
    make_private(directory)?;
    let cluster = metad::format(&env, directory, cluster_id, config.rpc_address.ip(), &config.group)?;
    println!("Made cluster {} in {}.", cluster.cluster_id, directory.display());
    println!("Block pool:  {}", cluster.block_pool);
    let group = &config.group;
    let others: Vec<String> =
        group.members.iter().filter(|member| **member != group.member).map(ToString::to_string).collect();
    if let CoordinatorConfig::ZooKeeper(zookeeper) = &group.coordinator {
        println!("Coordinator: ZooKeeper {}, below {}", zookeeper.servers, zookeeper.root);
        println!(
            "Group:       member {} has everything and is in sync{}",
            group.member,
            if others.is_empty() { String::new() } else { format!("; {} are to join", others.join(", ")) }
        );
    }
    if let Some(exposure) = metad::format::exposure(group) {
        eprintln!("WARNING: {exposure}.");
    }
    if group.members.len() > 1 && group.in_sync_min == Some(1) {
        eprintln!("WARNING: {}.", metad::ONE_COPY);
    }
    println!("Next:");
    println!("  {}", args.serve.command());
    if !others.is_empty() {
        println!(
            "  on the machine of each other member ({}), with its own `member` and addresses:",
            others.join(", ")
        );
        println!("    clover meta format --join --config FILE");
        println!("    clover meta --config FILE");
    }
    println!("  clover data --config FILE    on each data server");
    Ok(())
}

/// Makes the directory of a server, which will hold all names and the cluster's secret: for its owner only.
fn make_private(directory: &Path) -> anyhow::Result<()> {
    let made = fs::create_dir_all(directory);
    made.and_then(|()| fs::set_permissions(directory, fs::Permissions::from_mode(0o700)))
        .with_context(|| format!("making {} a directory of this user alone", directory.display()))
}

/// A further server of a cluster.
fn join(args: &Format, config: &MetaConfig) -> anyhow::Result<()> {
    let directory = &config.name_directory;
    let CoordinatorConfig::ZooKeeper(zookeeper) = &config.group.coordinator else {
        anyhow::bail!(
            "coordinator = embedded: there is no cluster to join. Name the cluster's own ZooKeeper, as coordinator = \
             \"zookeeper://zk-1:2181/clover/my-cluster\""
        );
    };
    let (id, is_made) = coordinator::group_of(zookeeper, config.group.member, args.group)?;
    let config = &MetaConfig { group: GroupConfig { id, ..config.group.clone() }, ..config.clone() };
    if !is_made {
        return further_group::found(&args.serve, config, zookeeper);
    }
    let group = &config.group;
    coordinator::check_before_join(zookeeper, id, group.member, args.replace)?;
    make_private(directory)?;
    let cluster = metad::join(&Env::production(), directory, group)?;
    let which = if id == GroupId::ROOT { String::new() } else { format!(", as one of group {id}") };
    println!(
        "Member {} has joined cluster {} in {}{which}.",
        group.member,
        cluster.cluster_id,
        directory.display()
    );
    println!("Coordinator: ZooKeeper {}, below {}", zookeeper.servers, zookeeper.root);
    if let Some(exposure) = metad::format::exposure(group) {
        eprintln!("WARNING: {exposure}.");
    }
    println!("It holds nothing yet. Next:");
    println!("  {}", args.serve.command());
    println!("    it is renewed by the others, and is in sync when it has everything");
    let address = group.advertised.rpc.clone().unwrap_or_else(|| config.rpc_address.to_string());
    println!("  clover admin group --fs hdfs://{address}");
    println!("    shows how far it is");
    Ok(())
}

fn make_group(args: &Serve) -> anyhow::Result<ExitCode> {
    let config = config::meta::config(&args.settings()?, &user::of_this_process()?)?;
    let cluster = metad::make_group(&Env::production(), &config.name_directory, &config.group)?;
    println!(
        "Cluster {} can have several servers now; member {} is the first.",
        cluster.cluster_id, config.group.member
    );
    if let CoordinatorConfig::ZooKeeper(zookeeper) = &config.group.coordinator {
        println!("Coordinator: ZooKeeper {}, below {}", zookeeper.servers, zookeeper.root);
    }
    let before = config.name_directory.join(metad::COORDINATOR_BEFORE);
    println!("The server's own records until now are in {}; nothing reads them any more.", before.display());
    if let Some(exposure) = metad::format::exposure(&config.group) {
        eprintln!("WARNING: {exposure}.");
    }
    println!("Next:");
    println!("  {}", args.command());
    println!(
        "  clover admin group add 2    and on that machine `clover meta format --join --config FILE`, `clover meta --config FILE`"
    );
    println!(
        "  clover admin group minimum 2    once it is in sync: a change is acknowledged when both have it"
    );
    Ok(ExitCode::SUCCESS)
}

fn accept_disk(args: &Serve) -> anyhow::Result<ExitCode> {
    let config = config::meta::config(&args.settings()?, &user::of_this_process()?)?;
    let env = Env::production();
    let store = metad::format::store_of(&env, &config.name_directory)?;
    match journal::accept_fault(&env, &store)? {
        Accepted::Nothing => println!("{} is trusted; there is nothing to accept.", store.display()),
        Accepted::TakenBack(taken) => {
            println!("Accepted {}, which was not trusted since: {}", store.display(), taken.note);
            println!("Its log was read back from the disk and ends with {}.", taken.end.id);
            if taken.end.id.sn < taken.durable {
                println!(
                    "THE LOG HAD BEEN DURABLE UP TO {}: the entries after {} are lost here.",
                    taken.durable, taken.end.id.sn
                );
                println!(
                    "If another member may have them, start no server yet: `clover admin group` shows what the others have."
                );
            }
            println!("Next: start the server. If it runs already and waits, it goes on by itself.");
        }
        Accepted::Damaged { note, error } => {
            println!("Accepted {}, which was not trusted since: {note}", store.display());
            println!("The disk does not hold an intact log any more: {error}");
            println!("Next: start the server. It says whether another member has what is missing.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(args: &Serve) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    let user = user::of_this_process()?;
    let mut config = config::meta::config(&settings, &user)?;
    loopback::warn(&settings);
    let env = Env::production();
    let gateway = webhdfs::beside_metadata(&settings, &user, &env, &mut config)?;
    let console = console::beside_metadata(&settings, &user, &env, &mut config)?;
    let (own_env, own_config) = (env.clone(), config.clone());
    let advertised = config.group.advertised.rpc.clone();
    let outlook = Arc::new(Mutex::new(None));
    supervisor::starting();
    runtime::block_on(async move {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let signal = tokio::spawn(async move {
            let signal = runtime::stop_signal().await;
            supervisor::stopping();
            let _ = stop.send(());
            signal
        });
        // A sender that is gone has said all that it will.
        let stop = async { drop(stopped.await) };
        // It may be started several times in one process; each is ready to be called.
        metad::run(env, config, stop, |server| {
            if let Some(gateway) = &gateway {
                webhdfs::locate(gateway, advertised.as_deref(), server.rpc_address());
            }
            if let Some(console) = &console {
                console::locate(console, &own_env, &own_config, server.rpc_address());
            }
            println!("ready hdfs://{}", server.rpc_address());
            supervisor::ready(&format!("ready hdfs://{}", server.rpc_address()));
            if outlook.lock().unwrap_or_else(PoisonError::into_inner).replace(server.outlook()).is_none() {
                supervisor::keep_told(look_at(outlook.clone()));
            }
        })
        .await
        .inspect_err(|_| supervisor::stopping())?;
        signal.await??;
        Ok(ExitCode::SUCCESS)
    })
}

/// The server's watch of its own threads is the verdict. Between two servers of this process, while the second one reads
/// what the first one has left, no thread is watched, and none can hang unseen but the reader.
fn look_at(outlook: Arc<Mutex<Option<Outlook>>>) -> Look {
    let now = move || outlook.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let asked = now.clone();
    Look {
        verdict: Box::new(move || asked().and_then(|outlook| outlook.verdict()).unwrap_or(Ok(()))),
        state: Box::new(move || {
            now().and_then(|outlook| outlook.state()).unwrap_or_else(|| "starts again".to_owned())
        }),
    }
}
