//! The log of the program: lines to stderr, filtered by a flag or an environment variable; its levels, which can be changed while the
//! program runs; and its last lines, which stay in memory for the web console.

mod last_lines;

use anyhow::Context;
use last_lines::LastLines;
use std::{
    io::IsTerminal,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};
use web::{
    LogSource,
    log_levels::{Level, LogLevels},
};

/// The environment variable that says what `--log` says.
const VARIABLE: &str = "CLOVER_LOG";

/// The log of a process is one, and so are its levels.
static LEVELS: OnceLock<Arc<Levels>> = OnceLock::new();
static LAST_LINES: OnceLock<LastLines> = OnceLock::new();

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
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .with_filter_reloading();
    let handle = builder.reload_handle();
    let lines = LastLines::default();
    let all = builder.finish().with(lines.clone());
    all.try_init().map_err(|error| anyhow::anyhow!("starting the log: {error}"))?;
    let apply = move |filter| handle.reload(filter).map_err(|error| error.to_string());
    // Logging starts once, as was checked just now.
    let _ = LEVELS.set(Arc::new(Levels::new(text, Box::new(apply))));
    let _ = LAST_LINES.set(lines);
    Ok(())
}

/// The levels of the running log; `None` before it was started.
pub fn levels() -> Option<Arc<dyn LogLevels>> {
    LEVELS.get().map(|levels| levels.clone() as Arc<dyn LogLevels>)
}

/// The last lines of the log; `None` before it was started.
pub fn last_lines() -> Option<LogSource> {
    LAST_LINES.get().map(|lines| lines.source())
}

/// The log that stands for all others: its level counts where no other one is set.
const ROOT: &str = "root";
/// Levels of so many logs are set while the program runs.
const CHANGES_MAX: usize = 64;

/// Puts a filter in place of the one that counts.
type Apply = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

/// The filter as it was given, and the levels that were set since then.
struct Levels {
    given: String,
    /// The levels that were set, by log. The newest is the last.
    changes: Mutex<Vec<(String, Level)>>,
    apply: Apply,
}

impl Levels {
    fn new(given: String, apply: Apply) -> Self {
        Self { given, changes: Mutex::default(), apply }
    }
}

impl LogLevels for Levels {
    /// A log has the level of the longest name in the filter with which its own name begins.
    fn level(&self, log: &str) -> Level {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = changes.iter().map(|(name, level)| (&**name, *level));
        let given: Vec<_> = self.given.split(',').filter_map(directive).collect();
        if given.is_empty() && changes.is_empty() {
            // The filter's own word for an empty text.
            return Level::Error;
        }
        let all = given.into_iter().chain(changed);
        let mut best: Option<(usize, Level)> = None;
        for (name, level) in all {
            let name = if name == ROOT { "" } else { name };
            if log.starts_with(name) && best.is_none_or(|(length, _)| name.len() >= length) {
                best = Some((name.len(), level));
            }
        }
        best.map_or(Level::Off, |(_, level)| level)
    }

    fn set(&self, log: &str, level: Level) -> Result<(), String> {
        // The filter takes names of Java as well, and no line would ever match.
        if log.contains(['.', '$']) {
            return Err(no_log(log));
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = changes.clone();
        wanted.retain(|(name, _)| name != log);
        if wanted.len() >= CHANGES_MAX {
            return Err(format!(
                "the levels of {CHANGES_MAX} logs were set already; restart the server to forget them"
            ));
        }
        wanted.push((log.to_owned(), level));
        let changed = wanted.iter().map(|(name, level)| match &**name {
            ROOT => level.to_string(),
            name => format!("{name}={level}"),
        });
        let given = Some(self.given.clone()).filter(|given| !given.trim().is_empty());
        let text = given.into_iter().chain(changed).collect::<Vec<_>>().join(",");
        let filter = EnvFilter::try_new(text).map_err(|_| no_log(log))?;
        (self.apply)(filter)?;
        *changes = wanted;
        Ok(())
    }
}

fn no_log(log: &str) -> String {
    format!("{log} is the name of no log here; they have names like metad::member, and root stands for all")
}

/// The log and the level of a part of a filter. A part that looks at spans or fields counts for single lines only.
fn directive(part: &str) -> Option<(&str, Level)> {
    let part = part.trim();
    match part.split_once('=') {
        _ if part.is_empty() || part.contains(['[', '{', '"']) => None,
        Some((name, level)) => Some((name, level.parse().ok()?)),
        None => Some(part.parse().map_or((part, Level::Trace), |level| (ROOT, level))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels of a filter, and the filters that were put in its place.
    fn levels(given: &str) -> (Levels, Arc<Mutex<Vec<String>>>) {
        let applied: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = applied.clone();
        let apply = move |filter: EnvFilter| {
            seen.lock().unwrap().push(filter.to_string());
            Ok(())
        };
        (Levels::new(given.to_owned(), Box::new(apply)), applied)
    }

    #[test]
    fn the_longest_name_counts() {
        let (levels, _) = levels("info,zookeeper_client=warn, rpc ,metad::member[span]=trace");
        let told =
            ["metad", "zookeeper_client::session", "rpc::server", "a.b.C"].map(|log| levels.level(log));
        assert_eq!(told, [Level::Info, Level::Warn, Level::Trace, Level::Info]);
        assert_eq!(self::levels("metad=debug").0.level("datad"), Level::Off);
        assert_eq!(self::levels("").0.level("datad"), Level::Error);
    }

    #[test]
    fn a_level_that_is_set_counts_until_another_one_is() {
        let (levels, applied) = levels("info");
        levels.set("metad::member", Level::Debug).unwrap();
        assert_eq!(
            (levels.level("metad::member::driver"), levels.level("metad")),
            (Level::Debug, Level::Info)
        );
        levels.set("metad::member", Level::Off).unwrap();
        levels.set("root", Level::Warn).unwrap();
        assert_eq!((levels.level("metad::member"), levels.level("metad")), (Level::Off, Level::Warn));
        assert_eq!(levels.level("root"), Level::Warn);
        let applied = applied.lock().unwrap();
        assert_eq!(applied.len(), 3);
        let last = &applied[2];
        assert!(
            last.contains("metad::member=off") && last.contains("warn") && !last.contains("info"),
            "{last}"
        );
    }

    #[test]
    fn a_name_of_java_is_refused_and_so_is_one_too_many() {
        let (levels, applied) = levels("info");
        assert!(levels.set("org.apache.hadoop.hdfs.StateChange", Level::Debug).is_err());
        assert!(applied.lock().unwrap().is_empty());
        for number in 0..CHANGES_MAX {
            levels.set(&format!("log_{number}"), Level::Info).unwrap();
        }
        assert!(levels.set("one_more", Level::Info).is_err());
        levels.set("log_3", Level::Warn).unwrap();
    }
}
