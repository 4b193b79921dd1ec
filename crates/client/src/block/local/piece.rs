//! A range of a block that is read from open files, piece by piece.

use super::{
    replica::{LocalReplica, PieceError},
    store::LocalReads,
};
use bytes::Bytes;
use std::{ops::Range, sync::Arc};
use tokio::{task::JoinHandle, time::timeout};

/// Bytes that are read and checked at once, as much as Hadoop's client buffers (`dfs.client.read.shortcircuit.buffer.size`).
const PIECE_BYTES: u64 = 1 << 20;

/// The next piece is read while the caller works on the one before it.
pub struct FileSource {
    reads: Arc<LocalReads>,
    pub replica: Arc<LocalReplica>,
    /// The part of the range that has not been returned yet.
    wanted: Range<u64>,
    ahead: Option<JoinHandle<Result<Bytes, PieceError>>>,
}

impl FileSource {
    pub fn new(reads: Arc<LocalReads>, replica: Arc<LocalReplica>, wanted: Range<u64>) -> Self {
        Self { reads, replica, wanted, ahead: None }
    }

    /// The next bytes of the range; it must not be at its end.
    ///
    /// # Errors
    /// The files cannot be read, or the bytes are not what their sums say. The text says which.
    pub async fn next(&mut self) -> Result<Bytes, String> {
        let piece = match self.ahead.take() {
            Some(piece) => piece,
            None => self.begin(),
        };
        // A disk that hangs must not hold the reader for longer than a server that is silent.
        let patience = self.reads.patience();
        let read = timeout(patience, piece).await.map_err(|_| format!("nothing came for {patience:?}"))?;
        let bytes = read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        self.wanted.start += bytes.len() as u64;
        self.reads.count(bytes.len());
        if !self.wanted.is_empty() {
            self.ahead = Some(self.begin());
        }
        Ok(bytes)
    }

    fn begin(&self) -> JoinHandle<Result<Bytes, PieceError>> {
        let begin = self.wanted.start;
        // Up to a multiple, so that no chunk is read twice.
        let end = (begin - begin % PIECE_BYTES + PIECE_BYTES).min(self.wanted.end);
        let (replica, verifies) = (self.replica.clone(), !self.reads.skips_checksums());
        tokio::task::spawn_blocking(move || {
            let (bytes, at) = replica.read(begin, end, verifies)?;
            let count = (end - begin) as usize;
            Ok(Bytes::from(bytes).slice(at..at + count))
        })
    }
}
