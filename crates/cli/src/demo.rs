//! Runs a whole cluster in this process, on loopback.

mod further;
mod group;
mod load;
mod shape;

use crate::{
    config::{self, settings::Settings},
    console, runtime, user, webhdfs,
};
use anyhow::Context;
use client::FileSystem;
use datad::DataServer;
use env::Env;
use gateway::Gateway;
use load::Load;
use metad::MetaServer;
use shape::Shape;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where everything is kept; made if missing, used again if a demo made it.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Metadata servers: a group of several goes on when its active fails. One, or as many as DIR was made with.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=7))]
    members: Option<u16>,
    /// Groups of metadata servers that hold one namespace together, each with --members servers. One, or as many as DIR was made with.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=8))]
    groups: Option<u16>,
    /// Data servers: as many as copies of each file are wanted, or more.
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    data_servers: u16,
    /// Where clients call; further members take the ports above it. 0 takes any free ones.
    #[arg(long, default_value_t = 8020, value_name = "PORT")]
    rpc_port: u16,
    /// Where /health and /metrics are, likewise.
    #[arg(long, default_value_t = 9870, value_name = "PORT")]
    http_port: u16,
    /// Let some clients write, read, list and rename below /demo-load, about half a megabyte a second, and print every five seconds what they felt.
    #[arg(long)]
    with_load: bool,
    /// Override any key of the metadata or data servers, by our name or Hadoop's.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// How long the data servers may take to report before something is wrong.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The settings that differ in a demo: everything is on one machine and starts together, so there are no stragglers
/// to wait for, and a stopped data server is noticed while one watches.
const DEMO_SETTINGS: &[&str] = &[
    "safe_mode_extension_ms=0",
    "heartbeat_interval_ms=1s",
    "heartbeat_recheck_ms=10s",
    "transfer_retry_ms=30s",
];

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut settings = Settings::defaults(&[config::META, config::DATA].concat());
    // An append to a file of three copies wants three servers, as in HDFS; here no others will ever come.
    let replication = settings.number("default_replication").min(u64::from(args.data_servers));
    settings.set(&format!("default_replication={replication}"))?;
    for assignment in DEMO_SETTINGS.iter().copied().chain(args.set.iter().map(String::as_str)) {
        settings.set(assignment)?;
    }
    for key in ["transfer_address", "ipc_address", "data_http_address"] {
        settings.set(&format!("{key}=127.0.0.1:0"))?;
    }
    let user = user::of_this_process()?;
    let made = Shape::of(&args.dir);
    let shape = Shape::wanted(&args, made)?;
    if made.is_none() {
        check_empty(&args.dir)?;
    }
    match shape {
        Shape::Alone => runtime::block_on(serve(args, settings, user)),
        Shape::Groups { groups, members } => {
            runtime::block_on(group::serve(args, settings, user, groups, members))
        }
    }
}

async fn serve(args: Args, mut settings: Settings, user: String) -> anyhow::Result<ExitCode> {
    let env = Env::production();
    let name_dir = args.dir.join(shape::LONE_MEMBER);
    settings.set(&format!("name_dir={}", name_dir.display()))?;
    settings.set(&format!("rpc_address=127.0.0.1:{}", args.rpc_port))?;
    settings.set(&format!("http_address=127.0.0.1:{}", args.http_port))?;
    let mut config = config::meta::config(&settings, &user)?;
    let gateway = webhdfs::beside_metadata(&settings, &user, &env, &mut config)?;
    let console = console::beside_metadata(&settings, &user, &env, &mut config)?;
    if !name_dir.exists() {
        let cluster = metad::format(&env, &name_dir, None, config.rpc_address.ip(), &config.group)?;
        eprintln!("made cluster {} in {}", cluster.cluster_id, args.dir.display());
    }
    let meta = MetaServer::start(env.clone(), config.clone()).await;
    let meta = meta.context("starting the metadata server").map_err(with_advice)?;
    if let Some(gateway) = &gateway {
        webhdfs::locate(gateway, None, meta.rpc_address());
    }
    if let Some(console) = &console {
        console::locate(console, &env, &config, meta.rpc_address());
    }
    settings.set(&format!("metadata_servers={}", meta.rpc_address()))?;
    let (data, _gateways) = start_data(&args, &mut settings, &env, &user).await?;
    wait_until_ready(&meta, &data).await?;
    let http = meta.http_address();
    let login = http.filter(|_| console.is_some());
    let login = login.and_then(|http| console::own_login_link(&env, &config, http, &user));
    announce(&args, meta.rpc_address(), http, login.as_deref());
    let uri = format!("hdfs://{}", meta.rpc_address());
    let load = start_load(&args, &uri, &client::Config::new(), user).await?;

    tokio::select! {
        biased;
        reason = meta.failed() => anyhow::bail!("the metadata server has failed: {reason}"),
        signal = runtime::stop_signal() => signal?,
    }
    eprintln!("stopping");
    if let Some(load) = load {
        load.stop().await;
    }
    for server in data {
        server.shutdown().await;
    }
    meta.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

/// Adds advice to an error for a person who tries Clover out.
fn with_advice(error: anyhow::Error) -> anyhow::Error {
    let is_taken = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::AddrInUse);
    match is_taken {
        true => error.context(
            "a port is taken, perhaps by another demo; --rpc-port and --http-port name others, and 0 takes any free ones",
        ),
        false => error,
    }
}

/// Refuses a directory that is not empty. It is called when a demo starts in a directory for the first time.
fn check_empty(dir: &Path) -> anyhow::Result<()> {
    if dir.exists() && std::fs::read_dir(dir)?.next().is_some() {
        anyhow::bail!(
            "{} holds something, but not a demo cluster; name an empty or new directory",
            dir.display()
        );
    }
    Ok(())
}

/// The data servers, and the gateways for WebHDFS beside them.
async fn start_data(
    args: &Args,
    settings: &mut Settings,
    env: &Env,
    user: &str,
) -> anyhow::Result<(Vec<DataServer>, Vec<Gateway>)> {
    let (mut servers, mut gateways) = (Vec::new(), Vec::new());
    for number in 1..=args.data_servers {
        let directory = args.dir.join(format!("data-{number}"));
        // A data server by itself makes none in a cluster that is not new any more.
        std::fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        settings.set(&format!("data_dirs={}", directory.display()))?;
        let config = config::data::config(settings, user)?;
        let (gateway, pages) = webhdfs::beside_data(settings, user, env, &config)?;
        gateways.extend(gateway);
        let server = DataServer::start_with(env.clone(), config, pages).await;
        servers.push(server.with_context(|| format!("starting data server {number}"))?);
    }
    Ok((servers, gateways))
}

/// The load, if one is wanted. `user` is the superuser of the demo, also if HADOOP_USER_NAME names another.
async fn start_load(
    args: &Args,
    uri: &str,
    config: &client::Config,
    user: String,
) -> anyhow::Result<Option<Load>> {
    if !args.with_load {
        return Ok(None);
    }
    let settings = client::Settings { user, ..client::Settings::new(config)? };
    let fs = FileSystem::connect_to(client::Location::resolve(uri, config)?, settings);
    Load::start(fs).await.map(Some)
}

/// All data servers have reported and safe mode is over.
async fn wait_until_ready(meta: &MetaServer, data: &[DataServer]) -> anyhow::Result<()> {
    let ready = async {
        for server in data {
            server.wait_registered().await.map_err(anyhow::Error::msg)?;
        }
        while meta.live_data_servers() < data.len() || meta.in_safe_mode() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(READY_TIMEOUT, ready).await.with_context(|| {
        format!(
            "after {} s {} of {} data servers have reported{}",
            READY_TIMEOUT.as_secs(),
            meta.live_data_servers(),
            data.len(),
            if meta.in_safe_mode() { " and the metadata server is still in safe mode" } else { "" }
        )
    })?
}

fn announce(args: &Args, rpc: SocketAddr, http: Option<SocketAddr>, login: Option<&str>) {
    println!("ready hdfs://{rpc}");
    println!("  {} data servers; everything is kept in {}", args.data_servers, args.dir.display());
    println!("  try: clover fs --fs hdfs://{rpc} -ls -R /");
    println!("       hdfs dfs -fs hdfs://{rpc} -put FILE /");
    println!("       clover client-config DIR --target hdfs://{rpc}");
    if let Some(http) = http {
        println!("       curl http://{http}/health http://{http}/metrics");
        println!("       curl 'http://{http}/webhdfs/v1/?op=LISTSTATUS'");
    }
    if let Some(login) = login {
        println!("  web console, signed in once with this address:");
        println!("       {login}");
    }
    println!("  ^C stops it");
}
