//! Images in the journals that ship. A member writes one and suggests to the active the entry that makes it usable; where that has
//! committed, the others fetch the file, and let go of the log before. One that is too far behind starts with an image alone.

use super::{
    happening::{Arrival, Happening},
    renewing::CHUNKS,
    server::Server,
    world::World,
};
use crate::truth::Broken;
use base::{EntryKind, Sn, TxId};
use bytes::Bytes;
use group::{Input, Proposal, Role};
use journal::Checkpoint;

impl Server {
    /// The newest entry that an image here contains.
    pub(super) fn newest_image(&self) -> Option<Sn> {
        match self.host.stored() {
            Some(journal) => journal.images().last().map(|image| image.at.id.sn),
            None => self.image.as_ref().map(|image| image.at.id.sn),
        }
    }
}

impl World {
    /// A member writes an image of all that it has applied, if all of that has committed.
    pub(super) fn write_image(&mut self, seat: usize) -> Result<(), Broken> {
        let server = &self.servers[seat];
        if !server.host.is_up() {
            return Ok(());
        }
        let (applied, at) = (server.tree.namespace.applied(), server.host.applied);
        let is_news = server.newest_image().is_none_or(|newest| newest < at.id.sn);
        if applied.sn != server.host.member().committed() || applied != at.id || !is_news {
            return Ok(()); // An active ahead of its commits: another time.
        }
        let mut content = Vec::new();
        let written = server.tree.namespace.freeze().write(&mut |part| {
            content.extend_from_slice(part);
            Ok(())
        });
        written.expect("memory takes it");
        let checkpoint = server.host.stored().expect("this is about journals").write_image(at, &content);
        self.note(format!("member {} has written the image of {}", seat + 1, at.id));
        let proposal = Proposal { kind: EntryKind::Checkpoint, payload: checkpoint.encode() };
        self.step(seat, Input::Suggest(proposal))
    }

    /// The active appends what a member suggests, between two calls.
    pub(super) fn append_suggested(&mut self, seat: usize, proposal: Proposal) -> Result<(), Broken> {
        let server = &mut self.servers[seat];
        let Some(Role::Serving { epoch }) = server.role().cloned() else { return Ok(()) };
        let end = server.host.disk.end();
        let checkpoint = Checkpoint::decode(&proposal.payload).expect("members suggest checkpoints");
        if checkpoint.at.id.sn > server.host.member().committed() || server.tree.namespace.applied() != end.id
        {
            return Ok(());
        }
        server.tree.namespace.skip_to(TxId { epoch, sn: Sn(end.id.sn.0 + 1) });
        self.step(seat, Input::Propose(vec![proposal]))
    }

    /// Everything up to `sn` has committed at this member.
    pub(super) fn look_for_checkpoints(&mut self, seat: usize, sn: Sn) {
        let server = &mut self.servers[seat];
        let from = std::mem::replace(&mut server.looked_through, sn);
        if server.host.stored().is_none() {
            return;
        }
        let entries = (from.0 + 1..=sn.0).filter_map(|sn| server.host.disk.entry(Sn(sn)));
        let found: Vec<Checkpoint> = entries
            .filter(|entry| entry.kind == EntryKind::Checkpoint)
            .filter_map(|entry| Checkpoint::decode(&entry.payload))
            .collect();
        for checkpoint in found {
            self.soon_for(seat, Arrival::Checkpoint(checkpoint));
        }
    }

    /// The image is usable: a member that lacks its file fetches that from another one, if one is to be had.
    pub(super) fn adopt_image(&mut self, seat: usize, checkpoint: &Checkpoint) {
        if self.servers[seat].newest_image().is_some_and(|newest| newest >= checkpoint.at.id.sn) {
            return;
        }
        let journal = self.servers[seat].host.stored().expect("this is about journals");
        if !journal.has_image(checkpoint) {
            if self.dice.chance(20) {
                return;
            }
            let files = self.servers.iter().filter(|other| other.host.is_up());
            let mut files = files.filter_map(|other| other.host.stored()?.image_file(checkpoint));
            if !files.any(|file| journal.keep_image(checkpoint, &file)) {
                return;
            }
        }
        if !self.servers[seat].host.checkpoint_committed(checkpoint) {
            return self.soon_for(seat, Arrival::Checkpoint(*checkpoint));
        }
        self.note(format!("member {} uses the image of {}", seat + 1, checkpoint.at.id));
    }

    /// Hands out an image like [`World::chunk`], for stores that are journals: the whole file comes at the moment of
    /// the last piece.
    pub(super) fn stored_chunk(&mut self, seat: usize, life: u64, from: usize, done: u64) {
        let source = &self.servers[from];
        let found = source.host.stored().filter(|_| source.host.is_up()).and_then(|journal| {
            let checkpoint = *journal.images().last()?;
            Some((checkpoint, journal.image_file(&checkpoint)?))
        });
        let Some((checkpoint, file)) = found else {
            self.servers[seat].is_downloading = false;
            return self.begin_download(seat);
        };
        if done + 1 < CHUNKS {
            let after_ms = 1 + self.dice.below(20);
            return self.after_ms(after_ms, Happening::Chunk { seat, life, from, done: done + 1 });
        }
        self.soon(Happening::Arrival { seat, life, what: Arrival::Fetched { checkpoint, file } });
    }

    /// The image takes the place of log and state; the process starts anew with it.
    pub(super) fn install_stored(&mut self, seat: usize, checkpoint: &Checkpoint, file: &Bytes) {
        let server = &mut self.servers[seat];
        server.is_downloading = false;
        let is_of_use = checkpoint.at.id.sn > server.host.member().committed();
        if self.keeper.view.is_eligible(server.host.store) || !is_of_use {
            return;
        }
        if self.dice.chance(20) {
            self.note(format!("member {} is cut off in the middle of an image", seat + 1));
            self.servers[seat].host.stored().expect("this is about journals").stage_half(checkpoint, file);
            let keep = self.dice.below(101);
            self.end(seat, keep);
        } else if self.servers[seat].host.install_stored(checkpoint, file) {
            self.note(format!("member {} installs the image of {}", seat + 1, checkpoint.at.id));
            self.end(seat, 0);
        } else {
            return self.begin_download(seat);
        }
        self.soon(Happening::Start { seat });
    }
}
