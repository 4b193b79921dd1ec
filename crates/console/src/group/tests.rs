use super::*;
use crate::page::tests::{HOSTILE, frame, text};
use proto::clover::admin::ViewProto;

#[test]
fn a_group_of_which_little_is_known_has_a_page() {
    let group = GetGroupResponseProto { answered_by: 2, ..GetGroupResponseProto::default() };
    let shown = text(&Page::new(frame(), &group));
    assert!(shown.contains("Member 2 has not reached the coordinator yet."), "{shown}");
}

#[test]
fn words_of_members_are_escaped_and_odd_addresses_are_no_links() {
    let member = MemberProto {
        member: 1,
        role: RoleProto::Stopped as i32,
        http_address: Some("host:1/\"><script>".into()),
        rpc_address: Some(HOSTILE.into()),
        reason: Some(HOSTILE.into()),
        ..MemberProto::default()
    };
    let takeover = TakeoverProto {
        epoch: 3,
        member: Some(1),
        trigger: HOSTILE.into(),
        sync_ms: 412,
        ..Default::default()
    };
    let group = GetGroupResponseProto {
        view: Some(ViewProto { epoch: 3, active: Some(1), ..ViewProto::default() }),
        members: vec![member],
        takeovers: vec![takeover],
        ..GetGroupResponseProto::default()
    };
    let shown = text(&Page::new(frame(), &group));
    assert!(shown.contains("member 1 has epoch 3: stopped"), "{shown}");
    assert!(!shown.contains("href=\"http://host"), "{shown}");
    assert!(shown.contains("412"), "{shown}");
}

#[test]
fn addresses_are_host_and_port() {
    for (text, is) in
        [("meta-1:9870", true), ("[::1]:9870", true), ("meta-1", false), ("a:1/x", false), ("a:1\"", false)]
    {
        assert_eq!(is_address(text), is, "{text}");
    }
}
