//! Whether a call is taken at all: who may answer it, whether a change has room and enough members that keep it, and what
//! safe mode lets through. The words of each refusal are made here.
//!
//! A driver says how its member stands, in values that it has at hand. What only a refusal tells is looked up once there is
//! one ([`GroupFacts`]).

use base::{FsError, FsResult, GroupId, MemberId};

/// The calls of clients, as far as it matters who may answer them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A question about the member that is asked.
    Own,
    /// A look that needs no more than the namespace. It is answered below the minimum of members in sync too, once what it
    /// saw is certain.
    Look,
    /// All others.
    Other,
}

/// How far a member leads its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    None,
    /// It has taken over with too few members in sync.
    Reading,
    Serving,
}

/// The place where a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Here,
    /// Another member is to answer it.
    Elsewhere,
    /// Nobody can until another member is back: see [`GroupFacts::too_few`].
    Nowhere,
}

impl Way {
    /// The way of a call at a member that leads so far.
    pub fn of(kind: CallKind, lead: Lead) -> Self {
        match (lead, kind) {
            (Lead::Serving, _) | (_, CallKind::Own) | (Lead::Reading, CallKind::Look) => Self::Here,
            (Lead::Reading, CallKind::Other) => Self::Nowhere,
            (Lead::None, _) => Self::Elsewhere,
        }
    }
}

/// A member at the moment when a change comes to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub is_stopping: bool,
    /// Why nothing will ever commit on it again.
    pub failure: Option<String>,
    pub is_serving: bool,
    /// Changes that wait for the writer, and the most that may.
    pub waiting: usize,
    pub waiting_max: usize,
    /// Free bytes of its disk, if they are too few for the journal to go on.
    pub full_disk: Option<u64>,
    /// Enough members are in sync for an edit to commit.
    pub is_writable: bool,
}

/// Why a change is not taken. The first reason that holds counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Stopping,
    Failed(String),
    NotActive,
    /// So many changes wait already.
    QueueFull(usize),
    /// So many bytes are free.
    DiskFull(u64),
    TooFew,
}

impl Standing {
    /// Whether a change of the service's own is taken. It may wait for its commit for long, as no client waits for it.
    ///
    /// # Errors
    /// The reasons up to the full queue.
    pub fn admit_own(&self) -> Result<(), Refusal> {
        if self.is_stopping {
            return Err(Refusal::Stopping);
        }
        if let Some(reason) = &self.failure {
            return Err(Refusal::Failed(reason.clone()));
        }
        if !self.is_serving {
            return Err(Refusal::NotActive);
        }
        if self.waiting >= self.waiting_max {
            return Err(Refusal::QueueFull(self.waiting));
        }
        Ok(())
    }

    /// Whether a client's change is taken: this member serves, has room, and has those who must hold the edit as well.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub fn admit(&self) -> Result<(), Refusal> {
        self.admit_own()?;
        match self.full_disk {
            Some(free_bytes) => Err(Refusal::DiskFull(free_bytes)),
            None if !self.is_writable => Err(Refusal::TooFew),
            None => Ok(()),
        }
    }
}

/// Facts about a member's group, of which refusals tell.
#[derive(Clone, Copy, Debug)]
pub struct GroupFacts {
    /// A group of one. No other member can take over.
    pub is_alone: bool,
    /// Copies in sync, and how many a change needs.
    pub in_sync: usize,
    pub needed: u32,
}

impl GroupFacts {
    /// The refusal of a call that needs more members in sync than there are.
    pub fn too_few(&self) -> FsError {
        let Self { in_sync, needed, .. } = self;
        FsError::Retry(format!(
            "The group has {in_sync} of the {needed} copies in sync that a change needs; it takes none until a \
             member is back."
        ))
    }

    /// The refusal of a question about something that was changed, perhaps: its answer may have to wait for long, until
    /// another member is back.
    pub fn in_doubt(&self) -> FsError {
        let Self { in_sync, needed, .. } = self;
        FsError::Retry(format!(
            "What is asked for was changed last under an earlier active, and whether for good is not known while the \
             group has {in_sync} of the {needed} copies in sync that it needs."
        ))
    }
}

impl Refusal {
    /// The error for the client. [`FsError::NotActive`] sends it, or its call, to another member.
    pub fn error(self, group: &GroupFacts) -> FsError {
        match self {
            Self::Stopping => FsError::Retry("This metadata server is stopping.".into()),
            Self::Failed(reason) => {
                FsError::NotActive(format!("This metadata server no longer takes writes: {reason}"))
            }
            Self::NotActive => {
                FsError::NotActive("This metadata server is not the active one of its group.".into())
            }
            Self::QueueFull(waiting) => {
                FsError::Retry(format!("{waiting} operations are waiting already; try again in a moment."))
            }
            // In a group another member takes over, so the client is to come again.
            Self::DiskFull(free_bytes) if group.is_alone => FsError::SafeMode(disk_full(free_bytes)),
            Self::DiskFull(free_bytes) => FsError::Retry(disk_full(free_bytes)),
            Self::TooFew => group.too_few(),
        }
    }
}

/// A sentence for people and for clients: the disk has no room for changes.
pub fn disk_full(free_bytes: u64) -> String {
    format!(
        "The disk of the metadata server has {} MiB free, too few for the journal to go on: changes are refused until there is \
         room. Reads are answered.",
        free_bytes >> 20
    )
}

/// A sentence for people and for clients: the group goes on without this member.
pub fn removed(me: MemberId) -> String {
    format!(
        "member {me} was removed from its group, and serves nobody: stop this server, and take its address out of the clients' \
         configuration. `clover admin group add {me}` takes it in again"
    )
}

/// The refusal of a call to a member that was removed: that of a standby, so that clients go on to the next member.
pub fn not_of_the_group(method: &str, me: MemberId) -> FsError {
    FsError::NotActive(format!("Operation {method} is not supported in state standby: {}.", removed(me)))
}

/// The refusal of a client's call to a server of another group than the root group, if that server cannot pass the call on: that of a standby, so that
/// clients go on to the next server.
pub fn no_door(method: &str, group: GroupId) -> FsError {
    FsError::NotActive(format!(
        "Operation {method} is not supported in state standby: this server is of group {group}, and has no secret of the cluster, with \
         which it would pass the call on to the root group."
    ))
}

/// Walks under way at most.
const WALKS_MAX: usize = 1_000;

/// Whether another walk through a great deal of the namespace is taken, where so many are under way.
///
/// # Errors
/// [`FsError::Retry`] if those are the most that may be.
pub fn admit_walk(under_way: usize) -> FsResult<()> {
    if under_way < WALKS_MAX {
        return Ok(());
    }
    Err(FsError::Retry(format!(
        "{under_way} looks at large directories are under way already; try again in a moment."
    )))
}

/// The refusal of a read whose answer would have to wait for a commit, and has no room.
pub fn no_room_to_wait() -> FsError {
    FsError::Retry(
        "The answers that wait for a commit take all the memory that they may; try again in a moment.".into(),
    )
}

/// Safe mode, while it is on.
#[derive(Clone, Debug)]
pub struct SafeMode {
    /// It is that of a start, which ends by itself once enough blocks are reported.
    pub is_of_start: bool,
    /// Why it is on and how it ends, in HDFS's words.
    pub tip: String,
    pub host: String,
    pub is_alone: bool,
}

impl SafeMode {
    /// The refusal of a change. `what` is the beginning of Hadoop's sentence, "Cannot delete /x". In a group the client
    /// is to come again after a start, as in HDFS with several NameNodes: a member that has just started and was made the
    /// active at once soon has its reports, and no call is to fail meanwhile.
    pub fn refuse(&self, what: &str) -> FsError {
        self.error(what, self.is_of_start)
    }

    /// The refusal to say where the blocks of a file are, if no replica of one of them was reported: a reader that is told of
    /// no place gives up on the file, though it is whole. In a group the reader is to ask again, even if an operator has turned
    /// safe mode on, as in HDFS.
    pub fn refuse_places(&self, path: &str) -> FsError {
        self.error(&format!("Zero blocklocations for {path}"), true)
    }

    fn error(&self, what: &str, asks_for_patience: bool) -> FsError {
        let Self { tip, host, .. } = self;
        let text = format!("{what}. Name node is in safe mode.\n{tip} NamenodeHostName:{host}");
        match asks_for_patience && !self.is_alone {
            true => FsError::SafeModeRetry(text),
            false => FsError::SafeMode(text),
        }
    }
}

/// The refusal of an image that an operator wants, where safe mode is off.
pub fn image_needs_safe_mode() -> FsError {
    FsError::Io("Safe mode should be turned ON in order to create namespace image.".into())
}

/// The refusal of a question about lost blocks in the safe mode of a start. Which blocks are lost is found out when it ends:
/// an empty list before would say that none is.
pub fn losses_not_known() -> FsError {
    FsError::Io(
        "Cannot run listCorruptFileBlocks because replication queues have not been initialized. The metadata server is in safe \
         mode since its start: this can be asked when that has ended"
            .into(),
    )
}

#[cfg(test)]
mod tests;
