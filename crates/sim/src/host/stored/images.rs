//! Images of the state machine in the journal that ships: written, made usable, staged, installed.

use super::StoredLog;
use base::{LogPoint, Sn};
use bytes::Bytes;
use journal::{Checkpoint, ReadLogError, StagedImage};

/// The pieces that an image of another member comes in.
const PIECE_BYTES: usize = 3_000;

impl StoredLog {
    /// The image that the last start went on from, with its content.
    pub fn image(&self) -> Option<(LogPoint, Bytes)> {
        self.image.clone()
    }

    /// The images that may be used, oldest first.
    pub fn images(&self) -> Vec<Checkpoint> {
        if self.is_damaged() { Vec::new() } else { self.journal().images() }
    }

    pub fn write_image(&self, at: LogPoint, content: &[u8]) -> Checkpoint {
        let written = self.journal().write_image(at, |writer| writer.write(content));
        written.unwrap_or_else(|error| panic!("the image of {at} cannot be written: {error}"))
    }

    /// Whether the file is there, usable or not.
    pub fn has_image(&self, checkpoint: &Checkpoint) -> bool {
        self.journal().open_image(checkpoint).is_ok()
    }

    /// The whole file, for another member.
    pub fn image_file(&self, checkpoint: &Checkpoint) -> Option<Bytes> {
        let file = self.journal().open_image(checkpoint).ok()?;
        let mut bytes = vec![0; checkpoint.file_bytes as usize];
        env::disk::read_exact_at(&*file, &mut bytes, 0).ok()?;
        Some(bytes.into())
    }

    /// The image is usable from now on, and what it replaces goes. Returns the last entry that the log has lost by that; `None` if the
    /// file is another image.
    pub fn checkpoint_committed(&self, checkpoint: &Checkpoint) -> Option<Sn> {
        self.journal().checkpoint_committed(checkpoint).ok()?;
        Some(self.begins_after())
    }

    /// The log holds the entries behind this one.
    pub fn begins_after(&self) -> Sn {
        match self.journal().read(Sn(0), Sn(0), 0) {
            Err(ReadLogError::Gone { first, .. }) => first,
            _ => Sn(0),
        }
    }

    /// Takes another member's image piece by piece, behind what is here of it; `None` if it ends in the middle, or is another one.
    fn stage(&self, checkpoint: &Checkpoint, file: &Bytes, up_to: usize) -> Option<StagedImage> {
        let staged = self.journal().stage(*checkpoint);
        let mut staged = staged.unwrap_or_else(|error| panic!("no image can be staged: {error}"));
        while !staged.is_complete() {
            let at = staged.have() as usize;
            if at >= up_to {
                return None;
            }
            let end = (at + PIECE_BYTES).min(file.len());
            staged
                .write_chunk(at as u64, &file[at..end])
                .unwrap_or_else(|error| panic!("a piece is not taken: {error}"));
        }
        staged.finish().ok()
    }

    /// Half of an image is taken, and then the process ends.
    pub fn stage_half(&self, checkpoint: &Checkpoint, file: &Bytes) {
        let _ = self.stage(checkpoint, file, file.len() / 2);
    }

    /// Keeps another member's image beside the log. False: the file is not the one that is wanted.
    pub fn keep_image(&self, checkpoint: &Checkpoint, file: &Bytes) -> bool {
        let Some(staged) = self.stage(checkpoint, file, usize::MAX) else { return false };
        self.journal().keep_image(staged).unwrap_or_else(|error| panic!("an image is not kept: {error}"));
        true
    }

    /// Another member's image takes the place of everything here, with the next start. False: the file is not the one that is wanted.
    pub fn install(&mut self, checkpoint: &Checkpoint, file: &Bytes) -> bool {
        let Some(staged) = self.stage(checkpoint, file, usize::MAX) else { return false };
        self.journal().install(staged).unwrap_or_else(|error| panic!("an image is not installed: {error}"));
        self.installs = Some(checkpoint.at);
        true
    }
}
