//! What goes into a step of either machine, and what it leaves to be done.

use base::{Epoch, GroupId, Moment, Sn, directory_log::Dix};
use bytes::Bytes;
use dirlog::{
    Settings, ToGroup, ToRoot,
    root::{ReadLog, Standing},
};
use rpc::{Call, Replier};

/// An input of either machine.
pub enum Input {
    Root(dirlog::root::Input),
    /// For the root group: messages of one group that have come together.
    FromHome(GroupId, Vec<ToRoot>),
    /// For any other group: messages that have come together.
    FromRoot(Vec<ToGroup>),
    /// For either: entries of the own log have committed up to here.
    Committed(Sn),
    /// For either: this member has led at some moment since then.
    Proved(Moment),
    Tick,
}

/// The work that a step leaves, to be done without the machine's lock.
#[derive(Default)]
pub struct After {
    pub visible: Option<Dix>,
    pub reads: Vec<ReadLog>,
    pub prove: bool,
    /// A turn of the writer of this epoch is to be queued: entries are to be applied, or asks to be answered.
    pub turn: Option<Epoch>,
    /// This group cannot follow: the epoch in which it turned out, and why.
    pub alarm: Option<(Epoch, String)>,
    /// Calls that have waited, and are to be carried out again.
    pub again: Vec<(Call, Replier)>,
    /// Calls that have waited for too long.
    pub refused: Vec<(Call, Replier)>,
    pub deadline: Option<Moment>,
}

/// Takes a message for another group's active. It returns at once.
pub type Send<'a> = &'a dyn Fn(GroupId, Bytes);

/// The state of this side, for people.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The last entry of the log, or that this group has received.
    pub end: Dix,
    /// The last one that is visible, or that this group has applied.
    pub visible: Dix,
    /// In the root group: the other groups.
    pub groups: Vec<Standing>,
    /// The root group's active serves; another group's does while it has a session.
    pub is_serving: bool,
    pub trouble: Option<String>,
    /// Entries in doubt.
    pub in_doubt: usize,
    /// Calls that wait: for what homes tell, or at a home.
    pub waiting: usize,
    /// At a home: the asks about which it keeps still.
    pub holds: usize,
}

/// The numbers of the machines.
pub fn settings() -> Settings {
    Settings::default()
}
