//! The search finds what was planted, and nothing where nothing was.
