//! Rules that are left out on purpose, and that neither the search nor the simulation misses: a story that is told elsewhere notices each.

use super::{cluster::without, ended, purged, repair, shown_more};
use crate::Broken;

#[test]
fn each_of_these_rules_that_is_left_out_is_missed() {
    let stories: [(Broken, fn()); 9] = [
        (
            Broken::EntriesProveNothing,
            shown_more::an_entry_of_an_epoch_proves_that_its_beginning_has_committed,
        ),
        (Broken::WaitsNoLonger, shown_more::a_member_that_has_shown_more_is_waited_for_longer),
        (Broken::KeepsThoseThatNeedImages, purged::a_member_that_needs_an_image_does_not_stay_in_sync),
        (
            Broken::ImageByWordAlone,
            purged::a_member_that_does_not_know_what_has_committed_is_asked_from_the_purge_on,
        ),
        (
            Broken::OrderStandsForEver,
            shown_more::an_order_by_which_a_group_has_served_stands_for_nobody_any_more,
        ),
        (Broken::ForgetsOldActive, shown_more::a_torn_claim_does_not_forget_the_active_of_before),
        (Broken::GivesUpOnAnyWord, repair::a_contradiction_is_told_without_haste_and_costs_nobody_its_store),
        (Broken::EndsGrantsAtABreak, ended::a_connection_that_broke_ends_no_grant),
        (Broken::CountsOldGrants, ended::a_grant_of_before_the_break_counts_no_more),
    ];
    let unnoticed: Vec<Broken> =
        stories.into_iter().filter(|(rule, story)| without(*rule, *story)).map(|(rule, _)| rule).collect();
    assert!(unnoticed.is_empty(), "nobody noticed that these were left out: {unnoticed:?}");
}
