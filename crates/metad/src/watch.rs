//! Notices a thread of this server that has ended or hangs, and ends the server.
//!
//! What counts as hanging is [`group::Watch`]'s to say. Here is the thread that looks, and the word that it gives:
//! without a fresh one no beacon, no grant and no answer that rests on a lease goes out. The group's timer looks after
//! the watching thread in the same way.

use base::Moment;
use env::{Env, pulse::Pulses};
use group::{Sign, Watch};
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// Ends the process, with a sentence that says why. It must not wait for any thread: one of them hangs, with whatever it
/// holds. Without one a server whose thread hangs only stops taking part.
#[derive(Clone, Default)]
pub struct LastResort(Option<End>);

type End = Arc<dyn Fn(&str) + Send + Sync>;

impl LastResort {
    pub fn new(end: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(end)))
    }
}

impl fmt::Debug for LastResort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "LastResort(ends the process)" } else { "LastResort(nothing)" })
    }
}

/// The threads that this server's word rests on.
pub struct Threads {
    /// Those that are watched begin here.
    pub pulses: Pulses,
    hang_ms: u64,
    last_resort: LastResort,
    /// Until when the watcher's last word counts.
    sound_until_ns: AtomicU64,
    /// Looks of the watcher.
    looks: AtomicU64,
    /// How long the slowest thread has completed nothing.
    stands_ms: AtomicU64,
    hang: OnceLock<String>,
    is_over: AtomicBool,
}

/// The thread whose steps may be long.
pub const WRITER: &str = "meta-writer";
/// The name under which the watcher itself is told of.
const WATCHER: &str = "meta-watch";

impl Threads {
    pub fn new(env: &Env, settings: &group::Settings, last_resort: LastResort) -> Self {
        let threads = Self {
            pulses: Pulses::default(),
            hang_ms: settings.hang_ms,
            last_resort,
            sound_until_ns: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            stands_ms: AtomicU64::new(0),
            hang: OnceLock::new(),
            is_over: AtomicBool::new(false),
        };
        threads.say_sound(env.clock.moment());
        threads
    }

    fn say_sound(&self, now: Moment) {
        self.sound_until_ns.store(now.plus_ms(self.hang_ms).ns, Ordering::Release);
    }

    /// Whether this member may say that it lives.
    pub fn may_speak(&self, now: Moment) -> bool {
        self.is_over.load(Ordering::Acquire)
            || (self.hang.get().is_none() && now.ns < self.sound_until_ns.load(Ordering::Acquire))
    }

    /// Whether the threads are sound, or what is wrong with them.
    pub fn verdict(&self, now: Moment) -> Result<(), String> {
        match self.hang() {
            Some(reason) => Err(reason.to_owned()),
            None if self.may_speak(now) => Ok(()),
            None => Err(format!("nobody has looked at this server's threads for {} ms", self.hang_ms)),
        }
    }

    /// Why the server ends, once a thread hangs.
    pub fn hang(&self) -> Option<&str> {
        self.hang.get().map(String::as_str)
    }

    /// How long the slowest thread has completed nothing.
    pub fn stands_ms(&self) -> u64 {
        self.stands_ms.load(Ordering::Relaxed)
    }

    /// The server is being stopped: threads end one after the other, and nobody looks at them any more.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Looks until [`Threads::stop`], on a thread of its own. `progress` counts what the writer does within one step,
    /// `failed` hears which thread hangs, if the process lives on.
    pub fn run(&self, env: &Env, progress: impl Fn() -> u64, failed: impl FnOnce(&str)) {
        let mut watch = Watch::new(self.hang_ms);
        let period = Duration::from_millis(watch.look_ms());
        while !self.is_over.load(Ordering::Acquire) {
            if let Some(reason) = self.hang() {
                return failed(reason);
            }
            let mut pulses = self.pulses.all();
            pulses.extend(env.disk.pulses());
            let now = env.clock.moment();
            let walked = progress();
            let stands = watch.look(
                now,
                pulses.iter().map(|pulse| Sign {
                    number: pulse.number(),
                    steps: pulse.steps().wrapping_add(if pulse.name() == WRITER { walked } else { 0 }),
                    rests: pulse.rests(),
                }),
            );
            self.stands_ms.store(stands.map_or(0, |stands| stands.ms), Ordering::Relaxed);
            if let Some(stands) = stands.filter(|stands| stands.hangs) {
                let thread = pulses.iter().find(|pulse| pulse.number() == stands.number);
                self.end(thread.map_or("unknown", |pulse| pulse.name()), stands.ms);
                continue;
            }
            self.say_sound(now);
            self.looks.fetch_add(1, Ordering::Release);
            std::thread::sleep(period);
        }
    }

    /// For the group's timer: whether the watcher itself goes on.
    pub fn watch_the_watcher(&self, watch: &mut Watch, now: Moment) {
        if self.is_over.load(Ordering::Acquire) {
            return;
        }
        let sign = Sign { number: 0, steps: self.looks.load(Ordering::Acquire), rests: false };
        if let Some(stands) = watch.look(now, [sign]).filter(|stands| stands.hangs) {
            self.end(WATCHER, stands.ms);
        }
    }

    pub fn hang_ms(&self) -> u64 {
        self.hang_ms
    }

    /// Nothing here may wait for a lock of the server's.
    fn end(&self, thread: &str, ms: u64) {
        let reason = format!(
            "thread {thread} has completed nothing for {ms} ms and waits for no disk: it is dead or hangs, and so this \
             server ends. Start it again; group_hang_ms says how long a thread may take"
        );
        if self.hang.set(reason.clone()).is_ok()
            && let Some(end) = &self.last_resort.0
        {
            end(&reason);
        }
    }
}
