//! The threads of this process, read from the operating system, for a page that people look at.

use procfs::process::Process;

/// More threads are not looked at.
const THREADS_MAX: usize = 10_000;

/// One thread at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFacts {
    pub id: i32,
    /// At most 15 bytes: the system keeps no more.
    pub name: String,
    pub state: ThreadState,
    /// Time on processors, in milliseconds.
    pub cpu_ms: u64,
    /// How often it gave its processor away to wait, and how often it was taken away.
    pub waits: u64,
    pub preemptions: u64,
    /// Where in the kernel it sleeps; `None` if it runs, or if the system does not tell.
    pub wait_place: Option<String>,
}

/// The state of a thread, as the kernel's scheduler has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It is on a processor or waits for one.
    Running,
    /// It waits for an event, and a signal can wake it.
    Sleeping,
    /// It waits for a disk or another device.
    WaitingForDevice,
    Stopped,
    /// It is about to be gone, or in a state that this program does not know.
    Other,
}

impl ThreadState {
    fn of(letter: char) -> Self {
        match letter {
            'R' => Self::Running,
            'S' | 'I' => Self::Sleeping,
            'D' => Self::WaitingForDevice,
            'T' | 't' => Self::Stopped,
            _ => Self::Other,
        }
    }
}

/// How many threads of this process are in each state, in the order of first sight.
pub fn states() -> Vec<(ThreadState, u64)> {
    let Ok(tasks) = Process::myself().and_then(|process| process.tasks()) else { return Vec::new() };
    let mut counts: Vec<(ThreadState, u64)> = Vec::new();
    for stat in tasks.take(THREADS_MAX).flatten().filter_map(|task| task.stat().ok()) {
        let state = ThreadState::of(stat.state);
        match counts.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    counts
}

/// All threads of this process by id. A thread that ends meanwhile may be left out; if the system tells nothing, there are none.
pub fn threads() -> Vec<ThreadFacts> {
    let Ok(tasks) = Process::myself().and_then(|process| process.tasks()) else { return Vec::new() };
    let ms_a_tick = 1_000 / procfs::ticks_per_second().max(1);
    let facts = tasks.take(THREADS_MAX).flatten().filter_map(|task| {
        let (stat, status) = (task.stat().ok()?, task.status().ok()?);
        Some(ThreadFacts {
            id: task.tid,
            name: stat.comm,
            state: ThreadState::of(stat.state),
            cpu_ms: (stat.utime + stat.stime).saturating_mul(ms_a_tick),
            waits: status.voluntary_ctxt_switches.unwrap_or_default(),
            preemptions: status.nonvoluntary_ctxt_switches.unwrap_or_default(),
            wait_place: wait_place(task.tid),
        })
    });
    let mut facts: Vec<_> = facts.collect();
    facts.sort_by_key(|thread| thread.id);
    facts
}

fn wait_place(id: i32) -> Option<String> {
    let place = std::fs::read_to_string(format!("/proc/self/task/{id}/wchan")).ok()?;
    let is_name = |place: &str| !place.is_empty() && place != "0" && place.len() < 100;
    Some(place.trim().to_owned()).filter(|place| is_name(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_told_by_its_name() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let named =
            std::thread::Builder::new().name("named-thread".into()).spawn(move || ended.recv().is_ok());
        // The name is set by the thread itself, after it has begun.
        let seen = (0..100_000).find_map(|_| {
            std::thread::yield_now();
            threads().into_iter().find(|thread| thread.name == "named-thread")
        });
        let seen = seen.expect("the thread is listed");
        assert!(matches!(seen.state, ThreadState::Sleeping | ThreadState::Running), "{seen:?}");
        drop(end);
        assert!(!named.unwrap().join().unwrap());
    }
}
