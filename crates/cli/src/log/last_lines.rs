//! The last lines of the log, kept in a bounded part of the memory.

use std::{
    collections::VecDeque,
    fmt::{self, Write},
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Layer};
use web::{LogLine, LogSource, log_levels::Level};

/// So many lines are kept.
const LINES_MAX: usize = 4_096;
/// All lines that are kept have so many bytes together at most.
const BYTES_MAX: usize = 1 << 20;
/// A longer line is cut: it may have a path of 32 KiB.
const LINE_BYTES_MAX: usize = 4 << 10;
/// What a line takes beside its text and the name of its log.
const LINE_BYTES: usize = size_of::<LogLine>();

/// The lines, of which all clones share one store. The oldest ones make room for further ones.
#[derive(Clone, Default)]
pub struct LastLines {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Arc<LogLine>>,
    bytes: usize,
}

impl Kept {
    fn push(&mut self, line: LogLine) {
        self.bytes += size(&line);
        self.lines.push_back(Arc::new(line));
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= size(&oldest);
        }
    }
}

fn size(line: &LogLine) -> usize {
    LINE_BYTES + line.log.len() + line.text.len()
}

impl LastLines {
    pub fn source(&self) -> LogSource {
        let kept = self.kept.clone();
        Arc::new(move || {
            let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.lines.iter().cloned().collect()
        })
    }
}

impl<S: Subscriber> Layer<S> for LastLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let about = event.metadata();
        let line = LogLine {
            time_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            level: level(*about.level()),
            log: text.log.unwrap_or_else(|| about.target().to_owned()),
            text: text.message + &text.fields,
        };
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

fn level(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

/// The text of a line: the message, and behind it the fields with their values. No part of this program opens spans, so there are none to tell.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
    /// The name of the log for lines of libraries that write to another kind of log.
    log: Option<String>,
}

impl Text {
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let room = LINE_BYTES_MAX.saturating_sub(self.message.len() + self.fields.len());
        let (into, begin) = match field.name() {
            "message" => (&mut self.message, String::new()),
            "log.target" => (self.log.insert(String::new()), String::new()),
            name if name.starts_with("log.") => return,
            name => (&mut self.fields, format!(" {}=", name.trim_start_matches("r#"))),
        };
        // It fails when there is no more room, and has written then what there was room for.
        let _ = Bounded { into, room }.write_fmt(format_args!("{begin}{value}"));
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" | "log.target" => self.put(field, format_args!("{value}")),
            _ => self.put(field, format_args!("{value:?}")),
        }
    }
}

/// A text that takes so many further bytes, and the rest of a letter.
struct Bounded<'a> {
    into: &'a mut String,
    room: usize,
}

impl Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() <= self.room {
            self.into.push_str(text);
            self.room -= text.len();
            return Ok(());
        }
        self.into.push_str(&text[..text.ceil_char_boundary(self.room)]);
        self.into.push('…');
        self.room = 0;
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::{EnvFilter, layer::SubscriberExt};

    /// Runs `write`, and returns the lines of its log that were kept.
    fn lines(write: impl FnOnce()) -> Vec<Arc<LogLine>> {
        let kept = LastLines::default();
        let filtered =
            tracing_subscriber::fmt().with_env_filter(EnvFilter::new("info")).with_writer(std::io::sink);
        tracing::subscriber::with_default(filtered.finish().with(kept.clone()), write);
        kept.source()()
    }

    #[test]
    fn a_line_has_its_message_and_its_fields_and_the_filter_counts() {
        let lines = lines(|| {
            tracing::warn!(target: "metad::member", path = "/a b", count = 3, error = %"gone", "not {}", "so");
            tracing::debug!("of no interest");
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((line.level, &*line.log), (Level::Warn, "metad::member"));
        assert_eq!(line.text, "not so path=\"/a b\" count=3 error=gone");
        assert!(line.time_ms > 1_600_000_000_000, "{line:?}");
    }

    #[test]
    fn a_long_line_is_cut_between_letters() {
        let lines =
            lines(|| tracing::info!(path = %"ä".repeat(LINE_BYTES_MAX), other = 1, "{}", "x".repeat(100)));
        let text = &lines[0].text;
        assert!(text.ends_with("ä…") || text.ends_with("……"), "{}", &text[text.len() - 20..]);
        assert!(text.len() < LINE_BYTES_MAX + 20, "{}", text.len());
    }

    #[test]
    fn old_lines_make_room_for_new_ones() {
        let many = lines(|| (0..LINES_MAX + 10).for_each(|number| tracing::info!("{number}")));
        assert_eq!((many.len(), &*many[0].text), (LINES_MAX, "10"));
        let long = lines(|| (0..400).for_each(|_| tracing::info!("{}", "x".repeat(LINE_BYTES_MAX))));
        let bytes: usize = long.iter().map(|line| size(line)).sum();
        assert!(bytes <= BYTES_MAX && bytes > BYTES_MAX - 2 * LINE_BYTES_MAX, "{bytes}");
    }
}
