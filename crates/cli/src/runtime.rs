//! The tokio runtime that a subcommand runs on.

use anyhow::Context;
use std::{future::Future, process::ExitCode};

/// Runs `future` to its end on a runtime of its own, with every core.
///
/// # Errors
/// Threads cannot be started; and the error of `future`.
pub fn block_on(future: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime's threads")?;
    let outcome = runtime.block_on(future);
    // A task that still waits for a dead server must not keep the process.
    runtime.shutdown_background();
    outcome
}

/// Resolves when the process is asked to end: ^C, or SIGTERM.
///
/// # Errors
/// The system takes no handler for these signals.
pub async fn stop_signal() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("listening for SIGTERM")?;
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => interrupt.context("listening for ^C"),
        _ = terminate.recv() => Ok(()),
    }
}
