//! Runs or prepares a metadata server.

use crate::{
    config::{self, loopback, settings::Settings},
    runtime, user,
};
use anyhow::Context;
use env::Env;
use metad::MetaServer;
use std::{path::PathBuf, process::ExitCode};

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
    /// Make a new cluster in an empty directory. Never done implicitly.
    Format(Format),
    /// Use a store again that stopped because its disk had failed. Check the disk first.
    AcceptDisk(Serve),
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
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,
}

impl Serve {
    fn settings(&self) -> anyhow::Result<Settings> {
        let mut settings = Settings::defaults(&[config::meta::KEYS]);
        if let Some(file) = &self.config {
            settings.read_file(file)?;
        }
        for assignment in &self.set {
            settings.set(assignment)?;
        }
        Ok(settings)
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Some(Command::Format(format)) => make(format),
        Some(Command::AcceptDisk(args)) => accept_disk(&args),
        None => serve(&args.serve),
    }
}

fn make(args: Format) -> anyhow::Result<ExitCode> {
    let config = config::meta::config(&args.serve.settings()?, &user::of_this_process()?)?;
    let address = config.rpc_address.ip();
    let (env, directory) = (Env::production(), &config.name_directory);
    let cluster = metad::format(&env, directory, args.cluster_id, address, &config.group)?;
    println!("Made cluster {} in {}.", cluster.cluster_id, config.name_directory.display());
    println!("Block pool:  {}", cluster.block_pool);
    println!(
        "Next: start it with `clover meta --config FILE`, then data servers with `clover data --config FILE`."
    );
    Ok(ExitCode::SUCCESS)
}

fn accept_disk(args: &Serve) -> anyhow::Result<ExitCode> {
    let config = config::meta::config(&args.settings()?, &user::of_this_process()?)?;
    let store = metad::format::Layout::of(&config.name_directory).store;
    match journal::accept_fault(&Env::production(), &store)? {
        Some(note) => {
            println!("Accepted {}, which was not trusted since: {note}", store.display());
            println!("Next: start the server. It writes the end of its journal anew before it serves.");
        }
        None => println!("{} is trusted; there is nothing to accept.", store.display()),
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(args: &Serve) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    let config = config::meta::config(&settings, &user::of_this_process()?)?;
    loopback::warn(&settings);
    runtime::block_on(async move {
        let server =
            MetaServer::start(Env::production(), config).await.context("starting the metadata server")?;
        println!("ready hdfs://{}", server.rpc_address());
        tokio::select! {
            biased;
            reason = server.failed() => {
                // Nothing more can be promised: the process ends, and recovery starts from the disk.
                anyhow::bail!("the metadata server has failed: {reason}");
            }
            signal = runtime::stop_signal() => signal?,
        }
        server.shutdown().await;
        Ok(ExitCode::SUCCESS)
    })
}
