//! Simulated worlds, checkers and replay.
