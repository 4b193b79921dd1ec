//! The checkers, one a file. Each panics with a sentence when the world is not as it should be.

pub mod acknowledged_edits_survive;
pub mod answers_are_remembered;
pub mod equal_state_at_equal_sn;
