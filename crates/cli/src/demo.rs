//! Runs a whole cluster in this process, on loopback.

use crate::{
    config::{self, settings::Settings},
    runtime, user,
};
use anyhow::Context;
use datad::DataServer;
use env::Env;
use metad::MetaServer;
use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where everything is kept; made if missing, used again if a demo made it.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    data_servers: u16,
    /// Where clients call; 0 takes any free port.
    #[arg(long, default_value_t = 8020, value_name = "PORT")]
    rpc_port: u16,
    /// Where /health and /metrics are; 0 takes any free port.
    #[arg(long, default_value_t = 9870, value_name = "PORT")]
    http_port: u16,
    /// Override any key of the metadata or data servers, by our name or Hadoop's.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// How long the data servers may take to report before something is wrong.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// What differs in a demo: everything is on one machine and starts together, so nobody waits for stragglers,
/// and a stopped data server is noticed while one watches.
const DEMO_SETTINGS: &[&str] = &[
    "safe_mode_extension_ms=0",
    "heartbeat_interval_ms=1s",
    "heartbeat_recheck_ms=10s",
    "transfer_retry_ms=30s",
];

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut settings = Settings::defaults(&[config::META, config::DATA].concat());
    for assignment in DEMO_SETTINGS.iter().copied().chain(args.set.iter().map(String::as_str)) {
        settings.set(assignment)?;
    }
    let user = user::of_this_process()?;
    runtime::block_on(serve(args, settings, user))
}

async fn serve(args: Args, mut settings: Settings, user: String) -> anyhow::Result<ExitCode> {
    let env = Env::production();
    let name_dir = args.dir.join("meta");
    settings.set(&format!("name_dir={}", name_dir.display()))?;
    settings.set(&format!("rpc_address=127.0.0.1:{}", args.rpc_port))?;
    settings.set(&format!("http_address=127.0.0.1:{}", args.http_port))?;
    for key in ["transfer_address", "ipc_address", "data_http_address"] {
        settings.set(&format!("{key}=127.0.0.1:0"))?;
    }
    let meta_config = config::meta::config(&settings, &user)?;
    if !name_dir.exists() {
        make(&args, &env, &meta_config)?;
    }
    let meta = MetaServer::start(env.clone(), meta_config).await.context("starting the metadata server")?;
    settings.set(&format!("metadata_servers={}", meta.rpc_address()))?;
    let mut data = Vec::new();
    for number in 1..=args.data_servers {
        data.push(start_data(&args, &mut settings, &env, &user, number).await?);
    }
    wait_until_ready(&meta, &data).await?;
    announce(&args, meta.rpc_address(), meta.http_address());

    tokio::select! {
        biased;
        reason = meta.failed() => anyhow::bail!("the metadata server has failed: {reason}"),
        signal = runtime::stop_signal() => signal?,
    }
    eprintln!("stopping");
    for server in data {
        server.shutdown().await;
    }
    meta.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

/// The first start in this directory.
fn make(args: &Args, env: &Env, config: &metad::MetaConfig) -> anyhow::Result<()> {
    if args.dir.exists() && std::fs::read_dir(&args.dir)?.next().is_some() {
        anyhow::bail!(
            "{} holds something, but not a demo cluster; name an empty or new directory",
            args.dir.display()
        );
    }
    let cluster = metad::format(env, &config.name_directory, None, config.rpc_address.ip(), &config.group)?;
    eprintln!("made cluster {} in {}", cluster.cluster_id, args.dir.display());
    Ok(())
}

async fn start_data(
    args: &Args,
    settings: &mut Settings,
    env: &Env,
    user: &str,
    number: u16,
) -> anyhow::Result<DataServer> {
    let directory = args.dir.join(format!("data-{number}"));
    settings.set(&format!("data_dirs={}", directory.display()))?;
    let config = config::data::config(settings, user)?;
    DataServer::start(env.clone(), config).await.with_context(|| format!("starting data server {number}"))
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

fn announce(args: &Args, rpc: SocketAddr, http: Option<SocketAddr>) {
    println!("ready hdfs://{rpc}");
    println!("  {} data servers; everything is kept in {}", args.data_servers, args.dir.display());
    println!("  try: clover fs --fs hdfs://{rpc} -ls -R /");
    println!("       hdfs dfs -fs hdfs://{rpc} -put FILE /");
    println!("       clover client-config DIR --target hdfs://{rpc}");
    if let Some(http) = http {
        println!("       curl http://{http}/health http://{http}/metrics");
    }
    println!("  ^C stops it");
}
