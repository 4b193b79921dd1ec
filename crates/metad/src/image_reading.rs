//! An image read back on more than one core.

use namespace::{ImageError, Namespace, Piece};
use parking_lot::Mutex;
use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

/// Reads an image back into a namespace; see [`journal::Recovery::load_image`]. Another thread reads ahead and
/// checks what it has read, and all cores make the index. `has_read` is told of bytes that were read, as they come.
pub fn read(
    seed: u64,
    reader: &mut journal::ImageReader,
    size: u64,
    has_read: impl Fn(u64) + Send,
) -> io::Result<Namespace> {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(PIECES_AHEAD);
        scope.spawn(move || read_ahead(reader, &sender, has_read));
        let mut ahead = Ahead { receiver, piece: Vec::new(), given: 0 };
        Namespace::read_image_with(seed, &mut ahead, size, &on_all_cores).map_err(|error| match error {
            ImageError::Read(error) => error,
            ImageError::Version { .. } | ImageError::Level(_) => {
                io::Error::new(io::ErrorKind::Unsupported, error)
            }
            ImageError::Malformed { .. } => io::Error::new(io::ErrorKind::InvalidData, error),
        })
    })
}

/// Bytes of an image that are handed on at once, and how many such pieces wait at most.
const PIECE_BYTES: usize = 256 << 10;
const PIECES_AHEAD: usize = 8;

/// Reads until the end of the image, or until no more of it is wanted.
fn read_ahead(
    reader: &mut journal::ImageReader,
    sender: &SyncSender<io::Result<Vec<u8>>>,
    has_read: impl Fn(u64),
) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let read = reader.read(&mut piece);
        has_read(read.as_ref().map_or(0, |count| *count as u64));
        let is_last = !matches!(read, Ok(1..));
        let piece = read.map(|count| {
            piece.truncate(count);
            piece
        });
        if sender.send(piece).is_err() || is_last {
            return;
        }
    }
}

/// The pieces that the other thread has read.
struct Ahead {
    receiver: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    given: usize,
}

impl io::Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.piece.len() {
            // An empty piece is the end, and so is whatever follows it.
            self.piece = self.receiver.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
            self.given = 0;
        }
        let rest = &self.piece[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

fn on_all_cores(pieces: Vec<Piece<'_>>) {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let others = cores.min(pieces.len()).saturating_sub(1);
    let pieces = Mutex::new(pieces);
    let work = || {
        loop {
            let Some(piece) = pieces.lock().pop() else { return };
            piece();
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(work);
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_piece_is_carried_out_once() {
        let sum = AtomicUsize::new(0);
        let pieces = (1..=100).map(|number| -> Piece<'_> {
            Box::new({
                let sum = &sum;
                move || {
                    sum.fetch_add(number, Ordering::Relaxed);
                }
            })
        });
        on_all_cores(pieces.collect());
        assert_eq!(sum.into_inner(), 5_050);
        on_all_cores(Vec::new());
    }

    #[test]
    fn what_is_read_ahead_comes_in_order_and_an_error_in_its_place() {
        let (sender, receiver) = sync_channel(8);
        for piece in [Ok(vec![1, 2, 3]), Ok(vec![4]), Err(io::ErrorKind::InvalidData.into())] {
            sender.send(piece).unwrap();
        }
        let mut ahead = Ahead { receiver, piece: Vec::new(), given: 0 };
        let mut bytes = [0; 4];
        ahead.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4]);
        assert_eq!(ahead.read(&mut bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(sender);
        assert_eq!(ahead.read(&mut bytes).unwrap(), 0);
    }
}
