//! Rules that are left out on purpose: a story that is told elsewhere notices the absence of each.
//!
//! `OldClaimsObeyed` is a rule of data servers, and is noticed in the stories of `clover-sim` (`crates/sim/tests/data_servers.rs`).

use super::{cluster::without, forged, late_words, leaving, ordered, reconsidered, takeover, unknown};
use crate::Broken;

#[test]
fn each_rule_that_is_left_out_is_missed() {
    let stories: [(Broken, fn()); 16] = [
        (
            Broken::TakeoverTrustsReports,
            takeover::no_replica_is_deleted_before_all_holders_have_reported_to_the_new_active,
        ),
        (
            Broken::EarlyReportsTrusted,
            takeover::a_report_that_began_before_its_server_was_answered_shows_too_much,
        ),
        (Broken::EarlyReportsTrusted, takeover::a_report_that_was_allowed_without_the_claim_shows_too_much),
        (
            Broken::EarlyReportsTrusted,
            late_words::after_a_takeover_a_report_on_an_earlier_connection_shows_too_much,
        ),
        (Broken::EarlyReportsTrusted, late_words::after_a_takeover_an_answer_that_may_be_lost_proves_nothing),
        (
            Broken::ReportsOutliveTakeovers,
            takeover::a_report_that_began_before_the_takeover_and_ends_behind_it_shows_too_much,
        ),
        (
            Broken::UnknownDeletedAtOnce,
            unknown::after_a_loss_nothing_unknown_is_deleted_until_the_log_allows_it,
        ),
        (
            Broken::LateWordsTrusted,
            late_words::a_full_report_on_an_earlier_connection_does_not_bring_a_deleted_replica_back,
        ),
        (Broken::LateWordsTrusted, late_words::news_on_an_earlier_connection_does_not_bring_it_back_either),
        (Broken::AnySession, forged::what_carries_another_key_changes_nothing),
        (Broken::OrdersForgotten, ordered::a_deletion_that_was_ordered_is_not_taken_back_with_its_repetition),
        (Broken::OrdersForgotten, ordered::a_replica_that_is_needed_again_is_not_ordered_to_go_once_more),
        (
            Broken::OrdersNotReconsidered,
            reconsidered::an_order_does_not_go_out_while_the_other_replica_is_not_surely_there,
        ),
        (
            Broken::OrdersNotReconsidered,
            reconsidered::an_order_is_not_repeated_while_the_other_replica_is_not_surely_there,
        ),
        (Broken::LeavingNotAwaited, leaving::a_server_is_not_let_go_while_a_block_needs_it),
        (Broken::LeavingCounts, leaving::replicas_that_leave_are_no_reason_to_delete_others),
    ];
    let unnoticed: Vec<Broken> =
        stories.into_iter().filter(|(rule, story)| without(*rule, *story)).map(|(rule, _)| rule).collect();
    assert!(unnoticed.is_empty(), "nobody noticed that these were left out: {unnoticed:?}");
}
