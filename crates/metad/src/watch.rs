//! Notices a thread of this server that has ended or hangs, and ends the server.
//!
//! [`group::Watch`] decides which thread counts as hanging. Here is the thread that looks, and the word that it
//! gives: without a fresh one no beacon, no grant and no answer that rests on a lease goes out. The group's timer
//! looks after the watching thread in the same way.

use base::Moment;
use env::{
    Env, Starvation,
    pulse::{Pulse, Pulses},
};
use group::{Sign, Stands, Watch};
use parking_lot::Mutex;
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
    /// The threads that are watched register here.
    pub pulses: Pulses,
    /// The helper threads. No promise rests on them, and they may take longer.
    pub helpers: Pulses,
    hang_ms: u64,
    last_resort: LastResort,
    /// Until when the watcher's last word counts.
    sound_until_ns: AtomicU64,
    /// Looks of the watcher.
    looks: AtomicU64,
    /// How long the slowest thread has completed nothing.
    stands_ms: AtomicU64,
    hang: OnceLock<String>,
    /// The name of the helper thread that hangs.
    idle_helper: Mutex<Option<String>>,
    is_over: AtomicBool,
}

/// The thread that changes the namespace.
pub const WRITER: &str = "meta-writer";
/// The name under which the tasks that answer calls are told of.
pub const RUNTIME: &str = "runtime";
/// How much longer than the others the helpers may take.
const HELPERS_PATIENCE: u64 = 30;
/// The name under which the watcher itself is told of.
const WATCHER: &str = "meta-watch";

impl Threads {
    pub fn new(env: &Env, settings: &group::Settings, last_resort: LastResort) -> Self {
        let threads = Self {
            pulses: Pulses::default(),
            helpers: Pulses::default(),
            hang_ms: settings.hang_ms,
            last_resort,
            sound_until_ns: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            stands_ms: AtomicU64::new(0),
            hang: OnceLock::new(),
            idle_helper: Mutex::new(None),
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

    /// The server is being stopped: threads end one after the other, and the watcher looks at them no more.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// A sentence about the helper that hangs; `None` while none does.
    pub fn idle_helper(&self) -> Option<String> {
        self.idle_helper.lock().clone()
    }

    /// Looks until [`Threads::stop`], on a thread of its own. `failed` hears which thread hangs, if the process lives on.
    pub fn run(&self, env: &Env, failed: impl FnOnce(&str)) {
        let mut watch = Watch::new(self.hang_ms);
        let mut helpers = helpers_watch(self.hang_ms);
        let mut starvation = Starvation::default();
        let period = Duration::from_millis(watch.look_ms());
        while !self.is_over.load(Ordering::Acquire) {
            if let Some(reason) = self.hang() {
                return failed(reason);
            }
            let mut pulses = self.pulses.all();
            pulses.extend(env.disk.pulses());
            let now = env.clock.moment();
            let starved_ns = starved_ns(&watch, &mut starvation);
            let stands = watch.look(now, starved_ns, pulses.iter().map(|pulse| sign_of(pulse)));
            self.stands_ms.store(stands.map_or(0, |stands| stands.ms), Ordering::Relaxed);
            if let Some(stands) = stands.filter(|stands| stands.hangs) {
                let thread = pulses.iter().find(|pulse| pulse.number() == stands.number);
                self.end(thread.map_or("unknown", |pulse| pulse.name()), stands);
                continue;
            }
            self.look_at_helpers(&mut helpers, now);
            self.say_sound(now);
            self.looks.fetch_add(1, Ordering::Release);
            std::thread::sleep(period);
        }
    }

    fn look_at_helpers(&self, watch: &mut Watch, now: Moment) {
        let pulses = self.helpers.all();
        // They have so much time that a starved one has enough.
        let stands =
            watch.look(now, 0, pulses.iter().map(|pulse| sign_of(pulse))).filter(|stands| stands.hangs);
        let name = stands.and_then(|stands| {
            let pulse = pulses.iter().find(|pulse| pulse.number() == stands.number)?;
            Some((pulse.name(), stands))
        });
        if let Some((RUNTIME, stands)) = name {
            return self.end(RUNTIME, stands);
        }
        let told = name.map(|(name, stands)| {
            format!(
                "thread {name} has completed nothing for {} s and waits for no disk: what it does is left undone until this \
                 server is started again",
                stands.ms / 1_000
            )
        });
        let before = std::mem::replace(&mut *self.idle_helper.lock(), told.clone());
        match (before, told) {
            (None, Some(told)) => tracing::error!("{told}"),
            (Some(_), None) => tracing::warn!("the thread that hung goes on"),
            _ => {}
        }
    }

    /// Tells the group's timer whether the watching thread itself goes on.
    pub fn watch_the_watcher(&self, watch: &mut Watch, starvation: &mut Starvation, now: Moment) {
        if self.is_over.load(Ordering::Acquire) {
            return;
        }
        let sign = Sign { number: 0, steps: self.looks.load(Ordering::Acquire), rests: false };
        let starved_ns = starved_ns(watch, starvation);
        if let Some(stands) = watch.look(now, starved_ns, [sign]).filter(|stands| stands.hangs) {
            self.end(WATCHER, stands);
        }
    }

    pub fn hang_ms(&self) -> u64 {
        self.hang_ms
    }

    /// Nothing here may wait for a lock of the server's.
    fn end(&self, thread: &str, stands: Stands) {
        let Stands { ms, starved_ms, .. } = stands;
        let starved = match starved_ms {
            0 => String::new(),
            _ => format!(" (in {starved_ms} ms of them threads waited for a processor)"),
        };
        let reason = format!(
            "thread {thread} has completed nothing for {ms} ms{starved} and waits for no disk: it is dead or hangs, and so this \
             server ends. Start it again; group_hang_ms says how long a thread may take"
        );
        if self.hang.set(reason.clone()).is_ok()
            && let Some(end) = &self.last_resort.0
        {
            end(&reason);
        }
    }
}

fn helpers_watch(hang_ms: u64) -> Watch {
    Watch::new(HELPERS_PATIENCE * hang_ms)
}

/// Asked for only when it matters: it costs a look at each thread of the process.
fn starved_ns(watch: &Watch, starvation: &mut Starvation) -> u64 {
    if watch.asks_for_starvation() {
        return starvation.look();
    }
    starvation.forget();
    0
}

fn sign_of(pulse: &Pulse) -> Sign {
    Sign { number: pulse.number(), steps: pulse.steps(), rests: pulse.rests() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const HANG_MS: u64 = 1_000;

    fn at(ms: u64) -> Moment {
        Moment { ns: 1 + ms * 1_000_000 }
    }

    fn threads() -> (Threads, mpsc::Receiver<String>) {
        let (ended, hears) = mpsc::channel();
        let last_resort = LastResort::new(move |reason| drop(ended.send(reason.to_owned())));
        let settings = group::Settings { hang_ms: HANG_MS, ..group::Settings::default() };
        (Threads::new(&Env::production(), &settings, last_resort), hears)
    }

    /// Looks as often as the watcher does.
    fn look(threads: &Threads, watch: &mut Watch, from: u64, to: u64) {
        for ms in (from..=to).step_by(100) {
            threads.look_at_helpers(watch, at(ms));
        }
    }

    #[test]
    fn a_helper_that_hangs_is_told_of_and_ends_nobody() {
        let (threads, hears) = threads();
        let mut watch = helpers_watch(HANG_MS);
        let (sound, hangs) = (threads.helpers.add("meta-walks"), threads.helpers.add("meta-background"));
        for second in 0..30 {
            sound.step();
            look(&threads, &mut watch, second * 1_000, second * 1_000 + 900);
            assert_eq!(threads.idle_helper(), None, "after {second} s");
        }
        look(&threads, &mut watch, 30_000, 30_000);
        let told = threads.idle_helper().unwrap();
        assert!(told.starts_with("thread meta-background has completed nothing for 30 s"), "{told}");
        hangs.step();
        look(&threads, &mut watch, 30_100, 30_200);
        assert_eq!(threads.idle_helper(), None, "it goes on");
        assert_eq!((hears.try_recv().ok(), threads.hang()), (None, None));
    }

    #[test]
    fn a_server_whose_watcher_stands_is_ended_by_the_groups_timer() {
        let (threads, hears) = threads();
        let (mut watch, mut starvation) = (Watch::new(HANG_MS), Starvation::default());
        let mut looks = |from: u64, to: u64| {
            for ms in (from..=to).step_by(100) {
                threads.watch_the_watcher(&mut watch, &mut starvation, at(ms));
            }
        };
        looks(0, 900);
        threads.looks.fetch_add(1, Ordering::Release);
        looks(1_000, 1_900);
        assert_eq!(threads.hang(), None, "it has looked within the second");
        // Threads of this test may have waited for a processor meanwhile, which is allowed for.
        looks(2_000, 60_000);
        let reason = hears.try_recv().expect("its last resort");
        assert!(reason.starts_with("thread meta-watch has completed nothing for"), "{reason}");
    }

    #[test]
    fn a_server_whose_tasks_get_no_turn_ends() {
        let (threads, hears) = threads();
        let mut watch = helpers_watch(HANG_MS);
        let turns = threads.helpers.add(RUNTIME);
        look(&threads, &mut watch, 0, 29_000);
        turns.step();
        look(&threads, &mut watch, 29_100, 59_000);
        assert_eq!(threads.hang(), None);
        look(&threads, &mut watch, 59_100, 59_200);
        let reason = hears.try_recv().expect("its last resort");
        assert!(reason.starts_with("thread runtime has completed nothing for 30000 ms"), "{reason}");
    }
}
