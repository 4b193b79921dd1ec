//! The coordinator is away: nobody could follow, so no active gives up its epoch.

use super::groups::serving;
use crate::{Input, Order, Role};
use base::MemberId;

#[test]
fn an_active_stays_while_the_coordinator_does_not_answer() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    cluster.is_deaf = true;
    cluster.step(1, Input::Operator { ticket: 7, order: Order::HandOver { to: Some(MemberId(2)) } });
    cluster.step(1, Input::Quiet);
    cluster.settle();
    assert!(matches!(cluster.role(1), Role::HandingOver { .. }), "the answer may come yet");
    cluster.pass(1_500);
    assert_eq!(cluster.serving(), Some(1));
    let (ticket, answer) = cluster.node(1).answers.pop().unwrap();
    assert_eq!(ticket, 7);
    assert!(answer.unwrap_err().contains("the coordinator has not answered"));

    // The order is given again once the coordinator answers. Only the coordinator's answer ends the epoch.
    cluster.is_deaf = false;
    cluster.step(1, Input::Operator { ticket: 8, order: Order::HandOver { to: Some(MemberId(2)) } });
    cluster.step(1, Input::Quiet);
    cluster.settle();
    cluster.pass(500);
    assert_eq!((cluster.serving(), cluster.view.epoch.0), (Some(2), 2));
    assert_eq!(cluster.operations(2), ["kept"]);
}
