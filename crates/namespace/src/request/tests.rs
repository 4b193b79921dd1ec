//! The words and paths of requests.

use super::*;
use crate::{Limits, given_facts::GivenFacts};
use base::{Caller, Moment, Timestamp};

#[test]
fn a_request_names_its_paths_and_speaks_as_hadoop() {
    let request = Request::from(ops::set_permission::Request { path: "/a".into(), permission: 0o700 });
    assert_eq!(request.paths().collect::<Vec<_>>(), ["/a"]);
    assert_eq!(request.what(), "Cannot set permission for /a");
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
    };
    let request = Request::from(ops::set_permission::Request { path: "/".into(), permission: 0o700 });
    let plan = || request.plan(&ns, &ctx, &GivenFacts::all_finished());
    assert!(matches!(plan(), Ok(Planned::Edit(_))));
    assert_eq!(plan(), plan());
}
