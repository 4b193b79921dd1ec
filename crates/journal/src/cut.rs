//! Cutting off the end of a log: entries that an active of a later epoch does not have.

use crate::{Journal, ReadLogError, StateError, flow::Shared, proof::proof_of, seal::seal};
use base::{Durable, LogPoint, Sn};
use env::pulse;
use parking_lot::MutexGuard;
use std::{io, path::PathBuf};

impl Journal {
    /// Cuts everything after this entry off the log, durably. Blocks; rare. A crash at any moment leaves the log as
    /// it was, or cut, or cut in part, never less than up to `after`. A cut of entries that have committed, or are in
    /// an image, is refused.
    ///
    /// Entries under way are written first; callbacks of appends must not wait for the caller of this.
    ///
    /// # Errors
    /// [`StateError::Cut`] if an entry behind `after` has committed or is in an image, or `after` is not in the log, or the
    /// log is damaged there. [`StateError::Io`] if the disk does not let it be read. [`StateError::Failed`] if the journal
    /// has failed, or fails now because the cut cannot be written.
    ///
    /// # Panics
    /// An entry was appended while the log was being cut.
    pub fn cut(&self, after: LogPoint) -> Result<Durable, StateError> {
        self.shared().cut(after)
    }
}

impl Shared {
    fn cut(&self, after: LogPoint) -> Result<Durable, StateError> {
        self.wait_until_written();
        // Held to the end: a change of the state meanwhile would note the old end of the log as durable.
        let mut file = pulse::lock(&self.file);
        let image = file.state.checkpoints.last().map_or(Sn(0), |checkpoint| checkpoint.at.id.sn);
        let (end, committed) = {
            let inner = self.inner.lock();
            if let Some(fault) = &inner.fault {
                return Err(StateError::Failed(fault.clone()));
            }
            (inner.end, inner.known_commit.max(file.state.known_commit).max(image))
        };
        let refuse = |what: String| Err(StateError::Cut { after, what });
        if after.id.sn < committed {
            return refuse(format!("entries up to {committed} have committed"));
        }
        let point = match self.read(after.id.sn, after.id.sn, 0) {
            Ok((point, _)) => point,
            Err(ReadLogError::Gone { first, .. }) => return refuse(format!("the log begins after {first}")),
            Err(ReadLogError::Failed { reason, disk: Some(kind), .. })
                if kind != io::ErrorKind::InvalidData =>
            {
                return Err(StateError::Io {
                    file: self.log_directory(),
                    source: io::Error::new(kind, reason),
                });
            }
            Err(error) => return refuse(error.to_string()),
        };
        if point != after {
            return refuse(format!("the log has {point} there"));
        }
        if after == end {
            // All of it was synced: nothing is under way.
            return Ok(proof_of(Ok(())).expect("written and synced"));
        }

        // First the state: from now on a log that ends earlier than the old one has lost nothing.
        file.state.next = Sn(after.id.sn.0 + 1);
        let mut culprit = PathBuf::new();
        let result = file
            .store(&*self.env.disk)
            .map_err(|(path, error)| {
                culprit = path;
                error
            })
            .and_then(|()| self.remove_behind(after, &mut culprit));
        match proof_of(result) {
            Ok(proof) => {
                let mut inner = self.inner.lock();
                assert_eq!(inner.end, end, "entries were appended while the log was being cut");
                let segment = inner.segment.take();
                self.index.lock().cut(after);
                (inner.end, inner.sent, inner.durable) = (after, after, after.id.sn);
                inner.cuts += 1;
                drop(inner);
                // The name of its file may be gone; the file itself goes with this: under no lock that appends take.
                drop(segment);
                tracing::info!(%after, %end, "the end of the log was cut off");
                Ok(proof)
            }
            Err(error) => {
                // The entries behind the cut may be gone already.
                self.inner.lock().durable = after.id.sn;
                let (fault, is_first) = self.refuse_more("cutting the log", culprit, &error);
                MutexGuard::unlock_fair(file);
                if is_first {
                    self.note_fault(&fault, !env::disk::is_want(&error));
                }
                Err(StateError::Failed(fault))
            }
        }
    }

    /// Removes the segments behind `after`, from the last one backwards. Each is gone for good before the one before it
    /// goes, so that at any moment the files are an unbroken beginning of the log.
    fn remove_behind(&self, after: LogPoint, culprit: &mut PathBuf) -> io::Result<()> {
        let disk = &*self.env.disk;
        let log = self.log_directory();
        loop {
            let last = self.index.lock().last().cloned();
            let Some(place) = last else { return Ok(()) };
            *culprit = place.path(&log);
            if place.start > after.id.sn {
                disk.remove_file(culprit)?;
                disk.sync_directory(&log)?;
                self.index.lock().forget(place.start);
                continue;
            }
            let (offset, last) = self.offset_after(&place, after.id.sn)?;
            assert_eq!(last, after, "the entry to cut after was just read");
            seal(disk, &log, self.group, &place, offset, last)?;
            disk.sync_directory(&log)?;
            self.index.lock().sealed_at(place.start, after.id.sn);
            return Ok(());
        }
    }
}
