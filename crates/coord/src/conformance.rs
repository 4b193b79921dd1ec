//! The behaviour that every coordinator shows.
