//! Signs of life of threads that others rely on.
//!
//! A thread that is watched counts its steps. A thread without work wakes every [`IDLE`] and counts that as a step.
//! So the watcher need not know whether there is work: a thread that counts nothing for long is dead or hangs. While
//! it waits for a disk or another machine it *rests*: how long that may take is for others to judge. The disk of this
//! crate says so by itself.
//!
//! This module only counts. The watcher, and what happens to a thread that stands still, are elsewhere.

use parking_lot::{Mutex, MutexGuard};
use std::{
    cell::RefCell,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

/// How often a watched thread that waits for work says that it lives.
pub const IDLE: Duration = Duration::from_millis(200);

/// Tells pulses of one process apart.
static COUNT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static OWN: RefCell<Option<Arc<Pulse>>> = const { RefCell::new(None) };
}

/// One thread's signs of life.
#[derive(Debug)]
pub struct Pulse {
    number: u64,
    name: String,
    steps: AtomicU64,
    rests: AtomicU32,
}

impl Pulse {
    pub fn new(name: impl Into<String>) -> Arc<Self> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { number, name: name.into(), steps: AtomicU64::new(0), rests: AtomicU32::new(0) })
    }

    /// No other pulse of this process has it.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Steps completed so far.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Whether it waits for a disk or another machine.
    pub fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed) > 0
    }

    pub fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes this the pulse of the thread that calls, until the answer is dropped.
pub fn carry(pulse: Arc<Pulse>) -> Carried {
    OWN.with_borrow_mut(|own| *own = Some(pulse));
    Carried { thread: PhantomData }
}

/// See [`carry`].
#[derive(Debug)]
pub struct Carried {
    /// This makes the type belong to one thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Carried {
    fn drop(&mut self) {
        OWN.with_borrow_mut(|own| *own = None);
    }
}

/// The calling thread has completed a step, if it is watched.
pub fn step() {
    OWN.with_borrow(|own| own.iter().for_each(|pulse| pulse.step()));
}

/// Tells the watch that the calling thread waits for a disk or another machine, until the returned value is dropped.
#[must_use]
pub fn rest() -> Rest {
    let pulse = OWN.with_borrow(Option::clone);
    if let Some(pulse) = &pulse {
        pulse.rests.fetch_add(1, Ordering::Relaxed);
    }
    Rest { pulse }
}

/// Takes a lock that others hold while they wait for a disk: to wait for it is to wait for the disk.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.try_lock().unwrap_or_else(|| {
        let _rest = rest();
        mutex.lock()
    })
}

/// See [`rest`].
#[derive(Debug)]
pub struct Rest {
    pulse: Option<Arc<Pulse>>,
}

impl Drop for Rest {
    fn drop(&mut self) {
        if let Some(pulse) = &self.pulse {
            pulse.step();
            pulse.rests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The pulses of the threads that one service relies on. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Pulses {
    watched: Arc<Mutex<Vec<Arc<Pulse>>>>,
}

impl Pulses {
    /// The calling thread is watched from here on, until the answer is dropped. A thread that ends by a panic stays
    /// among the watched ones, and stands.
    pub fn begin(&self, name: impl Into<String>) -> Watched {
        let pulse = Pulse::new(name);
        self.watched.lock().push(pulse.clone());
        Watched { pulses: self.clone(), carried: carry(pulse.clone()), pulse }
    }

    /// Something that is watched like a thread and is none; it counts its own steps.
    pub fn add(&self, name: impl Into<String>) -> Arc<Pulse> {
        let pulse = Pulse::new(name);
        self.watched.lock().push(pulse.clone());
        pulse
    }

    pub fn all(&self) -> Vec<Arc<Pulse>> {
        self.watched.lock().clone()
    }
}

/// See [`Pulses::begin`].
#[derive(Debug)]
pub struct Watched {
    pulses: Pulses,
    pulse: Arc<Pulse>,
    #[expect(dead_code, reason = "what it does when it goes is wanted")]
    carried: Carried,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.pulses.watched.lock().retain(|pulse| pulse.number != self.pulse.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_its_own_steps_and_rests_in_between() {
        let pulses = Pulses::default();
        step();
        drop(rest());
        let watched = pulses.begin("one");
        let pulse = pulses.all().remove(0);
        assert_eq!((pulse.name(), pulse.steps(), pulse.rests()), ("one", 0, false));
        step();
        let (outer, inner) = (rest(), rest());
        drop(outer);
        assert!(pulse.rests(), "one of two has ended");
        drop(inner);
        assert_eq!((pulse.steps(), pulse.rests()), (3, false));
        drop(watched);
        step();
        assert_eq!((pulse.steps(), pulses.all().len()), (3, 0));
    }

    #[test]
    fn a_thread_rests_while_another_one_holds_a_lock_across_a_disk() {
        let (pulses, mutex) = (Pulses::default(), Mutex::new(7));
        std::thread::scope(|scope| {
            let held = lock(&mutex);
            let waits = scope.spawn(|| {
                let _watched = pulses.begin("waits");
                let value = *lock(&mutex);
                (value, pulses.all()[0].rests())
            });
            while !pulses.all().first().is_some_and(|pulse| pulse.rests()) {
                std::thread::yield_now();
            }
            drop(held);
            assert_eq!(waits.join().unwrap(), (7, false));
        });
    }

    #[test]
    fn a_thread_that_panics_stays_among_those_that_are_watched() {
        let pulses = Pulses::default();
        let watched = pulses.clone();
        let ended = std::thread::spawn(move || {
            let _watched = watched.begin("ends");
            panic!("planted by a test");
        });
        assert!(ended.join().is_err());
        assert_eq!(pulses.all()[0].name(), "ends");
    }
}
