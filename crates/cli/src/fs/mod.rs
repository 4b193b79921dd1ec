//! Hadoop's file-system shell: the same commands, flags, output and exit codes. One file a command.
//!
//! Start with [`shell::Shell`], which all commands share, and [`item::Item`], which they work on.

mod append_to_file;
mod cat;
mod checksum;
mod chmod;
mod chown;
mod complete_path;
mod concat;
mod count;
mod cp;
mod destination;
mod du;
mod expunge;
mod failure;
mod find;
pub mod format;
mod get;
mod getfacl;
mod getfattr;
mod getmerge;
mod glob;
mod item;
mod json;
mod local;
mod local_file;
mod ls;
mod mkdir;
mod mv;
mod path;
mod put;
mod rm;
mod setfacl;
mod setfattr;
mod setrep;
mod shell;
mod snapshot;
pub mod spelling;
mod stat;
mod test;
mod text;
mod touch;
mod transfer;
mod truncate;
pub mod usage;
mod walk;

use crate::{exit_code, runtime, target::Target};
use anyhow::Context;
pub use failure::{Failure, Outcome};
pub use item::Item;
pub use shell::Shell;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Print one JSON object a line where a command prints facts.
    #[arg(long, global = true, help_heading = crate::EVERYWHERE)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Ls(ls::Args),
    Mkdir(mkdir::Args),
    #[command(visible_alias = "copyFromLocal")]
    Put(put::Args),
    #[command(visible_alias = "copyToLocal")]
    Get(get::Args),
    /// Copy files of this machine into the file system, then delete them here.
    #[command(name = "moveFromLocal")]
    MoveFromLocal(put::Args),
    /// Copy files to this machine, then delete them in the file system.
    #[command(name = "moveToLocal")]
    MoveToLocal(get::Args),
    #[command(name = "appendToFile")]
    AppendToFile(append_to_file::Args),
    Getmerge(getmerge::Args),
    Truncate(truncate::Args),
    Concat(concat::Args),
    Cat(cat::Cat),
    /// Print files as text: decompress gzip, bzip2, zstd, lz4, snappy and zlib, and show the rows of sequence files.
    Text(cat::Cat),
    Head(cat::Head),
    Tail(cat::Tail),
    Rm(rm::Rm),
    Rmdir(rm::Rmdir),
    Expunge(expunge::Expunge),
    Mv(mv::Args),
    Cp(cp::Args),
    Du(du::Du),
    Df(du::Df),
    Stat(stat::Args),
    Touchz(touch::Touchz),
    Touch(touch::Touch),
    Chmod(chmod::Args),
    Chown(chown::Chown),
    Chgrp(chown::Chgrp),
    Setrep(setrep::Args),
    Getfacl(getfacl::Args),
    Setfacl(setfacl::Args),
    Getfattr(getfattr::Args),
    Setfattr(setfattr::Args),
    Count(count::Args),
    Find(find::Args),
    Test(test::Args),
    Checksum(checksum::Args),
    #[command(name = "complete-path", hide = true)]
    CompletePath(complete_path::Args),
    #[command(name = "createSnapshot")]
    CreateSnapshot(snapshot::Create),
    #[command(name = "deleteSnapshot")]
    DeleteSnapshot(snapshot::Delete),
    #[command(name = "renameSnapshot")]
    RenameSnapshot(snapshot::Rename),
}

impl Command {
    /// The name that complaints begin with.
    fn name(&self) -> &'static str {
        match self {
            Self::Ls(_) => "ls",
            Self::Mkdir(_) => "mkdir",
            Self::Put(_) => "put",
            Self::Get(_) => "get",
            Self::MoveFromLocal(_) => "moveFromLocal",
            Self::MoveToLocal(_) => "moveToLocal",
            Self::AppendToFile(_) => "appendToFile",
            Self::Getmerge(_) => "getmerge",
            Self::Truncate(_) => "truncate",
            Self::Concat(_) => "concat",
            Self::Cat(_) => "cat",
            Self::Text(_) => "text",
            Self::Head(_) => "head",
            Self::Tail(_) => "tail",
            Self::Rm(_) => "rm",
            Self::Rmdir(_) => "rmdir",
            Self::Expunge(_) => "expunge",
            Self::Mv(_) => "mv",
            Self::Cp(_) => "cp",
            Self::Du(_) => "du",
            Self::Df(_) => "df",
            Self::Stat(_) => "stat",
            Self::Touchz(_) => "touchz",
            Self::Touch(_) => "touch",
            Self::Chmod(_) => "chmod",
            Self::Chown(_) => "chown",
            Self::Chgrp(_) => "chgrp",
            Self::Setrep(_) => "setrep",
            Self::Getfacl(_) => "getfacl",
            Self::Setfacl(_) => "setfacl",
            Self::Getfattr(_) => "getfattr",
            Self::Setfattr(_) => "setfattr",
            Self::Count(_) => "count",
            Self::Find(_) => "find",
            Self::Test(_) => "test",
            Self::Checksum(_) => "checksum",
            Self::CompletePath(_) => "complete-path",
            Self::CreateSnapshot(_) => "createSnapshot",
            Self::DeleteSnapshot(_) => "deleteSnapshot",
            Self::RenameSnapshot(_) => "renameSnapshot",
        }
    }

    async fn run(self, shell: &mut Shell) -> Outcome {
        match self {
            Self::Ls(args) => ls::run(shell, args).await,
            Self::Mkdir(args) => mkdir::run(shell, args).await,
            Self::Put(args) => put::put(shell, args).await,
            Self::Get(args) => get::get(shell, args).await,
            Self::MoveFromLocal(args) => put::move_from_local(shell, args).await,
            Self::MoveToLocal(args) => get::move_to_local(shell, args).await,
            Self::AppendToFile(args) => append_to_file::run(shell, args).await,
            Self::Getmerge(args) => getmerge::run(shell, args).await,
            Self::Truncate(args) => truncate::run(shell, args).await,
            Self::Concat(args) => concat::run(shell, args).await,
            Self::Cat(args) => cat::cat(shell, args).await,
            Self::Text(args) => text::text(shell, args).await,
            Self::Head(args) => cat::head(shell, args).await,
            Self::Tail(args) => cat::tail(shell, args).await,
            Self::Rm(args) => rm::rm(shell, args).await,
            Self::Rmdir(args) => rm::rmdir(shell, args).await,
            Self::Expunge(args) => expunge::expunge(shell, args).await,
            Self::Mv(args) => mv::run(shell, args).await,
            Self::Cp(args) => cp::run(shell, args).await,
            Self::Du(args) => du::du(shell, args).await,
            Self::Df(args) => du::df(shell, args).await,
            Self::Stat(args) => stat::run(shell, args).await,
            Self::Touchz(args) => touch::touchz(shell, args).await,
            Self::Touch(args) => touch::touch(shell, args).await,
            Self::Chmod(args) => chmod::run(shell, args).await,
            Self::Chown(args) => chown::chown(shell, args).await,
            Self::Chgrp(args) => chown::chgrp(shell, args).await,
            Self::Setrep(args) => setrep::run(shell, args).await,
            Self::Getfacl(args) => getfacl::run(shell, args).await,
            Self::Setfacl(args) => setfacl::run(shell, args).await,
            Self::Getfattr(args) => getfattr::run(shell, args).await,
            Self::Setfattr(args) => setfattr::run(shell, args).await,
            Self::Count(args) => count::run(shell, args).await,
            Self::Find(args) => find::run(shell, args).await,
            Self::Test(args) => test::run(shell, args).await,
            Self::Checksum(args) => checksum::run(shell, args).await,
            Self::CompletePath(args) => complete_path::run(shell, args).await,
            Self::CreateSnapshot(args) => snapshot::create(shell, args).await,
            Self::DeleteSnapshot(args) => snapshot::delete(shell, args).await,
            Self::RenameSnapshot(args) => snapshot::rename(shell, args).await,
        }
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let command = args.command;
    run_as(&args.target, command.name(), args.json, async move |shell: &mut Shell| command.run(shell).await)
}

/// Runs a command under the shell's rules for paths, complaints and exit codes.
pub fn run_as(
    target: &Target,
    name: &'static str,
    is_json: bool,
    command: impl AsyncFnOnce(&mut Shell) -> Outcome,
) -> anyhow::Result<ExitCode> {
    let config = target.configuration()?;
    let uri = target.uri(&config);
    let mut shell = Shell::new(name, config, uri, is_json);
    runtime::block_on(async move {
        let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => {
                transfer::clean_up().await;
                eprintln!("Interrupted");
                Ok(ExitCode::from(exit_code::INTERRUPTED))
            }
            _ = terminate.recv() => {
                transfer::clean_up().await;
                eprintln!("Terminated");
                Ok(ExitCode::from(exit_code::TERMINATED))
            }
            outcome = command(&mut shell) => {
                shell.check(outcome);
                Ok(shell.finish())
            }
        }
    })
}
