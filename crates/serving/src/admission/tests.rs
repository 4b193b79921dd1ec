//! Stories of calls that are taken or refused.

use super::*;

const WAITING_MAX: usize = 10;

/// A member that takes changes.
fn serving() -> Standing {
    Standing { is_serving: true, waiting_max: WAITING_MAX, is_writable: true, ..Standing::default() }
}

const ALONE: GroupFacts = GroupFacts { is_alone: true, in_sync: 1, needed: 1 };
const OF_THREE: GroupFacts = GroupFacts { is_alone: false, in_sync: 1, needed: 2 };

#[test]
fn a_question_about_the_member_itself_is_answered_everywhere() {
    for lead in [Lead::None, Lead::Reading, Lead::Serving] {
        assert_eq!(Way::of(CallKind::Own, lead), Way::Here);
    }
}

#[test]
fn all_else_is_for_the_active_which_only_looks_below_the_minimum() {
    for kind in [CallKind::Look, CallKind::Other] {
        assert_eq!(Way::of(kind, Lead::Serving), Way::Here);
        assert_eq!(Way::of(kind, Lead::None), Way::Elsewhere);
    }
    assert_eq!(Way::of(CallKind::Look, Lead::Reading), Way::Here);
    assert_eq!(Way::of(CallKind::Other, Lead::Reading), Way::Nowhere);
}

#[test]
fn a_change_is_taken_by_a_member_that_serves_and_has_room_and_copies() {
    assert_eq!(serving().admit(), Ok(()));
    let almost_full = Standing { waiting: WAITING_MAX - 1, ..serving() };
    assert_eq!(almost_full.admit(), Ok(()));
    let cases = [
        (Standing { is_stopping: true, ..serving() }, Refusal::Stopping),
        (Standing { failure: Some("the disk".into()), ..serving() }, Refusal::Failed("the disk".into())),
        (Standing { is_serving: false, ..serving() }, Refusal::NotActive),
        (Standing { waiting: WAITING_MAX, ..serving() }, Refusal::QueueFull(WAITING_MAX)),
        (Standing { full_disk: Some(5), ..serving() }, Refusal::DiskFull(5)),
        (Standing { is_writable: false, ..serving() }, Refusal::TooFew),
    ];
    for (standing, refusal) in cases {
        assert_eq!(standing.admit(), Err(refusal));
    }
}

#[test]
fn the_first_reason_is_told() {
    let mut standing = Standing {
        is_stopping: true,
        failure: Some("the disk".into()),
        is_serving: false,
        waiting: WAITING_MAX,
        waiting_max: WAITING_MAX,
        full_disk: Some(5),
        is_writable: false,
    };
    assert_eq!(standing.admit(), Err(Refusal::Stopping));
    standing.is_stopping = false;
    // Where nothing commits any more, the client is not to wait here.
    assert_eq!(standing.admit(), Err(Refusal::Failed("the disk".into())));
    standing.failure = None;
    assert_eq!(standing.admit(), Err(Refusal::NotActive));
    standing.is_serving = true;
    assert_eq!(standing.admit(), Err(Refusal::QueueFull(WAITING_MAX)));
    standing.waiting = 0;
    // The service's own changes wait for room and for copies: nobody waits for them.
    assert_eq!(standing.admit_own(), Ok(()));
    assert_eq!(standing.admit(), Err(Refusal::DiskFull(5)));
    standing.full_disk = None;
    assert_eq!(standing.admit(), Err(Refusal::TooFew));
}

#[test]
fn a_client_is_sent_elsewhere_asked_to_come_again_or_told_no() {
    let goes_elsewhere = |error: FsError| matches!(error, FsError::NotActive(_));
    let comes_again = |error: FsError| matches!(error, FsError::Retry(_));
    for group in [ALONE, OF_THREE] {
        assert!(goes_elsewhere(Refusal::NotActive.error(&group)));
        assert!(goes_elsewhere(Refusal::Failed("the disk".into()).error(&group)));
        assert!(comes_again(Refusal::Stopping.error(&group)));
        assert!(comes_again(Refusal::QueueFull(3).error(&group)));
        assert!(comes_again(Refusal::TooFew.error(&group)));
    }
    // A full disk of a lone server needs a person; in a group another member takes over.
    let full = || Refusal::DiskFull(7 << 20);
    assert_eq!(full().error(&ALONE), FsError::SafeMode(disk_full(7 << 20)));
    assert_eq!(full().error(&OF_THREE), FsError::Retry(disk_full(7 << 20)));
    assert!(disk_full(7 << 20).starts_with("The disk of the metadata server has 7 MiB free"));
}

#[test]
fn refusals_below_the_minimum_count_the_copies() {
    let FsError::Retry(text) = OF_THREE.too_few() else { panic!("the client is to come again") };
    assert!(text.contains("1 of the 2 copies in sync that a change needs"), "{text}");
    let FsError::Retry(text) = OF_THREE.in_doubt() else { panic!("the client is to come again") };
    assert!(text.contains("1 of the 2 copies in sync that it needs"), "{text}");
}

#[test]
fn walks_are_bounded() {
    assert_eq!(admit_walk(WALKS_MAX - 1), Ok(()));
    assert!(matches!(admit_walk(WALKS_MAX), Err(FsError::Retry(_))));
}

fn safe_mode(is_of_start: bool, is_alone: bool) -> SafeMode {
    SafeMode { is_of_start, tip: "It was turned on manually.".into(), host: "one".into(), is_alone }
}

#[test]
fn safe_mode_refuses_a_change_in_hdfs_s_words() {
    let text =
        "Cannot delete /x. Name node is in safe mode.\nIt was turned on manually. NamenodeHostName:one";
    assert_eq!(safe_mode(false, true).refuse("Cannot delete /x"), FsError::SafeMode(text.into()));
    // An operator ends what an operator began: patience is of no use.
    assert_eq!(safe_mode(false, false).refuse("Cannot delete /x"), FsError::SafeMode(text.into()));
}

#[test]
fn after_a_start_clients_of_a_group_are_asked_for_patience() {
    let refused = |is_alone| safe_mode(true, is_alone).refuse("Cannot delete /x");
    assert!(matches!(refused(true), FsError::SafeMode(_)));
    assert!(matches!(refused(false), FsError::SafeModeRetry(_)));
}

#[test]
fn a_reader_that_finds_no_place_asks_again_even_where_an_operator_wants_safe_mode() {
    let refused = |is_of_start, is_alone| safe_mode(is_of_start, is_alone).refuse_places("/f");
    let begin = "Zero blocklocations for /f. Name node is in safe mode.\n";
    assert!(matches!(refused(false, false), FsError::SafeModeRetry(text) if text.starts_with(begin)));
    assert!(matches!(refused(true, false), FsError::SafeModeRetry(text) if text.starts_with(begin)));
    assert!(matches!(refused(false, true), FsError::SafeMode(text) if text.starts_with(begin)));
}
