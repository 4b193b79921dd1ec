//! `clover doctor`: whether this machine and the cluster are as servers want them, and an archive for a helper.

mod bundle;
mod check;
mod cluster;
mod hide;
mod machine;
mod page;
mod places;

use crate::{admin::servers::Servers, runtime, status, target::Target};
use check::Check;
use places::Places;
use std::{path::PathBuf, process::ExitCode};

/// Check this machine and the cluster: what is required, what was found, and what to do about it. The exit code is 1 where a check failed.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// The file of a server on this machine: its directories, ports and ZooKeeper are checked.
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write an archive (tar.gz) with the states, settings without secrets, logs, metrics and beans of the cluster.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Take the names of hosts, users and files out of the archive, and addresses.
    #[arg(long, requires = "bundle")]
    hide_names: bool,
    /// A log that goes into the archive; those of systemd's services named clover* do anyway.
    #[arg(long, value_name = "FILE", requires = "bundle")]
    log_file: Vec<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let servers = Servers::find(&args.target)?;
    let places: Vec<Places> = args.config.iter().map(|file| Places::of(file)).collect::<Result<_, _>>()?;
    runtime::block_on(async move {
        let local = tokio::task::spawn_blocking(move || local(&places));
        let seen = cluster::look(&servers).await;
        let mut checks = local.await?;
        checks.extend(seen.checks.iter().cloned());
        match args.json {
            true => println!("{:#}", check::as_json(&checks)),
            false => print!("{}", check::text(&checks)),
        }
        if let Some(path) = &args.bundle {
            let wanted = bundle::Wanted {
                path,
                is_hiding: args.hide_names,
                settings: &args.config,
                logs: &args.log_file,
                users: vec![servers.user().to_owned()],
                hosts: servers.addresses().to_vec(),
            };
            let status = status::as_json(&seen.facts, &seen.judged);
            let count = bundle::write(wanted, &checks, &seen, &status).await?;
            eprintln!("{} has {count} files; look into it before you give it away.", path.display());
        }
        Ok(if check::has_failed(&checks) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    })
}

/// The checks of this machine that need no server.
fn local(places: &[Places]) -> Vec<Check> {
    let mut checks = machine::checks();
    checks.extend(places.iter().flat_map(Places::checks));
    checks
}
