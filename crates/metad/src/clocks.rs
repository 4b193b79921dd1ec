//! How far the clocks of the other members are from this one's. The active reads them, for the verdict on the cluster.

pub mod reading;

use base::{MemberId, Moment};
use parking_lot::Mutex;
use proto::clover::admin::ClockProto;
use std::collections::BTreeMap;
use verdict::Clock;

/// How often each clock is read.
const PERIOD_MS: u64 = 60_000;
/// A member that does not answer keeps its clock of before for so long.
const KEPT_MS: u64 = 3 * PERIOD_MS;

/// The clocks that were read lately.
#[derive(Default)]
pub struct Clocks(Mutex<BTreeMap<MemberId, (Clock, Moment)>>);

impl Clocks {
    fn learn(&self, member: MemberId, clock: Clock, now: Moment) {
        self.0.lock().insert(member, (clock, now));
    }

    /// The clocks of the members as the active, `me`, tells them; nothing before it has read one.
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
