//! Images of the namespace, written beside the running service.
//!
//! The writer's thread takes the snapshot between two turns, where the tree and the end of the log agree;
//! this module's thread writes it, and has the entry that makes it usable appended and committed.

use crate::{core::Core, turn::Turn};
use base::{LogPoint, Moment};
use namespace::Snapshot;
use parking_lot::{Condvar, Mutex};
use std::{io, sync::Arc, time::Duration};

type Written = Box<dyn FnOnce(Result<(), String>) + Send>;

/// Where requests for an image meet the thread that writes it.
#[derive(Default)]
pub struct Trigger {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Written>,
    closed: bool,
}

impl Trigger {
    /// Asks for an image that contains everything acknowledged so far.
    pub fn request(&self, written: Written) {
        self.state.lock().waiting.push(written);
        self.wake.notify_all();
    }

    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    /// Waits for a request or for `period`. None: the server stops.
    fn wait(&self, period: Duration) -> Option<Vec<Written>> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() && !state.closed {
            self.wake.wait_for(&mut state, period);
        }
        (!state.closed).then(|| std::mem::take(&mut state.waiting))
    }
}

/// How often the thread looks whether an image is due.
const LOOK_PERIOD: Duration = Duration::from_millis(1_000);

/// Runs on a thread of its own until [`Trigger::close`].
pub fn run(core: &Arc<Core>) {
    let mut last = LastImage { at: core.moment(), edits: core.commit.committed().0 };
    while let Some(requests) = core.checkpoint.wait(LOOK_PERIOD) {
        // Ready before the open segment is full, so that no writer waits for a new one to be made.
        if let Err(error) = core.replica.journal().prepare_segment()
            && core.commit.failure().is_none()
        {
            tracing::warn!(error = chain(&error), "the next segment could not be prepared");
        }
        if requests.is_empty() && !last.is_due(core) {
            continue;
        }
        let result = write(core);
        match &result {
            Ok(at) => {
                last = LastImage { at: core.moment(), edits: at.id.sn.0 };
                tracing::info!(%at, "image written");
            }
            Err(reason) => {
                // Service goes on from the journal; the next look tries again after a full period.
                last.at = core.moment();
                tracing::error!(reason, "the image could not be written");
            }
        }
        for written in requests {
            written(result.as_ref().map(|_| ()).map_err(String::clone));
        }
    }
}

struct LastImage {
    at: Moment,
    /// The sn that it contains.
    edits: u64,
}

impl LastImage {
    fn is_due(&self, core: &Core) -> bool {
        let edits = core.commit.committed().0.saturating_sub(self.edits);
        // The checkpoint's own entry does not make another one due.
        edits >= core.config.edits_per_image
            || (edits > 1 && core.moment().ms_since(self.at) >= core.config.image_period_ms)
    }
}

fn write(core: &Arc<Core>) -> Result<LogPoint, String> {
    let (snapshot, at) = take_snapshot(core)?;
    let journal = core.replica.journal();
    let checkpoint = journal
        .write_image(at, |writer| snapshot.write(&mut |bytes: &[u8]| writer.write(bytes)))
        .map_err(|error| chain(&error))?;
    drop(snapshot);

    let payload = checkpoint.encode();
    wait_for(|done| core.write(Box::new(move |turn: &mut Turn<'_>| turn.append_checkpoint(payload, done))))?;
    journal.checkpoint_committed(&checkpoint).map_err(|error| chain(&error))?;
    Ok(at)
}

/// The tree at a place of the log that has committed.
fn take_snapshot(core: &Arc<Core>) -> Result<(Snapshot, LogPoint), String> {
    let slot = Arc::new(Mutex::new(None));
    let taken = slot.clone();
    wait_for(|done| {
        core.write(Box::new(move |turn: &mut Turn<'_>| {
            turn.at_the_end(Box::new(move |namespace, end| {
                *taken.lock() = Some((namespace.snapshot(), end))
            }));
            turn.after_commit(move |committed| done(committed.map_err(str::to_owned)));
        }))
    })?;
    slot.lock().take().ok_or_else(|| "the writer stopped".to_owned())
}

/// Runs `ask` and waits until its callback was called.
fn wait_for(ask: impl FnOnce(Written)) -> Result<(), String> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    ask(Box::new(move |result| {
        let _ = sender.send(result);
    }));
    receiver.recv().unwrap_or_else(|_| Err("the server is stopping".into()))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// Reads an image back into a namespace; see [`journal::Recovery::load_image`].
pub fn read(seed: u64, reader: &mut journal::ImageReader, size: u64) -> io::Result<namespace::Namespace> {
    namespace::Namespace::read_image(seed, reader, size)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
