//! `clover`: every part of the file system in one binary. A library, so that `clover-bench` finds a cluster and talks to
//! its servers as `clover` does.
//!
//! This is the one place where parts are chosen and wired. A subcommand is one file or directory of this crate,
//! with an `Args` that clap parses and a `run` that returns the process's exit code; what is decided here and
//! not in a library below is only how to talk to a person. Start with [`Command`].

pub mod admin;
mod balancer;
mod bench;
pub mod client_config;
mod completions;
mod config;
mod console;
mod data;
mod demo;
mod doctor;
mod exit_code;
mod fs;
mod fsck;
mod generate;
mod help;
mod http_hosts;
mod inspect;
mod last_words;
pub mod log;
mod login_address;
mod meta;
mod pages;
pub mod runtime;
mod status;
mod supervisor;
pub mod table;
pub mod target;
pub mod user;
mod webhdfs;

use clap::{FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Under which options stand in `--help` that many commands have: below their own.
pub const EVERYWHERE: &str = "Common options";

/// A distributed file system that every Hadoop program already speaks to.
#[derive(Debug, Parser)]
#[command(name = "clover", version, max_term_width = 110)]
struct Cli {
    /// What to log, as `info`, `debug` or `rpc=debug,warn`; the environment variable CLOVER_LOG says the same.
    #[arg(long, global = true, value_name = "FILTER", help_heading = EVERYWHERE)]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a whole cluster in this process, on loopback.
    Demo(demo::Args),
    /// Run a metadata server, or prepare its directory.
    Meta(meta::Args),
    /// Run a data server.
    Data(data::Args),
    /// Work with files: ls, put, get, rm and the rest of Hadoop's file-system shell.
    Fs(fs::Args),
    /// Look at files and their blocks: what is lost, and what has too few replicas.
    Fsck(fsck::Args),
    /// Say whether the cluster is well, and what is wrong if it is not.
    Status(status::Args),
    /// Check this machine and the cluster, and pack what a helper needs to see.
    Doctor(doctor::Args),
    /// Look at the metadata servers, and give them orders.
    Admin(admin::Args),
    /// Move replicas from fuller data servers to emptier ones.
    Balancer(balancer::Args),
    /// Write core-site.xml and hdfs-site.xml for stock Hadoop clients.
    ClientConfig(client_config::Args),
    /// Print every configuration key with its default and what it means.
    Config(config::Args),
    /// Write rules and dashboards for monitoring systems, and manual pages.
    Generate(generate::Args),
    /// Print shell completions.
    Completions(completions::Args),
    /// Measure a cluster or a part of this program.
    Bench(bench::Args),
    /// Look into files that servers have written.
    Inspect(inspect::Args),
}

impl Command {
    /// Servers tell what they do; commands that people type tell only what is wrong.
    fn log_by_default(&self) -> &'static str {
        match self {
            Self::Meta(args) if !args.is_server() => "warn",
            // The ZooKeeper client tells of every step; what matters of it is told by ours.
            Self::Meta(_) | Self::Data(_) => "info,zookeeper_client=warn",
            _ => "warn",
        }
    }

    /// Whether others rely on this process for as long as it runs.
    fn is_server(&self) -> bool {
        match self {
            Self::Meta(args) => args.is_server(),
            Self::Data(_) | Self::Demo(_) => true,
            _ => false,
        }
    }

    /// `log` is the filter that was given.
    fn run(self, log: Option<&str>) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(args) => demo::run(args),
            Self::Meta(args) => meta::run(args),
            Self::Data(args) => data::run(args),
            Self::Fs(args) => fs::run(args),
            Self::Fsck(args) => fsck::run(args),
            Self::Status(args) => status::run(args),
            Self::Doctor(args) => doctor::run(args),
            Self::Admin(args) => admin::run(args),
            Self::Balancer(args) => balancer::run(args),
            Self::ClientConfig(args) => client_config::run(args),
            Self::Config(args) => config::run(args),
            Self::Generate(args) => generate::run(args),
            Self::Completions(args) => completions::run(args),
            Self::Bench(args) => bench::run(args, log),
            Self::Inspect(args) => inspect::run(args),
        }
    }
}

/// Carries out this process's command line.
pub fn main() -> ExitCode {
    let arguments = fs::spelling::from_hadoop(std::env::args_os().collect());
    let mut command = help::command();
    let parsed = command.try_get_matches_from_mut(&arguments);
    let cli = match parsed
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command)))
    {
        Ok(cli) => cli,
        Err(error) => return fs::usage::refuse(&arguments, error),
    };
    if let Err(error) = log::start(cli.log.as_deref(), cli.command.log_by_default()) {
        eprintln!("clover: {error:#}");
        return ExitCode::from(exit_code::USAGE);
    }
    end_quietly_when_nobody_reads();
    if cli.command.is_server() {
        last_words::end_on_panic();
    }
    match cli.command.run(cli.log.as_deref()) {
        Ok(code) => code,
        Err(error) => {
            let remedy = error.downcast_ref().and_then(target::remedy);
            eprintln!("clover: {error:#}{}", remedy.map(|remedy| format!(". {remedy}")).unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

/// `println!` panics when its reader is gone, as in `clover meta format | true`. That is no fault of this program, and
/// nothing to show a stack for.
fn end_quietly_when_nobody_reads() {
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or_default();
        // The standard library's words, and those of the writer of completions.
        let is_output =
            ["failed printing to stdout", "failed to write completion"].iter().any(|w| text.starts_with(w));
        if is_output && text.contains("Broken pipe") {
            std::process::exit(exit_code::NOBODY_READS.into());
        }
        show(panic);
    }));
}
