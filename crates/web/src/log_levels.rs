//! `/logLevel`: shows and sets how much of a log is written, while the server runs. `hadoop daemonlog` reads the answers.

use crate::{
    Peer,
    origin::Origins,
    parameters::Parameters,
    refusal::{Refusal, Result},
    settings::escaped,
};
use axum::{
    Extension, Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::IntoResponse,
    routing::get,
};
use std::{fmt, str::FromStr, sync::Arc};

/// The longest name of a log.
const NAME_BYTES_MAX: usize = 200;

/// The lines of the page that `hadoop daemonlog` prints begin with this.
const MARK: &str = "<!-- OUTPUT -->";

/// How much of a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "OFF",
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        })
    }
}

/// A word that is no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLevel;

impl FromStr for Level {
    type Err = NoLevel;

    /// The words of Java's logs, in any case. Of these `FATAL` and `ALL` have no level of their own here.
    fn from_str(word: &str) -> std::result::Result<Self, NoLevel> {
        Ok(match word.to_ascii_uppercase().as_str() {
            "OFF" => Self::Off,
            "FATAL" | "ERROR" => Self::Error,
            "WARN" => Self::Warn,
            "INFO" => Self::Info,
            "DEBUG" => Self::Debug,
            "TRACE" | "ALL" => Self::Trace,
            _ => return Err(NoLevel),
        })
    }
}

/// The levels of a program's logs.
pub trait LogLevels: Send + Sync {
    /// The level that counts for a log of this name.
    fn level(&self, log: &str) -> Level;

    /// Sets the level of a log and of those below it.
    ///
    /// # Errors
    /// The reason why it is not set.
    fn set(&self, log: &str, level: Level) -> std::result::Result<(), String>;
}

#[derive(Clone)]
struct Shared {
    levels: Arc<dyn LogLevels>,
    origins: Arc<Origins>,
}

/// The page `/logLevel`. A level is changed for everyone who reaches this port, as in a Hadoop that does not authenticate its clients, but
/// not for a page of another origin.
pub fn log_level(levels: Arc<dyn LogLevels>, origins: Origins) -> Router {
    let shared = Shared { levels, origins: Arc::new(origins) };
    // Java's client asks first how to prove who it is, and wants a 200 for that.
    let options = || async { (StatusCode::OK, [(header::ALLOW, "GET, HEAD, OPTIONS")]) };
    Router::new().route("/logLevel", get(show).options(options)).with_state(shared)
}

async fn show(
    State(shared): State<Shared>,
    Extension(Peer(from)): Extension<Peer>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<impl IntoResponse> {
    let asked = Parameters::of(&uri)?;
    let lines = match asked.text("log") {
        Some(log) => {
            check_name(log)?;
            let level = asked.text("level");
            if level.is_some() {
                let checked = shared.origins.check_change_by_get(&headers);
                checked.map_err(|error| Refusal::forbidden(error.to_string()))?;
            }
            results(&*shared.levels, log, level, &from.to_string())
        }
        None => Vec::new(),
    };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "SAMEORIGIN"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; form-action 'self'"),
    ];
    Ok((headers, page(&lines)))
}

/// The name of a log goes into a filter, so it has no signs that mean something there.
fn check_name(log: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_:.-$".contains(&byte);
    match log.len() <= NAME_BYTES_MAX && log.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(Refusal::bad(format!(
            "the name of a log has {NAME_BYTES_MAX} bytes at most: letters, digits, `_`, `:`, `.`, `-` and `$`"
        ))),
    }
}

/// Carries out what is asked for; the words before the values are Hadoop's, which scripts look for.
fn results(levels: &dyn LogLevels, log: &str, level: Option<&str>, from: &str) -> Vec<String> {
    let mut lines =
        vec![format!("Submitted Class Name: <b>{log}</b>"), "Log Class: <b>tracing</b>".to_owned()];
    if let Some(word) = level {
        lines.push(format!("Submitted Level: <b>{}</b>", escaped(word)));
        lines.push(match word.parse() {
            Err(NoLevel) => format!("Bad Level : <b>{}</b>", escaped(word)),
            Ok(level) => {
                // Said before, for the new level may hide it.
                tracing::warn!(log, %level, from, "a client sets the level of a log");
                match levels.set(log, level) {
                    Ok(()) => format!("Setting Level to {} ...", escaped(word)),
                    Err(reason) => format!("Not set: {}", escaped(&reason)),
                }
            }
        });
    }
    lines.push(format!("Effective Level: <b>{}</b>", levels.level(log)));
    lines
}

fn page(results: &[String]) -> String {
    let mut text =
        "<!DOCTYPE html>\n<html>\n<head>\n<title>Log Level</title>\n</head>\n<body>\n<h1>Log Level</h1>\n"
            .to_owned();
    if !results.is_empty() {
        text += "<h3>Results</h3>\n";
    }
    for line in results {
        text += &format!("{MARK}{line}<br />\n");
    }
    text + "<h3>Get / Set</h3>\n\
           <form>Log: <input type='text' size='50' name='log' /> <input type='submit' value='Get Log Level' /></form>\n\
           <form>Log: <input type='text' size='50' name='log' /> Level: <input type='text' name='level' /> \
           <input type='submit' value='Set Log Level' /></form>\n</body>\n</html>\n"
}

#[cfg(test)]
mod tests;
