//! What is said when a command line is not understood.

use std::{ffi::OsString, process::ExitCode};

/// Prints clap's complaint (or the help that was asked for) and says how the process ends.
pub fn refuse(_arguments: &[OsString], error: clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(error.exit_code() as u8)
}
