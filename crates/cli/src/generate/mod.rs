//! `clover generate`: what monitoring systems and man read, as it fits this release.

mod alerts;
mod dashboard;
mod man;
mod prometheus;
#[cfg(test)]
mod tests;

use crate::{admin::servers::Servers, runtime, target::Target};
use std::{path::PathBuf, process::ExitCode};

/// Write what other programs read, as it fits this release: for monitoring systems, and for man.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Rules for Prometheus: which numbers a person must be told of.
    Alerts(Alerts),
    /// A dashboard for Grafana, which asks a Prometheus.
    Dashboard,
    /// The configuration of a Prometheus that reads all servers of the cluster.
    PrometheusConfig(PrometheusConfig),
    /// Manual pages of all commands, for man.
    Man(ManPages),
}

#[derive(Debug, clap::Args)]
struct Alerts {
    /// The number of groups that hold the namespace together. With several, each is judged for itself, by the label metadata_group that
    /// `clover generate prometheus-config` gives their servers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    groups: u32,
}

#[derive(Debug, clap::Args)]
struct ManPages {
    /// The directory for the pages, as man reads them: one file for each command. It is made if it is not there.
    directory: PathBuf,
}

#[derive(Debug, clap::Args)]
struct PrometheusConfig {
    #[command(flatten)]
    target: Target,
    /// The HTTP address of a metadata server, as meta-1:9870. Where none is named, the cluster is asked for all its servers.
    #[arg(long, value_name = "HOST:PORT")]
    meta: Vec<String>,
    /// The HTTP address of a data server, as data-1:9864.
    #[arg(long, value_name = "HOST:PORT", requires = "meta")]
    data: Vec<String>,
    /// The file with the rules of `clover generate alerts`.
    #[arg(long, value_name = "FILE", default_value = "clover-rules.yml")]
    rules: String,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Alerts(args) => print!("{}", alerts::text(args.groups)),
        Command::Dashboard => println!("{}", serde_json::to_string_pretty(&dashboard::json())?),
        Command::Man(args) => {
            let count = man::write(&args.directory)?;
            println!("{count} pages in {}", args.directory.display());
        }
        Command::PrometheusConfig(args) if args.meta.is_empty() => {
            let servers = Servers::find(&args.target)?;
            return runtime::block_on(async move {
                let targets = prometheus::Targets::of(&servers).await?;
                print!("{}", prometheus::text(&targets, &args.rules));
                Ok(ExitCode::SUCCESS)
            });
        }
        Command::PrometheusConfig(args) => {
            let targets = prometheus::Targets { meta: [(1, args.meta)].into(), data: args.data };
            print!("{}", prometheus::text(&targets, &args.rules));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The first line of a generated file.
fn heading(what: &str) -> String {
    format!(
        "# {what}, for Clover {}. `clover generate` of another release writes what fits that one.\n",
        env!("CARGO_PKG_VERSION")
    )
}
