//! Looking again at what lies on the disk and is written no more: sealed segments and images. A rotten file is
//! replaced by another member's copy, which must have the same entries to the last bit of their chain.
//!
//! A look goes through one file, in pieces, beside the running service: `pace` is called after each and may wait, or
//! end the look.

use crate::{
    Checkpoint, ImageReader, Journal, StateError,
    block::{self, Footer, SegmentHeader},
    flow::Shared,
    index::Place,
    read::SegmentReader,
    record::BLOCK_BYTES,
    segment::{SegmentContent, write_sealed},
    store::IMAGES,
};
use base::{Entry, Epoch, LogPoint, Sn};
use env::{OpenMode, pulse};
use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

/// A segment that is written no more, by its first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sealed {
    pub epoch: Epoch,
    pub start: Sn,
}

/// The result of a look at a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    Sound,
    /// The segment is not there any more: it was purged, or cut off.
    Gone,
    /// `pace` has ended the look.
    Ended,
    Rotten(Rot),
}

/// A file that does not hold what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rot {
    pub file: PathBuf,
    /// A sentence: where, what was expected, what was found.
    pub what: String,
}

/// Told how many bytes were read; false: enough.
pub type Pace<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Under which a segment is written anew; a start removes what is left of it.
const MENDING: &str = "mending.tmp";
const PIECE_BYTES: u64 = 256 << 10;

impl Journal {
    /// The segments that are written no more, oldest first.
    pub fn sealed(&self) -> Vec<Sealed> {
        self.shared().sealed()
    }

    /// Reads a sealed segment from its header to its footer. Blocks.
    pub fn look_at_segment(&self, sealed: Sealed, pace: Pace<'_>) -> Look {
        self.shared().look_at_segment(sealed, pace)
    }

    /// The entries that a sealed segment holds or should: the entry before the first, and the last one. `None`: neither it nor
    /// those beside it tell.
    pub fn bounds_of(&self, sealed: Sealed) -> Option<(LogPoint, LogPoint)> {
        let place = self.shared().place_of_sealed(sealed)?;
        self.shared().bounds_of(&place)
    }

    /// Writes a sealed segment anew with these entries, which must be all that [`Journal::bounds_of`] says. Blocks. A crash leaves
    /// the old file or the new one.
    ///
    /// # Errors
    /// [`StateError::Io`] if the segment is not among the sealed ones any more, the entries are not those that it
    /// should hold, or the new file cannot be written.
    pub fn mend_segment(&self, sealed: Sealed, entries: &[Entry]) -> Result<(), StateError> {
        self.shared().mend_segment(sealed, entries)
    }

    /// Reads one of the store's images and holds it against its checkpoint. Blocks.
    pub fn look_at_image(&self, checkpoint: &Checkpoint, pace: Pace<'_>) -> Look {
        self.shared().look_at_image(checkpoint, pace)
    }
}

impl Shared {
    pub(crate) fn sealed(&self) -> Vec<Sealed> {
        let index = self.index.lock();
        let sealed = index.places().iter().filter(|place| !place.is_open);
        sealed.map(|place| Sealed { epoch: place.epoch, start: place.start }).collect()
    }

    pub(crate) fn place_of_sealed(&self, sealed: Sealed) -> Option<Place> {
        let index = self.index.lock();
        let place = index.place_of(sealed.start)?;
        let is_it = place.start == sealed.start && place.epoch == sealed.epoch && !place.is_open;
        is_it.then(|| place.without_marks())
    }

    fn look_at_segment(&self, sealed: Sealed, pace: Pace<'_>) -> Look {
        let Some(place) = self.place_of_sealed(sealed) else { return Look::Gone };
        match self.read_segment(&place, pace, &mut |_| true) {
            Ok(Some(_)) => Look::Sound,
            Ok(None) => Look::Ended,
            Err(_) if self.place_of_sealed(sealed).is_none() => Look::Gone,
            Err(error) => {
                Look::Rotten(Rot { file: place.path(&self.log_directory()), what: error.to_string() })
            }
        }
    }

    /// The entry before its first one and its last one, after `take` has had all between; `None` where it was not read to
    /// its end, because `pace` or `take` said so.
    ///
    /// # Errors
    /// `InvalidData` if the segment is damaged; or its file cannot be read, with `NotFound` if it is gone.
    pub(crate) fn read_segment(
        &self,
        place: &Place,
        pace: Pace<'_>,
        take: &mut dyn FnMut(Entry) -> bool,
    ) -> io::Result<Option<(LogPoint, LogPoint)>> {
        let mut reader = SegmentReader::open(self, place, Sn(0))?;
        let (mut told, mut count) = (0, 0);
        let previous = reader.last;
        if previous.id.sn.0 + 1 != place.start.0 {
            return Err(reader.damaged("a header of the segment's own", &previous.id.to_string()));
        }
        while let Some(entry) = reader.next()? {
            if !take(entry) {
                return Ok(None);
            }
            count += 1;
            if reader.end - told >= PIECE_BYTES {
                if !pace(reader.end - told) {
                    return Ok(None);
                }
                told = reader.end;
            }
        }
        let footer_at = reader.position.next_multiple_of(BLOCK_BYTES);
        let footer = Footer::decode(reader.bytes(footer_at, BLOCK_BYTES as usize)?);
        let is_whole = footer.is_some_and(|footer| {
            (footer.group, footer.end, footer.count, footer.offset)
                == (self.group, reader.last, count, footer_at)
        });
        if !is_whole {
            return Err(
                reader.damaged(&format!("a footer after {count} entries"), "another one, or half of it")
            );
        }
        // All of it was read, whether or not there is time for more.
        pace(reader.end - told);
        Ok(Some((previous, reader.last)))
    }

    /// Its neighbours are asked first: they lie in other files.
    fn bounds_of(&self, place: &Place) -> Option<(LogPoint, LogPoint)> {
        let (before, behind) = {
            let index = self.index.lock();
            let places = index.places();
            let at = places.binary_search_by_key(&place.start, |place| place.start).ok()?;
            (at.checked_sub(1).map(|at| places[at].clone()), places.get(at + 1).cloned())
        };
        let first = LogPoint::default();
        let previous = before
            .and_then(|before| self.footer_of(&before))
            .map(|footer| footer.end)
            .or_else(|| self.header_of(place).map(|header| header.previous))
            .or((place.start == Sn(1)).then_some(first))?;
        let end = behind
            .and_then(|behind| self.header_of(&behind))
            .map(|header| header.previous)
            .or_else(|| self.footer_of(place).map(|footer| footer.end))?;
        let fits = previous.id.sn.0 + 1 == place.start.0 && end.id.sn >= place.start;
        fits.then_some((previous, end))
    }

    fn header_of(&self, place: &Place) -> Option<SegmentHeader> {
        let mut block = vec![0; BLOCK_BYTES as usize];
        let path = place.path(&self.log_directory());
        let file = self.env.disk.open(&path, OpenMode::Read).ok()?;
        env::disk::read_exact_at(&*file, &mut block, 0).ok()?;
        SegmentHeader::decode(&block).filter(|header| header.group == self.group)
    }

    pub(crate) fn footer_of(&self, place: &Place) -> Option<Footer> {
        if place.is_open {
            return None;
        }
        let mut block = vec![0; BLOCK_BYTES as usize];
        let path = place.path(&self.log_directory());
        let file = self.env.disk.open(&path, OpenMode::Read).ok()?;
        let at = file.length().ok()?.checked_sub(BLOCK_BYTES)?;
        env::disk::read_exact_at(&*file, &mut block, at).ok()?;
        Footer::decode(&block).filter(|footer| footer.group == self.group && footer.offset == at)
    }

    fn mend_segment(&self, sealed: Sealed, entries: &[Entry]) -> Result<(), StateError> {
        let log = self.log_directory();
        let invalid = |what: &str| StateError::Io {
            file: log.join(block::file_name(sealed.epoch, sealed.start, false)),
            source: io::Error::new(io::ErrorKind::InvalidData, what.to_owned()),
        };
        let gone = || invalid("the segment is not among the sealed ones any more");
        let cuts = self.inner.lock().cuts;
        let place = self.place_of_sealed(sealed).ok_or_else(gone)?;
        let (previous, end) =
            self.bounds_of(&place).ok_or_else(|| invalid("nothing tells what it should hold"))?;
        let mut at = previous;
        for entry in entries {
            let follows = entry.id.sn.0 == at.id.sn.0 + 1
                && entry.previous_chain == at.chain
                && entry.id.epoch >= at.id.epoch;
            if !follows {
                return Err(invalid("the entries to mend it with do not follow each other"));
            }
            at = entry.point();
        }
        if at != end || entries.is_empty() {
            return Err(invalid("the entries to mend it with are not those that it should hold"));
        }
        let (path, mending) = (place.path(&log), log.join(MENDING));
        let io = |source| StateError::Io { file: path.clone(), source };
        let (group, store_uuid, epoch) = (self.group, self.store_uuid, place.epoch);
        let content = SegmentContent { group, store_uuid, epoch, previous, entries };
        write_sealed(&*self.env.disk, &mending, &content, self.settings.reserve_bytes).map_err(io)?;
        match self.replace_sealed(sealed, &mending, cuts).map_err(io)? {
            true => Ok(()),
            false => Err(gone()),
        }
    }

    /// Puts a file in the place of a sealed segment, with the entries that it had while the log had been cut so many times. False:
    /// they are not wanted any more, and neither is the file.
    pub(crate) fn replace_sealed(&self, sealed: Sealed, made: &Path, cuts: u64) -> io::Result<bool> {
        let log = self.log_directory();
        let disk = &*self.env.disk;
        // Nobody removes the segment meanwhile, or cuts the log off: it would be there again.
        let _purge = pulse::lock(&self.purge);
        let _file = pulse::lock(&self.file);
        let is_cut = self.inner.lock().cuts != cuts;
        let Some(place) = self.place_of_sealed(sealed).filter(|_| !is_cut) else {
            disk.remove_file(made)?;
            return Ok(false);
        };
        self.index.lock().turn_life(sealed.start);
        let replaced = disk.rename(made, &place.path(&log)).and_then(|()| disk.sync_directory(&log));
        self.index.lock().turn_life(sealed.start);
        replaced.map(|()| true)
    }

    fn look_at_image(&self, checkpoint: &Checkpoint, pace: Pace<'_>) -> Look {
        let is_kept = || pulse::lock(&self.file).state.checkpoints.contains(checkpoint);
        if !is_kept() {
            return Look::Gone;
        }
        match self.read_image(checkpoint, pace) {
            Ok(true) => Look::Sound,
            Ok(false) => Look::Ended,
            Err(_) if !is_kept() => Look::Gone,
            Err(error) => {
                let file = self.directory.join(IMAGES).join(checkpoint.file_name());
                Look::Rotten(Rot { file, what: error.to_string() })
            }
        }
    }

    fn read_image(&self, checkpoint: &Checkpoint, pace: Pace<'_>) -> io::Result<bool> {
        let invalid = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what.to_owned()));
        let mut reader = ImageReader::open(self.open_image(checkpoint)?)?;
        if reader.header().at != checkpoint.at || reader.header().group != self.group {
            return invalid("it is the image of another place");
        }
        let mut piece = vec![0; PIECE_BYTES as usize];
        loop {
            let count = reader.read(&mut piece)?;
            if count == 0 {
                break;
            }
            if !pace(count as u64) {
                return Ok(false);
            }
        }
        if reader.finish()? != checkpoint.sha256 {
            return invalid("its sha256 is not the one in its checkpoint");
        }
        Ok(true)
    }
}
