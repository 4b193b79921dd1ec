//! The tree as a state machine: plan an operation, apply an edit.
