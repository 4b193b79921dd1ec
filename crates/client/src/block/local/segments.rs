//! Shared memory by which data servers tell this client that a replica is not valid any more.

use parking_lot::Mutex;
use proto::{
    data_transfer::{
        Opcode,
        slot::{SLOTS, VALID},
    },
    hdfs::{
        ShortCircuitShmIdProto, ShortCircuitShmRequestProto, ShortCircuitShmResponseProto,
        ShortCircuitShmSlotProto, Status,
    },
};
use rpc::{
    local::{LocalLink, Segment},
    streaming::StreamError,
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc::UnboundedSender;

/// One segment. Its server drops it when the connection ends, and the end of the connection says that the server is gone.
pub struct ClientSegment {
    pub path: PathBuf,
    id: ShortCircuitShmIdProto,
    memory: Segment,
    link: LocalLink,
    taken: Mutex<[bool; SLOTS]>,
    is_given_up: AtomicBool,
}

/// A slot in use. When it is dropped, the server is told so, and the slot is free again afterwards.
pub struct SlotHold {
    segment: Arc<ClientSegment>,
    index: usize,
    releases: UnboundedSender<Release>,
}

/// A slot that is not in use any more.
pub struct Release {
    pub segment: Arc<ClientSegment>,
    pub index: usize,
}

/// The segments of one client.
#[derive(Default)]
pub struct Segments {
    of_all: Mutex<Vec<Arc<ClientSegment>>>,
    /// One segment at a time is asked for.
    asking: tokio::sync::Mutex<()>,
}

/// The answer of a server to the request for a segment.
pub enum Answer {
    Made(Arc<ClientSegment>),
    /// It makes none, and need not be asked again.
    No(String),
}

impl ClientSegment {
    /// Asks the server that listens at `path` for a segment.
    ///
    /// # Errors
    /// The connection broke, or the server sent no usable segment.
    pub async fn ask(path: &Path, client_name: &str, patience: Duration) -> Result<Answer, StreamError> {
        let mut link = LocalLink::connect(path, patience).await?;
        let request = ShortCircuitShmRequestProto { client_name: client_name.to_owned(), trace_info: None };
        link.send(Opcode::RequestShortCircuitShm, &request).await?;
        let answer: ShortCircuitShmResponseProto = link.message().await?;
        let (Some(id), true) = (answer.id, answer.status == Status::Success as i32) else {
            return Ok(Answer::No(answer.error.unwrap_or_default()));
        };
        let (_, mut files) = link.descriptors().await?;
        let Some(file) = files.pop() else {
            return Ok(Answer::No("the server passed no descriptor for the shared memory".into()));
        };
        Ok(Answer::Made(Arc::new(Self {
            path: path.to_owned(),
            id,
            memory: Segment::map(file)?,
            link,
            taken: Mutex::new([false; SLOTS]),
            is_given_up: AtomicBool::new(false),
        })))
    }

    /// Whether the server still writes into it.
    pub fn is_alive(&self) -> bool {
        !self.is_given_up.load(Ordering::Acquire) && self.link.is_quiet()
    }

    /// Nothing that stands in it counts any more.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
    }

    /// Takes a free slot and marks it as valid.
    fn take(&self) -> Option<usize> {
        let mut taken = self.taken.lock();
        let index = taken.iter().position(|is_taken| !is_taken)?;
        self.memory.word(index)?.store(VALID, Ordering::Release);
        taken[index] = true;
        Some(index)
    }

    /// Frees a slot that the server has given up. True if no slot is taken now.
    pub fn free(&self, index: usize) -> bool {
        let mut taken = self.taken.lock();
        taken[index] = false;
        taken.iter().all(|is_taken| !is_taken)
    }

    pub fn slot(&self, index: usize) -> ShortCircuitShmSlotProto {
        ShortCircuitShmSlotProto { shm_id: self.id, slot_idx: index as i32 }
    }
}

impl SlotHold {
    /// Whether the replica that the slot stands for may be read.
    pub fn is_valid(&self) -> bool {
        let word = self.segment.memory.word(self.index);
        word.is_some_and(|word| word.load(Ordering::Acquire) & VALID != 0) && self.segment.is_alive()
    }

    /// Whether its server has gone meanwhile: what another one says of the slot means nothing.
    pub fn is_orphaned(&self) -> bool {
        !self.segment.is_alive()
    }

    pub fn to_proto(&self) -> ShortCircuitShmSlotProto {
        self.segment.slot(self.index)
    }
}

impl Drop for SlotHold {
    fn drop(&mut self) {
        // With the runtime, the task that listens may be gone; then the connection is, and the server has dropped the segment.
        let _ = self.releases.send(Release { segment: self.segment.clone(), index: self.index });
    }
}

impl Segments {
    /// A slot of the server that listens at `path`. `None`: it gives none, and `refused` says why.
    ///
    /// # Errors
    /// Those of [`ClientSegment::ask`].
    pub async fn take(
        &self,
        path: &Path,
        client_name: &str,
        patience: Duration,
        releases: &UnboundedSender<Release>,
        refused: impl FnOnce(String),
    ) -> Result<Option<SlotHold>, StreamError> {
        let hold = |segment: &Arc<ClientSegment>, index| SlotHold {
            segment: segment.clone(),
            index,
            releases: releases.clone(),
        };
        if let Some((segment, index)) = self.take_known(path) {
            return Ok(Some(hold(&segment, index)));
        }
        let _asking = self.asking.lock().await;
        if let Some((segment, index)) = self.take_known(path) {
            return Ok(Some(hold(&segment, index)));
        }
        match ClientSegment::ask(path, client_name, patience).await? {
            Answer::Made(segment) => {
                let slot = segment.take().map(|index| hold(&segment, index));
                self.of_all.lock().push(segment);
                Ok(slot)
            }
            Answer::No(why) => {
                refused(why);
                Ok(None)
            }
        }
    }

    fn take_known(&self, path: &Path) -> Option<(Arc<ClientSegment>, usize)> {
        let mut all = self.of_all.lock();
        all.retain(|segment| segment.is_alive());
        all.iter()
            .filter(|segment| segment.path == path)
            .find_map(|segment| Some((segment.clone(), segment.take()?)))
    }

    /// Frees a slot; a segment without any ends.
    pub fn free(&self, release: &Release) {
        // Under the lock, so that nobody takes a slot of a segment that ends.
        let mut all = self.of_all.lock();
        if release.segment.free(release.index) {
            all.retain(|segment| !Arc::ptr_eq(segment, &release.segment));
        }
    }

    /// Drops a segment of which its server and this client may think differently.
    pub fn drop_segment(&self, segment: &Arc<ClientSegment>) {
        segment.give_up();
        self.of_all.lock().retain(|other| !Arc::ptr_eq(other, segment));
    }

    pub fn count(&self) -> usize {
        self.of_all.lock().len()
    }
}
