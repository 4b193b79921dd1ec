use super::*;
use crate::page::tests::{frame, text as shown_text};
use proto::clover::admin::{StoreProto, ViewProto};

fn group(active: Option<u32>) -> GetGroupResponseProto {
    let member = |number, role: RoleProto| MemberProto {
        member: number,
        role: role as i32,
        lag: Some(0),
        data_servers: Some(3),
        ..MemberProto::default()
    };
    let store = |member| StoreProto { member, generation: 0 };
    let view = ViewProto {
        epoch: 7,
        active,
        in_sync: vec![store(1), store(2), store(4)],
        in_sync_min: 2,
        members: vec![1, 2, 3, 4],
        ..ViewProto::default()
    };
    GetGroupResponseProto {
        view: Some(view),
        members: vec![
            member(4, RoleProto::Unknown),
            member(1, RoleProto::Active),
            member(2, RoleProto::Standby),
            member(3, RoleProto::Junior),
        ],
        ..GetGroupResponseProto::default()
    }
}

fn page(group: &GetGroupResponseProto, to: Option<&str>) -> Result<String, Refusal> {
    Page::of(frame(), group, to).map(|page| shown_text(&page))
}

#[test]
fn the_members_that_can_follow_are_offered() {
    let shown = page(&group(Some(1)), None).unwrap();
    assert!(shown.contains("Member 1 is active in epoch 7."), "{shown}");
    let values: Vec<_> =
        shown.split("value=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(values, ["any", "2", "3", "4"]);
    assert_eq!(shown.matches(" disabled").count(), 2, "{shown}");
    assert!(!shown.contains("method=\"post\" action=\"/group"), "nothing is ordered yet: {shown}");
}

#[test]
fn what_will_be_done_is_shown_before_it_is() {
    let shown = page(&group(Some(1)), Some("2")).unwrap();
    assert!(shown.contains("Member 2 becomes active, in the place of member 1."), "{shown}");
    assert!(
        shown.contains("name=\"epoch\" value=\"7\"") && shown.contains("name=\"to\" value=\"2\""),
        "{shown}"
    );
    let any = page(&group(Some(1)), Some("any")).unwrap();
    assert!(any.contains("in the place of member 1") && any.contains("name=\"to\" value=\"any\""), "{any}");
}

#[test]
fn members_that_cannot_follow_are_refused() {
    for to in ["1", "3", "4", "9", "", "02", "<b>"] {
        assert_eq!(page(&group(Some(1)), Some(to)).unwrap_err().status, StatusCode::CONFLICT, "{to}");
    }
    assert_eq!(page(&group(None), Some("2")).unwrap_err().status, StatusCode::CONFLICT);
    let mut alone = group(Some(1));
    alone.members.truncate(2);
    assert_eq!(page(&alone, Some("any")).unwrap_err().status, StatusCode::CONFLICT);
}

#[test]
fn the_outcome_is_told() {
    let of = |stage| shown_text(&Page { frame: frame(), headline: String::new(), stage });
    let done = of(Stage::Done(vec!["Member 2 is active.".to_owned(), "WARNING: <one>.".to_owned()]));
    assert!(done.contains("Member 2 is active.") && done.contains("WARNING: &#60;one&#62;."), "{done}");
    assert!(of(Stage::Failed("why <so>".to_owned())).contains("why &#60;so&#62;"));
}
