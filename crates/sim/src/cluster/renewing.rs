//! A member without the entries it needs takes an image from another, piece by piece, and starts anew with it.

use super::{
    happening::{Arrival, Happening, ImageArrived},
    server::Image,
    world::World,
};

/// Pieces that every image comes in.
pub(super) const CHUNKS: u64 = 8;

impl World {
    pub(super) fn begin_download(&mut self, seat: usize) {
        if self.servers[seat].is_downloading {
            return;
        }
        let life = self.servers[seat].life;
        if let Some(from) = self.source_for(seat) {
            self.servers[seat].is_downloading = true;
            self.soon(Happening::Chunk { seat, life, from, done: 0 });
        }
    }

    /// A member that has an image that helps.
    fn source_for(&mut self, seat: usize) -> Option<usize> {
        let has = self.servers[seat].host.disk.start.id.sn;
        let sources: Vec<usize> = (0..self.servers.len())
            .filter(|other| {
                let server = &self.servers[*other];
                *other != seat && server.is_running && server.newest_image().is_some_and(|at| at > has)
            })
            .collect();
        (!sources.is_empty()).then(|| *self.dice.pick(&sources))
    }

    /// One piece has arrived; the next may come from somebody else, if this one has gone.
    pub(super) fn chunk(&mut self, seat: usize, life: u64, from: usize, done: u64) {
        let server = &self.servers[seat];
        if server.life != life || !server.is_running {
            return;
        }
        if self.plays_journals {
            return self.stored_chunk(seat, life, from, done);
        }
        let image = self.servers[from].image.clone().filter(|_| self.servers[from].is_running);
        let Some(image) = image else {
            // The source is gone: another, from the beginning of what it has.
            self.servers[seat].is_downloading = false;
            return self.begin_download(seat);
        };
        if done + 1 < CHUNKS {
            let after_ms = 1 + self.dice.below(20);
            return self.after_ms(after_ms, Happening::Chunk { seat, life, from, done: done + 1 });
        }
        let what = Arrival::Image(ImageArrived(image));
        self.soon(Happening::Arrival { seat, life, what });
    }

    /// The image takes the place of log and state; the process starts anew with it.
    pub(super) fn install(&mut self, seat: usize, image: Image) {
        self.servers[seat].is_downloading = false;
        let server = &self.servers[seat];
        let committed = server.host.member().committed();
        // A member that is eligible, or knows of more, has no use for the image.
        let store = server.host.store;
        if self.keeper.view.is_eligible(store) || image.at.id.sn <= committed {
            return;
        }
        self.note(format!("member {} installs the image of {}", seat + 1, image.at.id));
        self.end(seat, 100);
        let server = &mut self.servers[seat];
        server.host.install(image.at);
        server.image = Some(image);
        self.soon(Happening::Start { seat });
    }
}
