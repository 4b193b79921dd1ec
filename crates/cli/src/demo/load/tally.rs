//! How many operations of the load were done, and how long a client had to wait.

use std::{
    collections::BTreeMap,
    fmt::Display,
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

#[derive(Default)]
pub struct Tally {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Since the last line.
    now: Span,
    /// Until the last line.
    before: Span,
    /// What has begun and not ended, by the number of its beginning.
    under_way: BTreeMap<u64, (&'static str, Instant)>,
    begun: u64,
}

#[derive(Clone, Default)]
struct Span {
    done: u64,
    failed: u64,
    /// The longest operation, and its kind.
    worst: Option<(Duration, &'static str)>,
    /// What the first operation said that has failed.
    error: Option<String>,
}

impl Tally {
    /// Awaits an operation and counts it; `None` where it has failed.
    pub async fn time<T, E: Display>(
        &self,
        kind: &'static str,
        operation: impl Future<Output = Result<T, E>>,
    ) -> Option<T> {
        let began = Instant::now();
        let number = {
            let mut counts = self.counts();
            counts.begun += 1;
            let number = counts.begun;
            counts.under_way.insert(number, (kind, began));
            number
        };
        let outcome = operation.await;
        let mut counts = self.counts();
        counts.under_way.remove(&number);
        counts.now.waited(began.elapsed(), kind);
        match outcome {
            Ok(value) => {
                counts.now.done += 1;
                Some(value)
            }
            Err(error) => {
                counts.now.failed += 1;
                counts.now.error.get_or_insert_with(|| format!("{kind}: {error}"));
                None
            }
        }
    }

    /// What has happened since the last line, which was `interval` ago. An operation that still waits counts as a pause.
    pub fn line(&self, interval: Duration) -> String {
        let mut counts = self.counts();
        let mut now = std::mem::take(&mut counts.now);
        counts.before.add(&now);
        for (kind, began) in counts.under_way.values() {
            now.waited(began.elapsed(), kind);
        }
        now.text(&format!(" in {} s", interval.as_secs()))
    }

    /// What has happened from the beginning.
    pub fn total(&self) -> String {
        let counts = self.counts();
        let mut all = counts.before.clone();
        all.add(&counts.now);
        all.text("")
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Span {
    fn waited(&mut self, time: Duration, kind: &'static str) {
        if self.worst.is_none_or(|(worst, _)| worst < time) {
            self.worst = Some((time, kind));
        }
    }

    fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.failed += other.failed;
        if let Some((time, kind)) = other.worst {
            self.waited(time, kind);
        }
        if self.error.is_none() {
            self.error.clone_from(&other.error);
        }
    }

    fn text(&self, within: &str) -> String {
        let mut text = format!("{} operations{within}", self.done);
        if let Some((time, kind)) = self.worst {
            text += &format!(", worst pause {} ms ({kind})", time.as_millis());
        }
        text += &match (&self.error, self.failed) {
            (Some(error), failed) => format!(", {failed} failed: {error}"),
            (None, _) => ", none failed".to_owned(),
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_tells_of_its_own_time_and_the_total_of_all() {
        let tally = Tally::default();
        let fails = async { Err::<(), _>("no room") };
        assert_eq!(tally.time("write", fails).await, None);
        let line = tally.line(Duration::from_secs(5));
        assert!(line.starts_with("0 operations in 5 s, worst pause "), "{line}");
        assert!(line.ends_with(" ms (write), 1 failed: write: no room"), "{line}");

        assert_eq!(tally.time("read", async { Ok::<_, String>(7) }).await, Some(7));
        let line = tally.line(Duration::from_secs(5));
        assert!(line.starts_with("1 operations in 5 s"), "{line}");
        assert!(line.ends_with("(read), none failed"), "{line}");
        let total = tally.total();
        assert!(total.starts_with("1 operations, "), "{total}");
        assert!(total.ends_with("1 failed: write: no room"), "{total}");
    }

    #[tokio::test]
    async fn an_operation_that_still_waits_is_a_pause() {
        let tally = Tally::default();
        let never = std::future::pending::<Result<(), String>>();
        let waited = tokio::time::timeout(Duration::from_millis(5), tally.time("rename", never)).await;
        assert!(waited.is_err());
        let line = tally.line(Duration::from_secs(5));
        assert!(line.contains("(rename)"), "{line}");
    }
}
