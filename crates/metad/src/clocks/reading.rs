//! The active asks the other members for the time.

use super::PERIOD_MS;
use crate::{admin_protocol::ask_member, core::Core};
use base::{Epoch, Moment};
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use verdict::Clock;

/// How soon an active begins to read after it was elected.
const LOOK: Duration = Duration::from_secs(1);

/// Reads clocks while this member leads, until the server stops. To be run as a task.
pub async fn run(core: Weak<Core>, stop: Arc<AtomicBool>) {
    let mut last: Option<(Epoch, Moment)> = None;
    while !stop.load(Ordering::Acquire) {
        tokio::time::sleep(LOOK).await;
        let Some((epoch, now, is_serving)) = core.upgrade().map(|core| {
            let member = &core.partition.member;
            (member.standing().epoch, core.moment(), member.is_serving())
        }) else {
            return;
        };
        let is_due = last.is_none_or(|(read_in, at)| read_in != epoch || now.ms_since(at) >= PERIOD_MS);
        if is_due && is_serving {
            last = Some((epoch, now));
            read(&core).await;
        }
    }
}

/// Asks the other members one after the other. No question waits behind another one, since the error of a reading grows with the time of its call. This task
/// keeps no reference to the server while it waits for an answer, so the server can stop and start again meanwhile.
async fn read(core: &Weak<Core>) {
    let Some((env, user, me, records)) = core.upgrade().map(|core| {
        let member = &core.partition.member;
        let user = core.config.limits.access.superuser.to_string();
        (core.env.clone(), user, member.me().member, member.records())
    }) else {
        return;
    };
    for (member, record) in records {
        if member == me || record.rpc_address.is_empty() {
            continue;
        }
        let begun = env.clock.moment();
        let answer = ask_member(record.rpc_address, user.clone()).await;
        let (ended, ours_ms) = (env.clock.moment(), env.clock.timestamp().ms);
        // A server of an older release does not tell its clock.
        let theirs_ms =
            answer.filter(|answer| answer.answered_by == member.0).and_then(|answer| answer.now_ms);
        let Some(core) = core.upgrade() else { return };
        if let Some(theirs_ms) = theirs_ms {
            core.clocks.learn(member, Clock::read_during(ended.ms_since(begun), theirs_ms, ours_ms), ended);
        }
    }
}
