//! The messages about a command line that is not understood.

use crate::exit_code;
use clap::{CommandFactory, error::ErrorKind};
use std::{ffi::OsString, process::ExitCode};

/// Prints clap's complaint (or the help that was asked for) and says how the process ends.
pub fn refuse(arguments: &[OsString], error: clap::Error) -> ExitCode {
    let is_fs = arguments.iter().skip(1).any(|word| word == "fs");
    // Scripts that come from Hadoop expect its exit code.
    let code = match (error.kind(), is_fs) {
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => 0,
        (_, true) => exit_code::USAGE_OF_SHELL,
        (_, false) => error.exit_code() as u8,
    };
    let _ = error.print();
    ExitCode::from(code)
}

/// Prints how a command of the shell is used.
pub fn of_command(name: &str) {
    let mut root = crate::Cli::command();
    root.build();
    let command = root.find_subcommand_mut("fs").and_then(|fs| fs.find_subcommand_mut(name));
    if let Some(command) = command {
        eprintln!("{}", command.render_usage());
    }
}
