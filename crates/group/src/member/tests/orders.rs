//! Stories of orders to go on without silent members, while some of those come back.

use super::{
    super::*,
    cluster::{Cluster, store},
    company::stories,
    first_claim::{begin_again, until},
};
use crate::Message;

/// By the older view 1 and 3 are complete, and 2 is not. Since then 1 and 2 have committed what 3 lacks. 3 claims alone. 2 has just begun, says
/// where its log ends, and its disk takes half a second for the promise, when the order comes to go on without the silent ones.
#[test]
fn an_order_does_not_stand_for_a_member_that_has_begun_and_whose_promise_is_on_its_way() {
    let mut cluster = Cluster::new(3, 1, 2);
    cluster.pass(1_500);
    assert_eq!(cluster.serving(), Some(1));
    cluster.kill(2);
    cluster.pass(700);
    cluster.propose(1, "1 and 3 have this");
    cluster.pass(100);
    let backup = (cluster.view.clone(), cluster.version);
    assert!(!cluster.view.is_eligible(store(2)));
    cluster.restart(2);
    cluster.pass(2_000);
    cluster.kill(3);
    cluster.pass(700);
    cluster.propose(1, "1 and 2 have this");
    assert_eq!(cluster.operations(1).len(), 2, "it was acknowledged");
    begin_again(&mut cluster, backup, &[3]);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3))).expect("3 claims");
    cluster.pass(2_000);
    cluster.restart(2);
    let mut late: Vec<(Moment, (MemberStore, u64, MemberId, Message))> = Vec::new();
    for ms in 0..6_000u64 {
        cluster.now = cluster.now.plus_ms(1);
        if ms == 100 {
            cluster.step(3, Input::Operator { ticket: 7, order: Order::UncleanElect });
        }
        cluster.up().into_iter().for_each(|id| cluster.step(id, Input::Tick));
        let now = cluster.now;
        for (_, (from, boot, to, message)) in late.extract_if(.., |(at, _)| *at <= now) {
            cluster.step(to.0, Input::Message { from, boot, message });
        }
        while let Some((from, boot, to, message)) = cluster.wire.pop_front() {
            let waits_for_its_disk = ms < 500 && !matches!(message, Message::Hello { .. });
            if from.member == MemberId(2) && waits_for_its_disk {
                late.push((now.plus_ms(500), (from, boot, to, message)));
            } else {
                cluster.step(to.0, Input::Message { from, boot, message });
            }
        }
    }
    cluster.pass(8_000);
    let active = cluster.serving().unwrap_or_else(|| panic!("{}", stories(&cluster)));
    assert_eq!(
        cluster.operations(active),
        ["1 and 3 have this", "1 and 2 have this"],
        "{}",
        stories(&cluster)
    );
}
