//! Runs a data server.

use crate::{
    config::{self, loopback, settings::Settings},
    runtime,
    supervisor::{self, Look},
    user, webhdfs,
};
use anyhow::Context;
use datad::{DataConfig, DataServer};
use env::Env;
use std::{path::PathBuf, process::ExitCode};
use web::HealthSource;

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
    // The gateway ends with this server.
    let (_gateway, pages) = webhdfs::beside_data(&settings, &user, &env, &config)?;
    supervisor::starting();
    runtime::block_on(async move {
        let server = DataServer::start_with(env, config, pages).await.context("starting the data server")?;
        server
            .state()
            .reconfiguration
            .set_reload(Box::new(move || reload(&args).map_err(|error| format!("{error:#}"))));
        println!("serving blocks on {}", server.transfer_addr());
        supervisor::ready("registering");
        supervisor::keep_told(look_at(server.health()));
        tokio::select! {
            biased;
            reason = server.wait_ended() => {
                supervisor::stopping();
                anyhow::bail!("the data server has ended: {reason}")
            }
            signal = runtime::stop_signal() => signal?,
        }
        supervisor::stopping();
        tracing::info!("is asked to stop");
        server.shutdown().await;
        Ok(ExitCode::SUCCESS)
    })
}

/// A look that does not come back is what ends this server: its heartbeats need the same locks and disks. Metadata servers that
/// are away, and disks that have failed, are no such reason: a restart would help neither.
fn look_at(health: HealthSource) -> Look {
    let asked = health.clone();
    Look {
        verdict: Box::new(move || {
            asked();
            Ok(())
        }),
        state: Box::new(move || {
            let health = health();
            let detail = |name: &str| health.details.get(name).map_or("", String::as_str);
            let mut text = format!("{}; metadata servers: {}", health.state, detail("metadata_servers"));
            if let Some(failed) = health.details.get("failed_volumes") {
                text += &format!("; failed disks: {failed}");
            }
            text
        }),
    }
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
