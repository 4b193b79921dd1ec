//! Runs a data server.

use crate::{
    config::{self, loopback, settings::Settings},
    runtime, user, webhdfs,
};
use anyhow::Context;
use datad::{DataConfig, DataServer};
use env::Env;
use std::{path::PathBuf, process::ExitCode};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The TOML file with this server's settings; `clover config data` prints all keys.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override a key of the file, by our name or Hadoop's.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let settings = settings(&args)?;
    let user = user::of_this_process()?;
    let config = config::data::config(&settings, &user)?;
    loopback::warn(&settings);
    let env = Env::production();
    let gateway = webhdfs::beside_data(&settings, &user, &env, &config)?;
    runtime::block_on(async move {
        let pages = gateway.as_ref().map(gateway::Gateway::pages).unwrap_or_default();
        let server = DataServer::start_with(env, config, pages).await.context("starting the data server")?;
        server
            .state()
            .reconfiguration
            .set_reload(Box::new(move || reload(&args).map_err(|error| format!("{error:#}"))));
        println!("serving blocks on {}", server.transfer_addr());
        tokio::select! {
            biased;
            reason = server.wait_ended() => anyhow::bail!("the data server has ended: {reason}"),
            signal = runtime::stop_signal() => signal?,
        }
        tracing::info!("is asked to stop");
        server.shutdown().await;
        Ok(ExitCode::SUCCESS)
    })
}

/// The defaults, then the file as it is now, then what the command line sets.
fn settings(args: &Args) -> anyhow::Result<Settings> {
    let mut settings = Settings::defaults(config::DATA);
    if let Some(file) = &args.config {
        settings.read_file(file)?;
    }
    for assignment in &args.set {
        settings.set(assignment)?;
    }
    Ok(settings)
}

fn reload(args: &Args) -> anyhow::Result<DataConfig> {
    config::data::config(&settings(args)?, &user::of_this_process()?)
}
