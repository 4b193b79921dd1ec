//! The file of a stream, and what is done to it in a turn.

use super::plan::{Kind, Piece};
use env::File;
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// More is not taken beforehand, whatever a client says of its block.
const ROOM_BYTES_MAX: u64 = 1 << 30;

/// The checksums of a gigabyte.
const SUMS_BYTES_MAX: u64 = 8 << 20;

/// The file of a stream as the volume's thread sees it. The model of a disk in `clover bench disks` drives the same.
pub struct StreamFile {
    /// It is known with the first bytes.
    file: OnceLock<Arc<dyn File>>,
    /// The file of checksums, which a reader reads beside it.
    sums: Option<Arc<dyn File>>,
    room: Mutex<Room>,
    drops_behind: AtomicBool,
    failure: OnceLock<io::Error>,
}

/// The room that the file takes on the disk beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// So many bytes are wanted; 0 for none.
    Wanted(u64),
    /// The file has its room, and its writer does not know yet.
    Taken,
    /// Nothing is taken any more.
    Over,
}

impl StreamFile {
    /// `room_bytes` is what the file may grow to, 0 if that is not known.
    pub fn new(room_bytes: u64, drops_behind: bool) -> Self {
        Self {
            file: OnceLock::new(),
            sums: None,
            room: Mutex::new(Room::Wanted(room_bytes.min(ROOM_BYTES_MAX))),
            drops_behind: AtomicBool::new(drops_behind),
            failure: OnceLock::new(),
        }
    }

    /// The file of a reader, and that of its checksums.
    pub fn of_reader(file: &Arc<dyn File>, sums: Option<Arc<dyn File>>) -> Self {
        Self { file: OnceLock::from(file.clone()), sums, ..Self::new(0, false) }
    }

    /// Names the file; later names are ignored.
    pub fn set_file(&self, file: &Arc<dyn File>) {
        self.file.get_or_init(|| file.clone());
    }

    pub fn set_drops_behind(&self, drops_behind: bool) {
        self.drops_behind.store(drops_behind, Ordering::Relaxed);
    }

    /// Why bytes could not be written out: the first failure.
    pub fn failure(&self) -> Option<io::Error> {
        let error = self.failure.get()?;
        Some(
            error
                .raw_os_error()
                .map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error),
        )
    }

    /// Has a piece begin: its write-out, or its read-ahead.
    pub fn begin(&self, piece: &Piece) {
        let Some(file) = self.file.get() else { return };
        let begun = match piece.kind {
            Kind::Write => {
                // A file that is merely open, and written now and then, takes no room.
                if !piece.is_due {
                    self.take_room(&**file, piece.end);
                }
                file.begin_write_out(piece.begin, piece.bytes())
            }
            Kind::Read => {
                if piece.is_first
                    && let Some(sums) = &self.sums
                {
                    // Few bytes, at another place: all of them at once, and not between the runs.
                    let read =
                        sums.length().and_then(|length| sums.begin_read_ahead(0, length.min(SUMS_BYTES_MAX)));
                    self.note(piece, read);
                }
                file.begin_read_ahead(piece.begin, piece.bytes())
            }
        };
        self.note(piece, begun);
    }

    /// Waits until the medium has the piece, or memory has it.
    pub fn finish(&self, piece: &Piece) {
        let Some(file) = self.file.get() else { return };
        let mut finished = match piece.kind {
            Kind::Write => file.await_write_out(piece.begin, piece.bytes()),
            Kind::Read => file.await_read_ahead(piece.begin, piece.bytes()),
        };
        if piece.kind == Kind::Write && finished.is_ok() && self.drops_behind.load(Ordering::Relaxed) {
            finished = file.forget_cached(piece.begin, piece.bytes());
        }
        self.note(piece, finished);
    }

    fn note(&self, piece: &Piece, result: io::Result<()>) {
        // A reader meets the same error when it reads, and tells what follows from it.
        if let Err(error) = result
            && piece.kind == Kind::Write
        {
            let Piece { begin, end, .. } = *piece;
            tracing::error!(%error, begin, end, "a replica's bytes are in memory, and the disk does not take them");
            let _ = self.failure.set(error);
        }
    }

    /// Before the first bytes go out, so that the file lies in one piece. A block without it is written as well.
    fn take_room(&self, file: &dyn File, so_far: u64) {
        let mut room = self.room.lock();
        if let Room::Wanted(length) = *room {
            let is_taken = length > so_far
                && file
                    .reserve(length)
                    .inspect_err(|error| tracing::debug!(%error, length, "no room is taken beforehand"))
                    .is_ok();
            *room = if is_taken { Room::Taken } else { Room::Over };
        }
    }

    /// Whether room has been taken; says so once.
    pub fn has_taken_room(&self) -> bool {
        // While room is being taken the writer does not wait for that.
        let Some(mut room) = self.room.try_lock() else { return false };
        let is_taken = *room == Room::Taken;
        if is_taken {
            *room = Room::Over;
        }
        is_taken
    }

    /// No room is taken from now on.
    pub fn end(&self) {
        *self.room.lock() = Room::Over;
    }
}
