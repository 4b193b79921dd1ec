//! The differences between the clocks of the other members and the clock of this member. The active reads the clocks for its verdict on the cluster.

pub mod reading;

use base::{MemberId, Moment};
use parking_lot::Mutex;
use proto::clover::admin::ClockProto;
use std::collections::BTreeMap;
use verdict::Clock;

/// How often each clock is read.
const PERIOD_MS: u64 = 60_000;
/// The last reading of a member's clock counts for so long if the member does not answer again.
const KEPT_MS: u64 = 3 * PERIOD_MS;

/// The clocks that were read lately.
#[derive(Default)]
pub struct Clocks(Mutex<BTreeMap<MemberId, (Clock, Moment)>>);

impl Clocks {
    fn learn(&self, member: MemberId, clock: Clock, now: Moment) {
        self.0.lock().insert(member, (clock, now));
    }

    /// The clocks that the active, `me`, tells others, its own among them. The list is empty until `me` has read the clock of another member.
    pub fn told(&self, me: MemberId, now: Moment) -> Vec<ClockProto> {
        let read = self.0.lock();
        let lately = read.iter().filter(|(_, (_, at))| now.ms_since(*at) < KEPT_MS);
        let told: Vec<_> = lately
            .map(|(member, (clock, _))| ClockProto {
                member: member.0,
                ahead_ms: clock.ahead_ms,
                uncertain_ms: clock.uncertain_ms,
            })
            .collect();
        if told.is_empty() {
            return told;
        }
        let own = ClockProto { member: me.0, ahead_ms: 0, uncertain_ms: 0 };
        std::iter::once(own).chain(told).collect()
    }
}
