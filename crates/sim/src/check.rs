//! The checkers, one a file, named as sentences. The checkers of a lone server panic. The checkers of a group return
//! the rule that is broken, so that a model check can show how it came to that.

pub mod acknowledged_calls_have_their_effect;
pub mod acknowledged_edits_survive;
pub mod answers_are_remembered;
pub mod changes_have_causes;
pub mod commits_agree;
pub mod committed_never_cut;
pub mod each_call_has_one_effect;
pub mod eligible_is_complete;
pub mod enough_copies;
pub mod equal_state_at_equal_sn;
pub mod ids_are_never_used_again;
pub mod leases_have_one_holder;
pub mod logs_match;
pub mod members_equal_at_equal_sn;
pub mod one_active_an_epoch;
pub mod one_appender_an_epoch;
pub mod orders_follow_the_newest_claim;
pub mod promise_never_falls;
pub mod reads_see_what_committed_before;
pub mod reads_tell_what_has_committed;
pub mod refused_calls_have_no_effect;
pub mod replicas_come_to_rest;
pub mod replicas_needed_stay;
pub mod servers_that_may_go_have_no_last_replica;
pub mod serving_is_current;
pub mod unknown_replicas_stay;
