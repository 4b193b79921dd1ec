//! File descriptors: how many this process may have, and how many of them connections may take.
//!
//! A connection that finds no descriptor is closed and made again; a journal that finds none to begin its next file
//! with fails its member. So some are kept back from the connections that strangers make.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// The least limit of descriptors: with fewer a server cannot keep enough back to be safe.
pub const LIMIT_MIN: usize = 256;

/// More are not asked for: a hard limit may be a thousand million, and some programs go through all there are.
const LIMIT_MAX: usize = 1 << 20;

/// Kept back of a large limit. A server's own files and its connections to others are some dozens; the rest is for
/// HTTP, for members that have not proved who they are yet, and for programs that are asked for a user's groups.
const KEPT_BACK_MAX: usize = 1024;

/// Counts connections of strangers against what they may take.
#[derive(Debug)]
pub struct Descriptors {
    limit: usize,
    kept_back: usize,
    taken: AtomicUsize,
    refused: AtomicU64,
}

/// The descriptors of one holder; given back when dropped.
#[derive(Debug)]
pub struct Place {
    descriptors: Arc<Descriptors>,
    count: usize,
}

impl Descriptors {
    /// The descriptors of a process that may have `limit` of them. A quarter is kept back; of a small number, half.
    pub fn new(limit: usize) -> Self {
        let kept_back = (limit / 4).clamp(LIMIT_MIN.min(limit / 2), KEPT_BACK_MAX);
        Self { limit, kept_back, taken: AtomicUsize::new(0), refused: AtomicU64::new(0) }
    }

    /// The descriptors of this process. Raises the process's limit as far as the system allows.
    pub fn of_process() -> Self {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let number =
            |limit: Option<u64>| limit.map_or(LIMIT_MAX, |limit| limit.min(LIMIT_MAX as u64) as usize);
        let (current, wanted) = (number(current), number(maximum));
        let raised = current < wanted
            && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted as u64), maximum }).is_ok();
        Self::new(if raised { wanted } else { current })
    }

    /// The number of descriptors that this process may have open at once.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The number of descriptors that connections never take.
    pub fn kept_back(&self) -> usize {
        self.kept_back
    }

    /// The number of descriptors that connections may take.
    pub fn connections_max(&self) -> usize {
        self.limit - self.kept_back
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Connections for which there was none.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes some for a connection. `None`: it is to be closed at once.
    pub fn take(self: &Arc<Self>, count: usize) -> Option<Place> {
        let place = self.take_quietly(count);
        if place.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    /// Takes `count` descriptors like [`Descriptors::take`], but a failure is not counted as a refused connection: the
    /// caller may still find descriptors elsewhere.
    pub fn take_quietly(self: &Arc<Self>, count: usize) -> Option<Place> {
        let most = self.connections_max();
        self.taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
                Some(taken + count).filter(|taken| *taken <= most)
            })
            .ok()
            .map(|_| Place { descriptors: Arc::clone(self), count })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.descriptors.taken.fetch_sub(self.count, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_kept_back_of_every_number() {
        for (limit, kept_back) in [(0, 0), (100, 50), (256, 128), (1024, 256), (4096, 1024), (1 << 20, 1024)]
        {
            let descriptors = Descriptors::new(limit);
            assert_eq!(descriptors.kept_back(), kept_back, "of {limit}");
            assert_eq!(descriptors.connections_max() + descriptors.kept_back(), limit);
        }
    }

    #[test]
    fn what_connections_may_take_is_taken_once() {
        let descriptors = Arc::new(Descriptors::new(256));
        let mut places: Vec<Place> = (0..32).map(|_| descriptors.take(4).unwrap()).collect();
        assert!(descriptors.take(1).is_none());
        assert_eq!((descriptors.taken(), descriptors.refused()), (128, 1));
        places.pop();
        assert!(descriptors.take(5).is_none());
        assert!(descriptors.take(4).is_some());
        drop(places);
        assert_eq!(descriptors.taken(), 0);
    }

    #[test]
    fn this_process_takes_all_that_it_may_have() {
        let descriptors = Descriptors::of_process();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current.unwrap_or(u64::MAX).min(LIMIT_MAX as u64), descriptors.limit() as u64);
        assert!(now.maximum.is_none_or(|most| most.min(LIMIT_MAX as u64) <= descriptors.limit() as u64));
    }
}
