//! A demo with several metadata servers: a group in one process, so that a takeover can be watched.

use super::{
    Args, READY_TIMEOUT, further,
    shape::{self, Shape},
    start_data, start_load, with_advice,
};
use crate::{
    admin::servers::Servers,
    client_config,
    config::{self, settings::Settings},
    console, runtime, webhdfs,
};
use ::console::Console;
use anyhow::Context;
use base::MemberId;
use client::FileSystem;
use env::Env;
use gateway::Gateway;
use metad::{Cluster, CoordinatorConfig, MetaConfig};
use proto::hdfs;
use std::{
    collections::BTreeMap,
    io::Write,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

/// The name by which clients call the group.
const NAMESERVICE: &str = "clover";
/// How soon a member that has ended is started again: late enough to be seen missing.
const RESTART_PAUSE: Duration = Duration::from_secs(5);

pub async fn serve(
    args: Args,
    mut settings: Settings,
    user: String,
    groups: u16,
    members: u16,
) -> anyhow::Result<ExitCode> {
    let env = Env::production();
    let coordinator_dir = args.dir.join("coordinator");
    let is_new = Shape::of(&args.dir).is_none();
    env.disk.create_directory(&args.dir)?;
    let coordinator = coord::Embedded::open(&env, &coordinator_dir)?;
    let (mut configs, mut beside) = (Vec::new(), BTreeMap::new());
    for group in 1..=groups {
        for index in 1..=members {
            let mut config = member(&args, &mut settings, &user, (group, index), members, &coordinator)?;
            let gateway = webhdfs::beside_metadata(&settings, &user, &env, &mut config)?;
            let console = console::beside_metadata(&settings, &user, &env, &mut config)?;
            beside.insert(config.group.member, Arc::new(Beside { gateway, console }));
            configs.push(config);
        }
    }
    let mut by_group = configs.chunks(members.into());
    let first = by_group.next().context("there is a group")?;
    if is_new {
        make(&args, &env, first)?;
    }
    let cluster = metad::read_cluster(&env, &first[0].name_directory)?;
    let mut servers = Servers::of(user.clone(), addresses(&configs));
    if let Some(secret) = cluster.secret.clone() {
        servers.prove_with(secret);
    }

    let (stop, _) = watch::channel(false);
    let mut running = JoinSet::new();
    start(&env, first, &beside, &mut running, &stop).await;
    for further in by_group {
        if !further[0].name_directory.exists() {
            further::make(&args.dir, &env, &cluster, &servers, further, coordinator.session()).await?;
        }
        start(&env, further, &beside, &mut running, &stop).await;
    }
    let addresses = addresses(&configs);
    settings.set(&format!("metadata_servers={}", addresses.join(",")))?;
    let (data, _data_gateways) = start_data(&args, &mut settings, &env, &user).await?;
    let conf = std::path::absolute(args.dir.join("conf"))?;
    let secret = write_secret(&args, &cluster)?;
    let http = configs.iter().filter_map(|config| config.http_address).map(|address| address.to_string());
    let http: Vec<String> = http.collect();
    client_config::write_for_group(&conf, NAMESERVICE, &addresses, &http, secret.as_deref())?;
    let (uri, client_config) = (format!("hdfs://{NAMESERVICE}"), client::Config::from_dir(&conf)?);
    let fs = FileSystem::connect(&uri, &client_config)?;
    let ready = async {
        wait_until_ready(&fs, data.len()).await?;
        if groups > 1 {
            further::wait_until_homes(&servers, groups.into(), data.len()).await?;
        }
        anyhow::Ok(())
    };
    let signal = tokio::select! {
        biased;
        ended = running.join_next() => ended.context("there is a member")??.and(Ok(None)),
        ready = ready => ready.map(|()| Some(runtime::stop_signal())),
    }?;
    if let Some(signal) = signal {
        let first = configs.first().filter(|first| beside[&first.group.member].console.is_some());
        let login = first.and_then(|first| console::own_login_link(&env, first, first.http_address?, &user));
        announce(&args, &configs, &conf, login.as_deref());
        let load = start_load(&args, &uri, &client_config, user).await?;
        signal.await?;
        eprintln!("stopping");
        if let Some(load) = load {
            load.stop().await;
        }
    }
    for server in data {
        server.shutdown().await;
    }
    let _ = stop.send(true);
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the members of a group, and returns when each has been there once: data servers that find nobody complain.
async fn start(
    env: &Env,
    configs: &[MetaConfig],
    beside: &BTreeMap<MemberId, Arc<Beside>>,
    running: &mut JoinSet<anyhow::Result<()>>,
    stop: &watch::Sender<bool>,
) {
    let (ready, mut all_ready) = mpsc::channel(1);
    for config in configs {
        let beside = beside.get(&config.group.member).cloned();
        running.spawn(keep_running(env.clone(), config.clone(), beside, ready.clone(), stop.subscribe()));
    }
    drop(ready);
    while all_ready.recv().await.is_some() {}
}

fn addresses(configs: &[MetaConfig]) -> Vec<String> {
    configs.iter().map(|config| config.rpc_address.to_string()).collect()
}

fn member(
    args: &Args,
    settings: &mut Settings,
    user: &str,
    (group, index): (u16, u16),
    members: u16,
    coordinator: &coord::Embedded,
) -> anyhow::Result<MetaConfig> {
    let id = shape::member(group, index);
    let directory = shape::directory(&args.dir, id);
    // The ports of all members follow each other.
    let number = (group - 1) * members + index;
    settings.set(&format!("name_dir={}", directory.display()))?;
    settings.set(&format!("rpc_address=127.0.0.1:{}", port(args.rpc_port, number)?))?;
    settings.set(&format!("http_address=127.0.0.1:{}", port(args.http_port, number)?))?;
    settings.set(&format!("peer_address=127.0.0.1:{}", port(0, number)?))?;
    settings.set(&format!("member={id}"))?;
    let mut config = config::meta::config(settings, user)?;
    config.group.id = shape::group(group);
    config.group.members = (1..=members).map(|index| shape::member(group, index)).collect();
    config.group.coordinator = CoordinatorConfig::Shared(Arc::new(coordinator.session()));
    Ok(config)
}

/// The port of a member: the ones above the first, or any that is free. A member that is started again has the
/// same one.
fn port(first: u16, number: u16) -> anyhow::Result<u16> {
    match first {
        0 => Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port()),
        first => first.checked_add(number - 1).context("the ports above the first one end before 65535"),
    }
}

/// The first start in this directory.
fn make(args: &Args, env: &Env, configs: &[MetaConfig]) -> anyhow::Result<()> {
    let (first, others) = configs.split_first().context("there is a member")?;
    let cluster = metad::format(env, &first.name_directory, None, first.rpc_address.ip(), &first.group)?;
    for config in others {
        metad::join(env, &config.name_directory, &config.group)?;
    }
    eprintln!("made cluster {} with {} members in {}", cluster.cluster_id, configs.len(), args.dir.display());
    Ok(())
}

/// Writes the secret down for `clover admin group`, which finds it by the clients' configuration.
fn write_secret(args: &Args, cluster: &Cluster) -> anyhow::Result<Option<PathBuf>> {
    // A demo of an early version has none.
    let Some(secret) = cluster.secret.as_ref().and_then(|secret| secret.as_text()) else { return Ok(None) };
    let path = std::path::absolute(args.dir.join("secret"))?;
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(secret.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(Some(path))
}

/// The answers of a member's HTTP port that are those of a client of the member.
struct Beside {
    gateway: Option<Gateway>,
    console: Option<Console>,
}

impl Beside {
    fn locate(&self, env: &Env, config: &MetaConfig, bound: SocketAddr) {
        if let Some(gateway) = &self.gateway {
            webhdfs::locate(gateway, None, bound);
        }
        if let Some(console) = &self.console {
            console::locate(console, env, config, bound);
        }
    }
}

/// Runs a member and starts it again when it has ended, as a supervisor of servers would.
async fn keep_running(
    env: Env,
    config: MetaConfig,
    beside: Option<Arc<Beside>>,
    ready: mpsc::Sender<()>,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let member = config.group.member;
    // Given up when it is ready.
    let mut not_ready = Some(ready);
    loop {
        let mut stopped = stop.clone();
        let asked = async move { drop(stopped.wait_for(|stop| *stop).await) };
        let started = |server: &metad::MetaServer| {
            if let Some(beside) = &beside {
                beside.locate(&env, &config, server.rpc_address());
            }
            not_ready = None;
        };
        let ended = metad::run(env.clone(), config.clone(), asked, started).await;
        match ended {
            Ok(()) => return Ok(()),
            // A mistake in the settings does not go away by itself.
            Err(error) if not_ready.is_some() => {
                return Err(error).with_context(|| format!("member {member}")).map_err(with_advice);
            }
            Err(error) => {
                println!("member {member} has ended ({error}); it starts again in {RESTART_PAUSE:?}")
            }
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
            () = tokio::time::sleep(RESTART_PAUSE) => println!("member {member} starts again"),
        }
    }
}

/// A client is served: some member leads, all data servers have reported to it, and safe mode is over.
async fn wait_until_ready(fs: &FileSystem, data_servers: usize) -> anyhow::Result<()> {
    let live = hdfs::GetDatanodeReportRequestProto { r#type: hdfs::DatanodeReportTypeProto::Live as i32 };
    let safe_mode = hdfs::SetSafeModeRequestProto {
        action: hdfs::SafeModeActionProto::SafemodeGet as i32,
        checked: None,
    };
    let mut last = String::new();
    let ready = async {
        loop {
            let answers = async {
                let report: hdfs::GetDatanodeReportResponseProto =
                    fs.call("getDatanodeReport", &live).await?;
                let mode: hdfs::SetSafeModeResponseProto = fs.call("setSafeMode", &safe_mode).await?;
                client::Result::Ok((report.di.len(), mode.result))
            };
            match answers.await {
                Ok((count, false)) if count >= data_servers => return,
                Ok((count, safe)) => {
                    last = format!("{count} of {data_servers} data servers, safe mode {safe}")
                }
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(READY_TIMEOUT, ready).await;
    waited.with_context(|| format!("no member serves after {} s: {last}", READY_TIMEOUT.as_secs()))
}

fn announce(args: &Args, configs: &[MetaConfig], conf: &Path, login: Option<&str>) {
    println!("ready hdfs://{}", configs[0].rpc_address);
    let has_several = configs.iter().any(|config| config.group.id != configs[0].group.id);
    for config in configs {
        let http = config.http_address.map_or(String::new(), |http| format!(", http://{http}/health"));
        let of = if has_several { format!(" of group {}", config.group.id) } else { String::new() };
        println!("  member {}{of}: hdfs://{}{http}", config.group.member, config.rpc_address);
    }
    println!("  {} data servers; everything is kept in {}", args.data_servers, args.dir.display());
    println!("  in another terminal:");
    println!("       export HADOOP_CONF_DIR={}", conf.display());
    println!("       clover fs -ls -R /            any client of any language: hdfs dfs -put FILE /");
    if has_several {
        println!("       clover admin groups           the groups that hold the names together");
        println!("       clover admin where PATH       the group that has the files of a directory");
    }
    println!("       clover admin group            who is active, who is in sync");
    println!("       clover admin group fail-active     and watch a takeover");
    if let Some(login) = login {
        println!("  web console, signed in once with this address:");
        println!("       {login}");
    }
    println!("  ^C stops it");
}
