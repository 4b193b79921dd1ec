//! Histories in which each server has storages of two media. The policy of the blocks' file changes, and it is asked that blocks be where the policy
//! wants them.

use super::*;
use base::StoragePolicy;

const MEDIA: Mode = Mode { media: true, ..SIMPLE };

impl Run {
    /// It is asked once more, under a policy that stays, until all is as it should be.
    pub(super) fn settle_media(&mut self) {
        self.is_calm = true;
        for round in 0..400 {
            if round % 50 == 0 {
                let ids: Vec<BlockId> = (1..=BLOCKS).map(BlockId).collect();
                self.cluster.map.satisfy(&ids, self.cluster.now);
            }
            for server in 1..=SERVERS {
                if round % 50 == 49 {
                    // An order to delete that was lost is given again when a report names the replica.
                    let picture = self.picture(server);
                    self.say(server, picture);
                }
                self.deliver_all(server);
                self.heartbeat(server, false);
                while !self.nodes[&server].inbox.is_empty() {
                    self.carry_out(server);
                }
                self.deliver_all(server);
                self.check();
            }
            self.time_goes_on(1_000);
            while self.cluster.map.sweep(10, self.cluster.now) {}
        }
        let policy = StoragePolicy::in_force(self.policy);
        for id in 1..=BLOCKS {
            let on: Vec<usize> = self.nodes.values().filter_map(|node| node.disk.get(&id).copied()).collect();
            let media: Vec<StorageType> = on.into_iter().map(|at| self.medium(at)).collect();
            let wanted = usize::from(self.wanted[&id]);
            let (unwanted, missing) =
                (policy.types_too_many(wanted, &media), policy.types_missing(wanted, &media, &[], false));
            assert!(
                unwanted.is_empty() || missing.is_empty(),
                "block {id} is on {media:?} under {}\n{}",
                policy.name,
                self.story()
            );
        }
    }
}

#[test]
fn takeovers_appends_and_rotten_bytes() {
    play(Mode { takeovers: true, reopens: true, rot: true, ..MEDIA });
}

#[test]
fn balancers_movers_and_orders_that_are_carried_out_late() {
    play(Mode { balancing: true, moves: true, lag: true, ..MEDIA });
    play(Mode { moves: true, silent: true, many: true, reopens: true, ..MEDIA });
}

#[test]
fn servers_that_die_or_leave_and_storages_that_fail() {
    play(Mode { deaths: true, failures: true, safe: true, reopens: true, ..MEDIA });
    play(Mode { admin: true, away: true, many: true, balancing: true, takeovers: true, ..MEDIA });
}

#[test]
fn servers_that_change_their_racks() {
    play(Mode { flapping: true, takeovers: true, lag: true, balancing: true, ..MEDIA });
}
