//! Memory for requests, shared by all connections of a server.
//!
//! A request lies in a *chunk*, in which the bytes of its connection were read; several short ones share one.
//! A chunk is paid for from its making until the last call in it has been answered and nothing more is read into
//! it:
//!
//! - Each connection has one short chunk for nothing, so that it can always be heard.
//! - Every further short chunk is paid from a quarter of the room. It is needed by a connection with calls that
//!   are not yet answered, so it may wait: those answers come without it.
//! - A long request has a chunk to itself, paid from the rest of the room before its body is read, and whole. So a
//!   connection that waits holds nothing that another waits for. They are served in the order in which they came.
//!
//! Together they hold no more than the room and a short chunk for each connection.

use bytes::BytesMut;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes that one read asks for, and the least that a reading connection holds.
pub const READ_BYTES: usize = 16 << 10;

/// A request up to this length shares a chunk with others.
pub const SHORT_BYTES_MAX: usize = 64 << 10;

/// The bytes of the length before a frame.
const LENGTH_BYTES: usize = 4;

/// Less is not worth a read.
const SPARE_BYTES_MIN: usize = 2 << 10;

/// Semaphores count in this unit: their numbers are of 32 bits where many are taken at once.
const UNIT: usize = 1 << 10;

/// The memory that all connections of a server together may hold.
pub struct Room {
    short: Purse,
    long: Purse,
    /// Bytes of replies that clients have not yet read.
    replies: AtomicUsize,
    replies_max: usize,
}

struct Purse {
    units: Arc<Semaphore>,
    units_max: u32,
    waiting: Arc<AtomicUsize>,
}

/// Counts one that waits.
struct Waiter(Arc<AtomicUsize>);

impl Waiter {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Purse {
    fn new(bytes: usize) -> Self {
        let units_max = bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS).min(u32::MAX as usize) as u32;
        Self { units: Arc::new(Semaphore::new(units_max as usize)), units_max, waiting: Arc::default() }
    }

    fn used_bytes(&self) -> usize {
        (self.units_max as usize - self.units.available_permits()) * UNIT
    }

    /// More than there is in all is never asked for: the whole has to do.
    fn units(&self, bytes: usize) -> u32 {
        (bytes.div_ceil(UNIT) as u32).min(self.units_max)
    }
}

impl Room {
    /// `bytes` for requests, of which the longest has `longest`; so many for replies that wait to be read.
    pub fn new(bytes: usize, longest: usize, replies_max: usize) -> Self {
        let short = bytes / 4;
        Self {
            short: Purse::new(short.max(SHORT_BYTES_MAX)),
            long: Purse::new((bytes - short).max(longest)),
            replies: AtomicUsize::new(0),
            replies_max,
        }
    }

    /// Bytes of requests that are paid for: without the one short chunk of each connection.
    pub fn request_bytes(&self) -> usize {
        self.short.used_bytes() + self.long.used_bytes()
    }

    pub fn reply_bytes(&self) -> usize {
        self.replies.load(Ordering::Relaxed)
    }

    /// A connection's replies that wait were `before` bytes, and are `now`.
    pub fn settle_replies(&self, before: usize, now: usize) {
        if now > before {
            self.replies.fetch_add(now - before, Ordering::Relaxed);
        } else if now < before {
            self.replies.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// Whether no client may leave much unread any more.
    pub fn is_short_of_replies(&self) -> bool {
        self.reply_bytes() > self.replies_max
    }

    /// Whether a long request waits for the room of others.
    pub fn is_contended(&self) -> bool {
        self.long.waiting.load(Ordering::Relaxed) > 0
    }

    fn purse(&self, chunk_bytes: usize) -> &Purse {
        if is_short(chunk_bytes) { &self.short } else { &self.long }
    }
}

fn is_short(chunk_bytes: usize) -> bool {
    chunk_bytes <= SHORT_BYTES_MAX + LENGTH_BYTES
}

/// The part of the room that a chunk has taken. Calls hold it until they are answered.
pub struct Paid {
    _permit: Option<OwnedSemaphorePermit>,
}

/// A payment that is awaited.
type Waiting = Pin<Box<dyn Future<Output = Paid> + Send>>;

/// The bytes of one connection that have been read and not yet taken for frames.
pub struct Inbox {
    room: Arc<Room>,
    /// Begins at the start of a frame.
    bytes: BytesMut,
    /// The memory taken for the chunk in which `bytes` lie; none before the first.
    paid: Option<Arc<Paid>>,
    /// The length of that chunk, of which `bytes` may be the rest.
    chunk_bytes: usize,
    /// The chunk that was for nothing, as long as a call or this inbox has it.
    own: Weak<Paid>,
    waiting: Option<(usize, Waiting)>,
}

/// Whether a connection can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The bytes may be read.
    Ready,
    /// The reader has to wait for [`Inbox::wait`].
    Wanted,
}

impl Inbox {
    pub fn new(room: Arc<Room>) -> Self {
        Self { room, bytes: BytesMut::new(), paid: None, chunk_bytes: 0, own: Weak::new(), waiting: None }
    }

    pub fn bytes(&self) -> &BytesMut {
        &self.bytes
    }

    pub fn bytes_mut(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// The payment for the chunk that frames are now taken from.
    pub fn paid(&self) -> Arc<Paid> {
        Arc::clone(self.paid.as_ref().expect("what was read lies in a chunk"))
    }

    /// Whether the request that arrives is a long one that waits for others to be answered.
    pub fn is_waiting_for_others(&self) -> bool {
        self.waiting.as_ref().is_some_and(|(size, _)| !is_short(*size))
    }

    /// Makes room for the next read. `frame` is the length of the frame that has begun to arrive, if that is known.
    pub fn make_space(&mut self, frame: Option<usize>) -> Space {
        if let Some((size, _)) = self.waiting {
            if !is_short(size) || self.own.strong_count() > 0 {
                return Space::Wanted;
            }
            // Its own calls have been answered meanwhile.
            self.waiting = None;
            self.begin_own_chunk(size);
            return Space::Ready;
        }
        let whole = frame.map_or(0, |length| length + LENGTH_BYTES);
        let spare = self.bytes.capacity() - self.bytes.len();
        let is_enough = if whole > 0 { self.bytes.capacity() >= whole } else { spare >= SPARE_BYTES_MIN };
        if is_enough {
            return Space::Ready;
        }
        // Nothing else is read into a long chunk, so that it ends with its request.
        let size = if is_short(whole) { whole.max(READ_BYTES) } else { whole };
        if self.bytes.capacity() > 0 && self.bytes.try_reclaim(size - self.bytes.len()) {
            // All calls of the chunk have been answered.
            return Space::Ready;
        }
        self.pay(size)
    }

    fn pay(&mut self, size: usize) -> Space {
        let is_short = size <= SHORT_BYTES_MAX + LENGTH_BYTES;
        // The old chunk is this inbox's no more: only its unanswered calls keep it.
        self.paid = None;
        if is_short && self.own.strong_count() == 0 {
            self.begin_own_chunk(size);
            return Space::Ready;
        }
        let purse = self.room.purse(size);
        let units = purse.units(size);
        match Arc::clone(&purse.units).try_acquire_many_owned(units) {
            Ok(permit) => {
                self.begin_chunk(size, Arc::new(Paid { _permit: Some(permit) }));
                Space::Ready
            }
            Err(_) => {
                let permits = Arc::clone(&purse.units).acquire_many_owned(units);
                let waiter = Waiter::new(&purse.waiting);
                let waiting = Box::pin(async move {
                    let _counted = waiter;
                    // The semaphore is never closed.
                    Paid { _permit: permits.await.ok() }
                });
                self.waiting = Some((size, waiting));
                Space::Wanted
            }
        }
    }

    /// Waits until the wanted memory is there. May be dropped: the place in the queue is kept.
    pub async fn wait(&mut self) {
        let Some((size, waiting)) = &mut self.waiting else { return std::future::pending().await };
        let (size, paid) = (*size, waiting.await);
        self.waiting = None;
        self.begin_chunk(size, Arc::new(paid));
    }

    fn begin_own_chunk(&mut self, size: usize) {
        let paid = Arc::new(Paid { _permit: None });
        self.own = Arc::downgrade(&paid);
        self.begin_chunk(size, paid);
    }

    fn begin_chunk(&mut self, size: usize, paid: Arc<Paid>) {
        // Memory that is never written costs nothing: a long request gets it as its bytes arrive.
        let mut bytes = BytesMut::with_capacity(size);
        bytes.extend_from_slice(&self.bytes);
        self.bytes = bytes;
        self.chunk_bytes = size;
        self.paid = Some(paid);
    }

    /// Gives back a long chunk that has been read.
    pub fn shrink(&mut self) {
        if self.bytes.is_empty() && !is_short(self.chunk_bytes) {
            self.clear();
        }
    }

    /// Drops the bytes and gives the room back. Nothing more is read.
    pub fn clear(&mut self) {
        self.bytes = BytesMut::new();
        self.chunk_bytes = 0;
        self.paid = None;
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests;
