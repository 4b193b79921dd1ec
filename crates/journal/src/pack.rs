//! Packing: a sealed segment is written anew without the room that its batches left.
//!
//! A batch takes a multiple of 4,096 bytes, since a sync must not touch what an earlier one made durable. Edits that come one
//! by one therefore take a block each, of which an entry fills some 200 bytes. Once the segment is sealed nothing is synced
//! into it any more, and its entries fit into a twentieth of it.

use crate::{
    Journal, Sealed, StateError, block,
    flow::Shared,
    record::{BLOCK_BYTES, record_bytes},
    segment::{SegmentContent, write_sealed},
};
use base::Entry;
use std::io;

/// Under which a segment is packed; a start removes what is left of it.
const PACKING: &str = "packing.tmp";
/// A segment that has fewer bytes an entry is not read: what its batches leave free is not worth it.
const SPARSE_BYTES: u64 = 512;

/// A segment that was packed, with its size before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    pub sealed: Sealed,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

impl Journal {
    /// Looks at the next sealed segment that was not looked at before, and writes it anew if that frees half of it. `None`: none is
    /// left. Blocks; to be called now and then from a background thread. A crash leaves the old file or the new one.
    ///
    /// # Errors
    /// [`StateError::Io`] if the segment cannot be read, or is damaged; or the new file cannot be written, on a full
    /// disk for example. The old file stays then.
    pub fn pack_segment(&self) -> Result<Option<Packed>, StateError> {
        let shared = self.shared();
        loop {
            let next = {
                let mut packed = shared.packed.lock();
                let next =
                    shared.sealed().into_iter().find(|sealed| packed.is_none_or(|last| *sealed > last));
                *packed = next.or(*packed);
                next
            };
            let Some(sealed) = next else { return Ok(None) };
            let packed = shared.pack(sealed).map_err(|source| StateError::Io {
                file: shared.log_directory().join(block::file_name(sealed.epoch, sealed.start, false)),
                source,
            })?;
            if packed.is_some() {
                return Ok(packed);
            }
        }
    }
}

impl Shared {
    fn pack(&self, sealed: Sealed) -> io::Result<Option<Packed>> {
        let cuts = self.inner.lock().cuts;
        let Some(place) = self.place_of_sealed(sealed) else { return Ok(None) };
        let Some(footer) = self.footer_of(&place) else { return Ok(None) };
        let bytes_before = footer.offset + BLOCK_BYTES;
        if bytes_before < footer.count.saturating_mul(SPARSE_BYTES) {
            return Ok(None);
        }
        let most = (bytes_before / 2).saturating_sub(2 * BLOCK_BYTES);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let read = self.read_segment(&place, &mut |_| true, &mut |entry: Entry| {
            bytes += record_bytes(entry.payload.len()) as u64;
            entries.push(entry);
            bytes <= most
        });
        let (previous, _) = match read {
            Ok(Some(bounds)) => bounds,
            Ok(None) => return Ok(None),
            Err(_) if self.place_of_sealed(sealed).is_none() => return Ok(None),
            Err(error) => return Err(error),
        };
        let packing = self.log_directory().join(PACKING);
        let (group, store_uuid, epoch) = (self.group, self.store_uuid, place.epoch);
        let content = SegmentContent { group, store_uuid, epoch, previous, entries: &entries };
        // Half of the reserve is enough to leave: the room that it takes comes back at once, and more.
        let written = write_sealed(&*self.env.disk, &packing, &content, self.settings.reserve_bytes / 2)
            .and_then(|()| self.env.disk.length(&packing))
            .and_then(|bytes_after| Ok((bytes_after, self.replace_sealed(sealed, &packing, cuts)?)));
        match written {
            Ok((bytes_after, true)) => Ok(Some(Packed { sealed, bytes_before, bytes_after })),
            Ok((_, false)) => Ok(None),
            Err(error) => {
                // A file that stays is removed at the next start.
                let _ = self.env.disk.remove_file(&packing);
                Err(error)
            }
        }
    }
}
