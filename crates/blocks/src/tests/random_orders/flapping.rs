//! Servers that change their racks in the middle of all else.

use super::*;

impl Run {
    /// A script tells another rack for the server, or the same.
    pub(super) fn flap(&mut self, server: u16) {
        let rack = format!("/rack{}", self.random.below(3));
        self.log.push(format!("{server} is on {rack}"));
        self.cluster.map.learn_rack(&ip(server), &rack);
    }
}

const FLAPPING: Mode = Mode { flapping: true, ..SIMPLE };

#[test]
fn racks_that_change() {
    play(FLAPPING);
    play(Mode { takeovers: true, reopens: true, rot: true, ..FLAPPING });
}

#[test]
fn racks_that_change_while_replicas_are_moved() {
    play(Mode { moves: true, silent: true, lag: true, ..FLAPPING });
    play(Mode { balancing: true, lag: true, moves: true, ..FLAPPING });
    play(Mode { balancing: true, takeovers: true, reopens: true, ..FLAPPING });
}

#[test]
fn racks_that_change_while_servers_leave_and_die() {
    play(Mode { admin: true, away: true, ..FLAPPING });
    play(Mode { admin: true, away: true, lag: true, many: true, balancing: true, ..FLAPPING });
    play(Mode { admin: true, deaths: true, failures: true, safe: true, many: true, ..FLAPPING });
    play(Mode { deaths: true, failures: true, safe: true, lag: true, reopens: true, ..FLAPPING });
}
