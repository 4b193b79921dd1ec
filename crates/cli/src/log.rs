//! The log of the program: lines to stderr, filtered by a flag or an environment variable.

use anyhow::Context;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The environment variable that says what `--log` says.
const VARIABLE: &str = "CLOVER_LOG";

/// Starts logging with the filter of the flag, else of the environment, else `default`.
///
/// # Errors
/// The text is no filter, or logging was started before.
pub fn start(flag: Option<&str>, default: &str) -> anyhow::Result<()> {
    let (text, source) = match (flag, std::env::var(VARIABLE)) {
        (Some(text), _) => (text.to_owned(), "--log"),
        (None, Ok(text)) if !text.is_empty() => (text, VARIABLE),
        _ => (default.to_owned(), "the default filter"),
    };
    let filter =
        EnvFilter::try_new(&text).with_context(|| format!("{source}: `{text}` is not a log filter"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init()
        .map_err(|error| anyhow::anyhow!("starting the log: {error}"))
}
