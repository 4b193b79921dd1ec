//! Requests that have ended a server, so that they end no other one.
//!
//! A client repeats a call that was not answered, at whichever member leads next: a request that makes a server panic
//! would end one member after the other. So each thread has the request that it works on in hand ([`in_hand`]). When it
//! panics, that request is told to the other members over the connections that are there, and written to a file beside
//! the store with one write and one sync, before the process ends. From then on every member that knows of it refuses
//! this request ([`notes`]).
//!
//! Members tell each other their notes whenever a connection is made, and pass on those that are new to them. Taking
//! the file away under a server that runs clears the notes of all.

mod in_hand;
pub mod notes;
#[cfg(feature = "planted-panics")]
pub mod planted;

pub use in_hand::{InHand, note_request_in_hand};

use base::MemberId;
use bytes::Bytes;
use env::{Disk, Env, File, OpenMode, disk::read_exact_at};
use notes::{Fingerprint, Note, Notes, TEXT_BYTES_MAX, word};
use parking_lot::Mutex;
use proto::exception;
use rpc::{Call, RpcError};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The name of the file, in the metadata directory.
pub const FILE_NAME: &str = "fatal-requests";
/// Larger requests are not hashed: that would take longer than a process that ends has time for.
const REQUEST_BYTES_MAX: usize = 32 << 20;
/// How long a process that ends waits for each lock: the thread that has panicked may hold it.
pub const LOCK_PATIENCE: Duration = Duration::from_millis(100);
/// How long the connections' threads have to send what they are told, before the process ends.
const SENDING: Duration = Duration::from_millis(50);

/// This member's notes of the requests that have ended a server.
pub struct Fatal {
    /// Tells it from others in this process.
    number: u64,
    env: Env,
    path: PathBuf,
    member: MemberId,
    notes: Mutex<Notes>,
    /// The number of notes. It is almost always 0, and then nothing else is looked at.
    count: AtomicUsize,
    next_number: AtomicU64,
    refused: AtomicU64,
    file: Mutex<Open>,
    /// Something is not in the file yet.
    is_changed: AtomicBool,
    tell: OnceLock<Tell>,
}

/// Tells all other members, without waiting for anything for longer than [`LOCK_PATIENCE`].
type Tell = Box<dyn Fn(Bytes) + Send + Sync>;

/// The file, open before it is needed.
#[derive(Default)]
struct Open {
    file: Option<Arc<dyn File>>,
    end: u64,
    /// The file could not be written the last time, and that was logged.
    fails: bool,
}

impl Fatal {
    /// Begins with the notes that the directory has. The server starts even if they cannot be read.
    pub fn open(env: &Env, directory: &Path, member: MemberId) -> Arc<Self> {
        let path = directory.join(FILE_NAME);
        let (notes, open) = load(&*env.disk, &path).unwrap_or_else(|error| {
            tracing::error!(
                file = %path.display(), %error,
                "requests that have ended a server cannot be read; this member knows what others tell it"
            );
            (Notes::default(), Open::default())
        });
        for note in notes.all() {
            tracing::warn!(file = %path.display(), "this request has ended a server and is refused: {}", note.line().trim_end());
        }
        let fatal = Arc::new(Self {
            number: in_hand::next_number(),
            env: env.clone(),
            path,
            member,
            count: AtomicUsize::new(notes.all().len()),
            next_number: AtomicU64::new(notes.next_number()),
            refused: AtomicU64::new(0),
            is_changed: AtomicBool::new(open.file.is_none()),
            notes: Mutex::new(notes),
            file: Mutex::new(open),
            tell: OnceLock::new(),
        });
        fatal.save();
        in_hand::register(&fatal);
        fatal
    }

    /// Sets the function that tells the other members. It is set once, before any request is in hand.
    pub fn tell_with(&self, tell: impl Fn(Bytes) + Send + Sync + 'static) {
        let _ = self.tell.set(Box::new(tell));
    }

    fn tell(&self, text: String) {
        if let Some(tell) = self.tell.get() {
            tell(text.into());
        }
    }

    /// This call, to be held by the thread that works on it.
    pub fn in_hand(&self, call: &Call) -> InHand {
        InHand::new(self.number, call)
    }

    /// The refusal of a call that has ended a server before; `None` for all others.
    pub fn refusal(&self, call: &Call) -> Option<RpcError> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let notes = self.notes.lock();
        let note = notes.find(call.protocol, call.method, &call.request)?;
        self.refused.fetch_add(1, Ordering::Relaxed);
        let text = format!(
            "This {} request is refused: it has ended metadata server {} ({}), and would end another one. An operator finds it in \
             the file {FILE_NAME} of each metadata server's directory, and may let it through again by removing that file.",
            call.method,
            note.member,
            note.time(),
        );
        Some(RpcError::application(exception::IO, text))
    }

    /// How many are known, and how often one was refused here.
    pub fn numbers(&self) -> (u64, u64) {
        (self.count.load(Ordering::Relaxed) as u64, self.refused.load(Ordering::Relaxed))
    }

    /// The notes for another member to which a connection was made; `None` if there are none.
    pub fn text(&self) -> Option<Bytes> {
        let notes = self.notes.lock();
        notes.tells_something().then(|| notes.encode().into())
    }

    /// Takes in the notes of another member. New ones are passed on, because their sender may not reach all members.
    pub fn learn(&self, text: &[u8]) {
        let Some((told, malformed)) = Notes::decode(text) else {
            return tracing::warn!("another member tells of fatal requests in a form that is not known here");
        };
        if malformed > 0 {
            tracing::warn!(
                malformed,
                "another member tells of fatal requests in lines that make no sense here"
            );
        }
        let text = {
            let mut notes = self.notes.lock();
            if !notes.merge(told) {
                return;
            }
            self.publish(&notes);
            notes.encode()
        };
        self.tell(text);
        tracing::warn!(count = self.numbers().0, "requests that have ended a server are refused");
    }

    fn publish(&self, notes: &Notes) {
        self.count.store(notes.all().len(), Ordering::Relaxed);
        self.next_number.store(notes.next_number(), Ordering::Relaxed);
        self.is_changed.store(true, Ordering::Release);
    }

    /// Is called now and then by a thread that may wait for the disk: writes down what others have told, and sees
    /// whether an operator has taken the file away.
    pub fn look(&self) {
        let was_there = self.file.lock().file.is_some();
        if was_there && matches!(self.env.disk.exists(&self.path), Ok(false)) {
            self.clear();
        }
        self.save();
    }

    fn clear(&self) {
        *self.file.lock() = Open::default();
        self.is_changed.store(true, Ordering::Release);
        let text = {
            let mut notes = self.notes.lock();
            if notes.all().is_empty() {
                return;
            }
            notes.clear();
            self.publish(&notes);
            notes.encode()
        };
        tracing::warn!(file = %self.path.display(), "was taken away: no request is refused any more");
        self.tell(text);
    }

    fn save(&self) {
        if !self.is_changed.swap(false, Ordering::AcqRel) {
            return;
        }
        // A note that a process writes while it ends waits for this lock, and goes behind all this text.
        let mut open = self.file.lock();
        let text = self.notes.lock().encode();
        match store(&*self.env.disk, &self.path, text.as_bytes()) {
            Ok(file) => *open = Open { file: Some(file), end: text.len() as u64, fails: false },
            Err(error) => {
                if !open.fails {
                    tracing::error!(
                        file = %self.path.display(), %error,
                        "fatal requests cannot be written down; it is tried again"
                    );
                }
                open.fails = true;
                self.is_changed.store(true, Ordering::Release);
            }
        }
    }

    /// Tells the others that this request is ending this server, then writes it down. Takes a fraction of a second, and waits
    /// for no lock that the thread which has panicked may hold.
    fn note(&self, in_hand: &InHand) -> String {
        let bytes = in_hand.request.len();
        if bytes > REQUEST_BYTES_MAX {
            return format!("In hand was a request of {bytes} bytes, which is too large to be noted");
        }
        let note = Note {
            number: self.next_number.load(Ordering::Relaxed),
            member: self.member,
            at_ms: self.env.clock.timestamp().ms,
            protocol: in_hand.protocol.to_owned(),
            method: in_hand.method.to_owned(),
            bytes: bytes as u64,
            fingerprint: Fingerprint::of(&in_hand.request),
            user: word(&in_hand.caller.user),
            client: in_hand.client,
            call: in_hand.call,
        };
        let line = note.line();
        let mut told = Notes::default();
        told.add(note);
        self.tell(told.encode());
        let written = self.write_down(&line);
        if let Some(mut notes) = self.notes.try_lock_for(LOCK_PATIENCE) {
            notes.merge(told);
            self.publish(&notes);
        }
        std::thread::sleep(SENDING);
        let (file, line) = (self.path.display(), line.trim_end());
        match written {
            Ok(()) => format!("In hand was a request that is refused from now on, see {file}: {line}"),
            Err(why) => format!("In hand was a request that could not be noted in {file} ({why}): {line}"),
        }
    }

    fn write_down(&self, line: &str) -> Result<(), String> {
        let mut open = self.file.try_lock_for(LOCK_PATIENCE).ok_or("it is being written")?;
        let file = open.file.clone().ok_or("it could not be opened")?;
        file.write_at(line.as_bytes(), open.end).map_err(|error| error.to_string())?;
        open.end += line.len() as u64;
        file.sync_data().map_err(|error| error.to_string())
    }
}

/// A file that cannot be gone on with is not open in the answer: it is written anew.
fn load(disk: &dyn Disk, path: &Path) -> io::Result<(Notes, Open)> {
    if !disk.exists(path)? {
        return Ok((Notes::default(), Open::default()));
    }
    let file = disk.open(path, OpenMode::ReadWrite)?;
    let length = file.length()?;
    let mut text = vec![0; length.min(TEXT_BYTES_MAX as u64) as usize];
    read_exact_at(&*file, &mut text, 0)?;
    let Some((notes, malformed)) = Notes::decode(&text) else {
        let kept = path.with_extension("unreadable");
        tracing::warn!(
            file = %path.display(), kept = %kept.display(),
            "is no list of fatal requests that this release knows: it is put aside, and another one begun"
        );
        disk.rename(path, &kept)?;
        return Ok((Notes::default(), Open::default()));
    };
    if malformed > 0 {
        tracing::warn!(file = %path.display(), malformed, "lines that make no sense are passed over");
    }
    let is_whole = notes.encode().as_bytes() == text && length == text.len() as u64;
    let file = is_whole.then_some(file);
    Ok((notes, Open { file, end: length, fails: false }))
}

/// Replaces the file; the new one stays open.
fn store(disk: &dyn Disk, path: &Path, text: &[u8]) -> io::Result<Arc<dyn File>> {
    let temporary = path.with_extension("tmp");
    let file = disk.open(&temporary, OpenMode::CreateOrTruncate)?;
    file.write_at(text, 0)?;
    file.sync_data()?;
    disk.rename(&temporary, path)?;
    if let Some(directory) = path.parent() {
        disk.sync_directory(directory)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
