//! How long threads of this process waited for a processor that others had.

use std::{collections::BTreeMap, fs, path::Path};

/// The directory in which the system tells of this process's threads. It is no file on a disk.
const TASKS: &str = "/proc/self/task";

/// Looks at all threads of this process. Where the system tells nothing, none has waited.
#[derive(Debug, Default)]
pub struct Starvation {
    /// The time that each thread had waited for a core by the last look; `None` before the first look.
    seen: Option<BTreeMap<String, u64>>,
}

impl Starvation {
    /// The longest time, since the last look, that any one thread was ready to run and waited for a processor. The system counts a
    /// wait when it is over. 0 at the first look.
    pub fn look(&mut self) -> u64 {
        let now = waits(Path::new(TASKS));
        let before = self.seen.replace(now);
        let (Some(before), Some(now)) = (before, &self.seen) else { return 0 };
        longest(&before, now)
    }

    /// The next look is a first one.
    pub fn forget(&mut self) {
        self.seen = None;
    }
}

/// A thread that is new counts from its beginning.
fn longest(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> u64 {
    let since =
        |(thread, wait): (&String, &u64)| wait.saturating_sub(before.get(thread).copied().unwrap_or(0));
    now.iter().map(since).max().unwrap_or(0)
}

fn waits(tasks: &Path) -> BTreeMap<String, u64> {
    let Ok(entries) = fs::read_dir(tasks) else { return BTreeMap::new() };
    let wait_of = |entry: fs::DirEntry| {
        // A thread may have ended meanwhile.
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        Some((entry.file_name().into_string().ok()?, parse(&text)?))
    };
    entries.flatten().filter_map(wait_of).collect()
}

/// Nanoseconds on a processor, nanoseconds of waiting for one, times that it was given one.
fn parse(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
        time::Duration,
    };

    fn waits_of(waits: &[(&str, u64)]) -> BTreeMap<String, u64> {
        waits.iter().map(|(thread, wait)| ((*thread).to_owned(), *wait)).collect()
    }

    #[test]
    fn the_thread_that_waited_longest_counts() {
        let before = waits_of(&[("1", 500), ("2", 9_000), ("3", 7)]);
        let now = waits_of(&[("1", 800), ("2", 9_010), ("4", 200)]);
        assert_eq!(longest(&before, &now), 300);
        assert_eq!(longest(&before, &BTreeMap::new()), 0);
        assert_eq!(parse("103 4007 9\n"), Some(4_007));
        assert_eq!((parse("103"), parse("a b c"), parse("")), (None, None, None));
    }

    #[test]
    fn threads_that_outnumber_the_processors_wait() {
        let processors = thread::available_parallelism().unwrap().get();
        let (is_over, mut starvation) = (AtomicBool::new(false), Starvation::default());
        assert_eq!(starvation.look(), 0);
        thread::scope(|scope| {
            for _ in 0..4 * processors {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            thread::sleep(Duration::from_millis(400));
            let waited_ms = starvation.look() / 1_000_000;
            is_over.store(true, Ordering::Relaxed);
            assert!(waited_ms >= 50, "{waited_ms} ms");
        });
        starvation.forget();
        assert_eq!(starvation.look(), 0);
    }
}
