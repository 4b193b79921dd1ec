//! A demo with several metadata servers: a group in one process, so that a takeover can be watched.

use super::{Args, READY_TIMEOUT, start_data, with_advice};
use crate::{
    client_config,
    config::{self, settings::Settings},
    runtime,
};
use anyhow::Context;
use client::FileSystem;
use env::Env;
use metad::{CoordinatorConfig, MetaConfig};
use proto::hdfs;
use std::{
    io::Write,
    net::{Ipv4Addr, TcpListener},
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

/// The directory of a lone metadata server; those of a group are numbered.
pub const LONE_MEMBER: &str = "meta";
/// The name by which clients call the group.
const NAMESERVICE: &str = "clover";
/// How soon a member that has ended is started again: late enough to be seen missing.
const RESTART_PAUSE: Duration = Duration::from_secs(5);

/// How many metadata servers the demo of this directory has; none where it holds no demo.
pub fn members_of(dir: &Path) -> Option<u16> {
    if dir.join(LONE_MEMBER).exists() {
        return Some(1);
    }
    let count = (1..).take_while(|number| dir.join(format!("{LONE_MEMBER}-{number}")).exists()).count();
    (count > 0).then_some(count as u16)
}

pub async fn serve(
    args: Args,
    mut settings: Settings,
    user: String,
    members: u16,
) -> anyhow::Result<ExitCode> {
    let env = Env::production();
    let coordinator_dir = args.dir.join("coordinator");
    let is_new = members_of(&args.dir).is_none();
    env.disk.create_directory(&args.dir)?;
    let coordinator = coord::Embedded::open(&env, &coordinator_dir)?;
    let mut configs = Vec::new();
    for number in 1..=members {
        configs.push(member(&args, &mut settings, &user, number, members, &coordinator)?);
    }
    if is_new {
        make(&args, &env, &configs)?;
    }

    let (stop, _) = watch::channel(false);
    let mut running = JoinSet::new();
    let (ready, mut all_ready) = mpsc::channel(1);
    for config in &configs {
        running.spawn(keep_running(env.clone(), config.clone(), ready.clone(), stop.subscribe()));
    }
    drop(ready);
    // Data servers that find nobody complain; the channel ends when every member has been there once.
    while all_ready.recv().await.is_some() {}
    let addresses: Vec<String> = configs.iter().map(|config| config.rpc_address.to_string()).collect();
    settings.set(&format!("metadata_servers={}", addresses.join(",")))?;
    let data = start_data(&args, &mut settings, &env, &user).await?;
    let conf = std::path::absolute(args.dir.join("conf"))?;
    let secret = write_secret(&args, &env, &configs)?;
    let http = configs.iter().filter_map(|config| config.http_address).map(|address| address.to_string());
    let http: Vec<String> = http.collect();
    client_config::write_for_group(&conf, NAMESERVICE, &addresses, &http, secret.as_deref())?;
    let fs = FileSystem::connect(&format!("hdfs://{NAMESERVICE}"), &client::Config::from_dir(&conf)?)?;
    let signal = tokio::select! {
        biased;
        ended = running.join_next() => ended.context("there is a member")??.and(Ok(None)),
        ready = wait_until_ready(&fs, data.len()) => ready.map(|()| Some(runtime::stop_signal())),
    }?;
    if let Some(signal) = signal {
        announce(&args, &configs, &conf);
        signal.await?;
    }
    eprintln!("stopping");
    for server in data {
        server.shutdown().await;
    }
    let _ = stop.send(true);
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(ExitCode::SUCCESS)
}

fn member(
    args: &Args,
    settings: &mut Settings,
    user: &str,
    number: u16,
    members: u16,
    coordinator: &coord::Embedded,
) -> anyhow::Result<MetaConfig> {
    let directory = args.dir.join(format!("{LONE_MEMBER}-{number}"));
    settings.set(&format!("name_dir={}", directory.display()))?;
    settings.set(&format!("rpc_address=127.0.0.1:{}", port(args.rpc_port, number)?))?;
    settings.set(&format!("http_address=127.0.0.1:{}", port(args.http_port, number)?))?;
    settings.set(&format!("peer_address=127.0.0.1:{}", port(0, number)?))?;
    settings.set(&format!("member={number}"))?;
    let mut config = config::meta::config(settings, user)?;
    config.group.members = (1..=members).map(|number| base::MemberId(number.into())).collect();
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
fn write_secret(args: &Args, env: &Env, configs: &[MetaConfig]) -> anyhow::Result<Option<PathBuf>> {
    let first = configs.first().context("there is a member")?;
    let cluster = metad::read_cluster(env, &first.name_directory)?;
    // A demo of an early version has none.
    let Some(secret) = cluster.secret.as_ref().and_then(|secret| secret.as_text()) else { return Ok(None) };
    let path = std::path::absolute(args.dir.join("secret"))?;
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(secret.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(Some(path))
}

/// Runs a member and starts it again when it has ended, as a supervisor of servers would.
async fn keep_running(
    env: Env,
    config: MetaConfig,
    ready: mpsc::Sender<()>,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let member = config.group.member;
    // Given up when it is ready.
    let mut not_ready = Some(ready);
    loop {
        let mut stopped = stop.clone();
        let asked = async move { drop(stopped.wait_for(|stop| *stop).await) };
        let ended = metad::run(env.clone(), config.clone(), asked, |_| not_ready = None).await;
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

fn announce(args: &Args, configs: &[MetaConfig], conf: &Path) {
    println!("ready hdfs://{}", configs[0].rpc_address);
    for config in configs {
        let http = config.http_address.map_or(String::new(), |http| format!(", http://{http}/health"));
        println!("  member {}: hdfs://{}{http}", config.group.member, config.rpc_address);
    }
    println!("  {} data servers; everything is kept in {}", args.data_servers, args.dir.display());
    println!("  in another terminal:");
    println!("       export HADOOP_CONF_DIR={}", conf.display());
    println!("       clover fs -ls -R /            any client of any language: hdfs dfs -put FILE /");
    println!("       clover admin group            who is active, who is in sync");
    println!("       clover admin group fail-active     and watch a takeover");
    println!("  ^C stops it");
}
