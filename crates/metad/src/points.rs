//! Points in the work of several groups at which stories have a server killed, frozen or held up.
//!
//! Only a program built with the feature `failpoints` looks whether a story waits for a point. No shipped program is built so; there, a point compiles to
//! nothing.

#[cfg(feature = "failpoints")]
mod strike;

use namespace::outbox::{Message, Order};

/// A point. The word in the comment is its name in a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// `root-planned`: the root group has planned an entry of the directory log, and not appended it.
    RootPlanned,
    /// `root-sent`: entries are on their way to other groups, and not on the disk.
    RootSent,
    /// `log-sent`: a member sends entries of its group's log to another member.
    LogSent,
    /// `root-committed`: entries have committed in the root group, and the machine that makes them visible does not know.
    RootCommitted,
    /// `root-visible`: entries are visible, and no client is answered.
    RootVisible,
    /// `move-ordered`: the root group has applied an entry that moves a file between two homes.
    MoveOrdered,
    /// `home-received`: a home has received entries, and has not said so.
    HomeReceived,
    /// `home-applied`: a home has applied an entry, which has not committed there.
    HomeApplied,
    /// `home-relayed`: entries that a home has applied have committed there.
    HomeRelayed,
    /// `home-held`: a home has evaluated an ask, and holds it.
    HomeHeld,
    /// `home-told`: a home is about to tell the root group a fact.
    HomeTold,
    /// `move-relayed`: a home has applied an entry that moves a file, as the old home, the new one, or another group.
    MoveRelayed,
    /// `outbox-committed`: messages to another group have committed, and are not sent.
    OutboxCommitted,
    /// `outbox-carried`: what another group has sent is carried out here and has committed, and that group does not know.
    OutboxCarried,
    /// `outbox-answered`: another group has said that it has carried messages out, and that is not noted.
    OutboxAnswered,
    /// `join-committed`: as `outbox-committed`, with a message about files that were joined.
    JoinCommitted,
    /// `join-carried`: as `outbox-carried`.
    JoinCarried,
    /// `join-answered`: as `outbox-answered`.
    JoinAnswered,
}

/// The thread comes past the point.
#[inline]
pub fn pass(point: Point) {
    pass_if(point, || true);
}

/// The thread comes past the point, if that is so.
#[inline]
pub fn pass_if(point: Point, is_there: impl FnOnce() -> bool) {
    #[cfg(feature = "failpoints")]
    if strike::is_awaited(point) && is_there() {
        strike::pass(point);
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = (point, is_there);
}

/// Whether a message that would be sent here is lost.
#[inline]
pub fn is_lost(point: Point, is_there: impl FnOnce() -> bool) -> bool {
    #[cfg(feature = "failpoints")]
    return strike::is_awaited(point) && is_there() && strike::is_lost(point);
    #[cfg(not(feature = "failpoints"))]
    {
        let _ = (point, is_there);
        false
    }
}

/// Prints, as the server stops, the digests of its tree. A story compares them with those of other servers.
#[cfg(feature = "failpoints")]
pub fn tell_end(namespace: &namespace::Namespace) {
    strike::tell_end(namespace);
}

/// Whether a message to another group is about files that were joined.
pub fn has_join(message: &Message) -> bool {
    message.orders.iter().any(|order| matches!(order, Order::Join(_)))
}
