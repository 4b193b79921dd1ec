//! The words and paths of requests.

use super::*;
use crate::{Context, Limits, Namespace, Plannable, given_facts::GivenFacts};
use base::{Block, BlockId, Caller, GenerationStamp, Moment, Timestamp};

#[test]
fn a_request_names_its_paths_and_speaks_as_hadoop() {
    let request = Request::from(set_permission::Request { path: "/a".into(), permission: 0o700 });
    assert_eq!(request.paths().collect::<Vec<_>>(), ["/a"]);
    assert_eq!(request.what(), "Cannot set permission for /a");
}

#[test]
fn a_request_may_name_several_paths_or_none() {
    let sources = vec!["/b".to_owned(), "/c".to_owned()];
    let request = Request::from(concat::Request { target: "/a".into(), sources });
    assert_eq!(request.paths().collect::<Vec<_>>(), ["/a", "/b", "/c"]);
    let request = Request::from(rename::Request { source: "/a".into(), destination: "/b".into() });
    assert_eq!(request.paths().collect::<Vec<_>>(), ["/a", "/b"]);
    let block = Block { id: BlockId(7), generation_stamp: GenerationStamp(1_001), length: 5 };
    let request = update_block_for_pipeline::Request { block, holder: "h".into(), pool: "BP-1".into() };
    assert_eq!(request.paths().next(), None);
    let words = "Cannot get a new generation stamp and an access token for block BP-1:blk_7_1001";
    assert_eq!(request.what(), words);
}

#[test]
fn a_plan_can_be_made_again() {
    let ns = Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1));
    let (caller, limits) = (Caller::simple("hdfs", &[]), Limits::default());
    let ctx = Context {
        caller: &caller,
        origin: None,
        fingerprint: 0,
        now: Timestamp::from_ms(2),
        moment: Moment::default(),
        limits: &limits,
        renewals: None,
        looks: None,
        told: None,
        room: None,
    };
    let request = Request::from(set_permission::Request { path: "/".into(), permission: 0o700 });
    let plan = || request.plan(&ns, &ctx, &GivenFacts::all_finished());
    assert!(matches!(plan(), Ok(Step::Edit(_))));
    assert_eq!(plan(), plan());
}
