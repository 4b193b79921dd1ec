//! The slow data servers that are kept out of new pipelines, and from which is read last.
//!
//! They are the servers in service of which most others say that they are slow; of these the slowest. They are never more
//! than the configuration allows, nor more than half of the servers in service, so that a few servers that lie, or a
//! network that is slow for all, leave enough places for new replicas. A newcomer's word does not count here
//! ([`crate::newcomers`]). Where no other server will do, a slow one gets the replica: a write is never refused for that, nor
//! does a block come to be on one rack alone.

use crate::{map::BlockMap, slow::Votes};
use base::Moment;

impl BlockMap {
    /// Chooses them anew.
    pub(crate) fn choose_avoided(&mut self, now: Moment) {
        let in_service = self.servers.in_service();
        let count_max = self.config.slow_servers_max.min(in_service.len() / 2);
        let reported = self.reported_as_slow(now);
        self.slow.server_count = reported.len();
        let mut slow: Vec<(u32, Votes)> = reported
            .into_iter()
            .map(|(index, reported)| (index, reported.by_proved))
            .filter(|(index, votes)| {
                let face = &self.servers.get(*index).face;
                votes.reporters > 0 && face.alive && face.admin_state.is_in_service()
            })
            .collect();
        slow.sort_by(|(_, one), (_, other)| {
            let by_voices = other.reporters.cmp(&one.reporters);
            by_voices.then(other.worst.latency_ms.total_cmp(&one.worst.latency_ms))
        });
        slow.truncate(count_max);
        for server in self.servers.iter_mut() {
            server.is_avoided = false;
        }
        self.slow.is_any_avoided = !slow.is_empty();
        for (index, _) in slow {
            self.servers.get_mut(index).is_avoided = true;
        }
    }

    /// Whether there are such servers.
    pub(crate) fn passes_any_over(&self) -> bool {
        self.config.exclude_slow && self.slow.is_any_avoided
    }

    /// Whether a strict search for the place of a new replica passes the server over.
    pub(crate) fn is_passed_over(&self, index: u32) -> bool {
        self.config.exclude_slow && self.servers.get(index).is_avoided
    }

    /// Whether replicas on the server are read last.
    pub(crate) fn is_read_late(&self, index: u32) -> bool {
        self.config.read_slow_last && self.servers.get(index).is_avoided
    }
}
