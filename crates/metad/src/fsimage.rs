//! The namespace as a NameNode's image, for `hdfs dfsadmin -fetchImage`.
//!
//! The image is made when it is asked for, from a frozen tree, on threads that may wait: once to know its length and
//! checksum, which go ahead of it, and once more while the client takes it. Both times the same bytes come out. Nothing is put on a
//! disk, where an image would take the journal's room. One image is made at a time; others who ask are told so.

mod inodes;
mod references;
mod write;

use crate::{checkpoint, core::Core};
use base::{Moment, Sn};
use md5::{Digest, Md5};
use namespace::{FrozenTree, Namespace};
use proto::fsimage::file_name;
use std::{
    io::{self, Write},
    sync::Arc,
};
use tokio::sync::Semaphore;
use web::image_transfer::{Asked, Image, ImageSource, Refused};

/// Hadoop's client waits a minute for the first byte, and so does the server's end of the connection.
const PATIENCE_MS: u64 = 50_000;

/// Makes images for the page.
pub fn source(core: &Arc<Core>) -> ImageSource {
    let core = core.clone();
    let turns = Arc::new(Semaphore::new(1));
    Arc::new(move |asked| {
        let turn = turns.clone().try_acquire_owned().map_err(|_| {
            Refused::Busy("Another image is being made or sent. Ask again when it is through.".into())
        })?;
        let frozen = checkpoint::committed_tree(&core.partition).map_err(Refused::NotNow)?;
        let Sn(applied) = frozen.applied().sn;
        if let Asked::Transaction(wanted) = asked
            && wanted != applied
        {
            return Err(Refused::NotHere(format!(
                "Could not find image with txid {wanted}: images are made when they are asked for, and that of now has txid {applied}. \
                 Ask for txid=latest."
            )));
        }
        let namespace_id = core.cluster.namespace_id;
        let mut measure =
            Patient { measure: Measure::default(), core: &core, until: core.moment().plus_ms(PATIENCE_MS) };
        write(&frozen, namespace_id, &mut measure)?;
        let measure = measure.measure;
        let write_again: web::image_transfer::Write = Box::new(move |sink: &mut dyn Write| {
            // The turn ends before the client has the last bytes, so that a client which has an image may ask for the next one at once; or when the client is gone.
            let _turn = turn;
            write(&frozen, namespace_id, sink).map_err(|refused| io::Error::other(refused.to_string()))
        });
        Ok(Image {
            name: file_name(applied),
            length: measure.length,
            md5: measure.md5.finalize().into(),
            write: write_again,
        })
    })
}

fn write(frozen: &FrozenTree, namespace_id: u32, sink: &mut dyn Write) -> Result<(), Refused> {
    let tour = frozen.tour().map_err(|groups| {
        Refused::NotHere(format!(
            "{groups}: no member has an image of all of it. `clover admin backup` archives every group's."
        ))
    })?;
    write::image(&tour, namespace_id, sink).map_err(|error| Refused::NotNow(error.to_string()))
}

/// Writes a namespace as an image; its MD5, for which a NameNode asks before it believes an image.
///
/// # Errors
/// Those of `sink`; `Unsupported` if the tree is a part of a namespace, `InvalidData` if the format cannot number something.
pub fn write_image(namespace: &Namespace, namespace_id: u32, sink: &mut dyn Write) -> io::Result<[u8; 16]> {
    let frozen = namespace.freeze();
    let tour = frozen.tour().map_err(|groups| io::Error::new(io::ErrorKind::Unsupported, groups))?;
    let mut through = Through { sink, measure: Measure::default() };
    write::image(&tour, namespace_id, &mut through)?;
    Ok(through.measure.md5.finalize().into())
}

/// Digests what is written on its way.
struct Through<'a> {
    sink: &'a mut dyn Write,
    measure: Measure,
}

impl Write for Through<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.sink.write(bytes)?;
        self.measure.write(&bytes[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Measures for as long as a client waits, which hears nothing meanwhile: an image that is ready later has no taker, and holds the turn of others.
struct Patient<'a> {
    measure: Measure,
    core: &'a Core,
    until: Moment,
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.core.moment() > self.until {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "making the image takes longer than a client waits. Use `clover admin backup` and `clover meta name-directory`",
            ));
        }
        self.measure.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts and digests what is written, and keeps none of it.
#[derive(Default)]
struct Measure {
    length: u64,
    md5: Md5,
}

impl Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len() as u64;
        self.md5.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
