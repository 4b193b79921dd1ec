//! Writing a segment anew, up to one of its entries, with a footer behind it.

use crate::{
    block::{self, Footer},
    index::Place,
    record::BLOCK_BYTES,
};
use base::{GroupId, LogPoint};
use env::{Disk, File, OpenMode};
use std::{io, path::Path};

/// The name under which a segment is written anew.
const SEALING: &str = "sealing.tmp";
const COPY_BYTES: usize = 1 << 20;

/// Replaces a segment by what stands in it before `offset`, where the record of `last` ends. A crash leaves
/// either; where the open one and the sealed one are both there, the sealed one counts.
pub(crate) fn seal(
    disk: &dyn Disk,
    log: &Path,
    group: GroupId,
    place: &Place,
    offset: u64,
    last: LogPoint,
) -> io::Result<()> {
    let from = disk.open(&place.path(log), OpenMode::Read)?;
    seal_from(disk, log, group, place, last, offset, |to| {
        let mut buffer = vec![0; COPY_BYTES];
        let mut at = 0;
        while at < offset {
            let count = buffer.len().min((offset - at) as usize);
            env::disk::read_exact_at(&*from, &mut buffer[..count], at)?;
            to.write_at(&buffer[..count], at)?;
            at += count as u64;
        }
        Ok(())
    })
}

/// Seals a segment like [`seal`], but `write` puts the segment's bytes before `offset` into the new file.
pub(crate) fn seal_from(
    disk: &dyn Disk,
    log: &Path,
    group: GroupId,
    place: &Place,
    last: LogPoint,
    offset: u64,
    write: impl FnOnce(&dyn File) -> io::Result<()>,
) -> io::Result<()> {
    let path = place.path(log);
    let footer_at = offset.next_multiple_of(BLOCK_BYTES);
    let footer = Footer {
        version: block::VERSION,
        group,
        end: last,
        count: last.id.sn.0 + 1 - place.start.0,
        offset: footer_at,
    };
    let sealing = log.join(SEALING);
    let to = disk.open(&sealing, OpenMode::CreateOrTruncate)?;
    write(&*to)?;
    // The bytes between the last entry and the footer were never written: they read as zeros.
    to.write_at(&footer.encode(), footer_at)?;
    to.sync_data()?;
    disk.rename(&sealing, &log.join(block::file_name(place.epoch, place.start, false)))?;
    disk.sync_directory(log)?;
    if place.is_open {
        disk.remove_file(&path)?;
    }
    Ok(())
}
