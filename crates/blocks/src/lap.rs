//! How far the broom ([`crate::sweep`]) has come.

/// How far the broom has come in all its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lap {
    pub lap: u64,
    pub position: u32,
}
