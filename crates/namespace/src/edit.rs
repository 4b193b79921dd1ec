//! The edits in the journal: a decision each, with nothing left to decide. The fields of an operation's edit are in the
//! operation's own file, and the table of all kinds is in `ops.rs`.

pub(crate) mod heirs;
pub(crate) mod plain;

use crate::{
    Context, Namespace, Reply, SnapshotId,
    charge::{self, Charge},
    codec,
    operation::Operation,
    preserve,
    quota::Amounts,
    retry::Origin,
    store::inode::TIME_LIMIT_MS,
};
use base::{FsError, FsResult, InodeId, Timestamp};

/// A fully resolved change. It contains no "now", no "next id" and no "current user". A plan makes one of its own kind; in the
/// journal they are all of [`crate::ops::Body`].
#[derive(Clone, Debug, PartialEq)]
pub struct Edit<B> {
    /// When it was planned. Journal time: what an edit changes carries this time on every member.
    pub time: Timestamp,
    /// `None` for the service's own edits.
    pub origin: Option<Origin>,
    /// The edit's dues to snapshots and quotas; `None` for most edits.
    pub dues: Option<Box<Dues>>,
    pub body: B,
}

/// The changes that an edit makes to snapshots and quotas besides its body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dues {
    /// The inodes that the edit changes and that snapshots have to show as they were, each with the latest
    /// snapshot that includes it.
    pub preserve: Vec<(InodeId, SnapshotId)>,
    /// The amounts that the edit adds to the usage of directories with a quota.
    pub charges: Vec<Charge>,
    /// The inodes that leave their directory and go on to count there, because snapshots keep them, with the amounts.
    pub kept: Vec<(InodeId, Amounts)>,
}

/// The decision of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Planned<B> {
    /// To be applied, appended and answered with [`crate::Applied::reply`].
    Edit(Edit<B>),
    /// The state already is what was asked for.
    NoChange(Reply),
}

impl<B> Edit<B> {
    /// An edit that answers a client, with what it owes to snapshots and quotas.
    ///
    /// # Errors
    /// A quota has no room for the edit: see [`crate::ops`].
    pub(crate) fn plan(ns: &Namespace, ctx: &Context<'_>, body: B) -> FsResult<Self>
    where
        B: Operation,
    {
        match Self::with_dues(ns, ctx, body) {
            (_, Some(refusal)) => Err(refusal),
            (edit, None) => Ok(edit),
        }
    }

    /// An edit that the service makes of itself. It answers no call, and no quota stands in its way.
    pub(crate) fn of_service(ns: &Namespace, ctx: &Context<'_>, body: B) -> Self
    where
        B: Operation,
    {
        Self::with_dues(ns, &Context { origin: None, looks: None, told: None, room: None, ..*ctx }, body).0
    }

    /// An edit that concerns the retry cache alone, and owes nothing.
    pub(crate) fn note(ctx: &Context<'_>, body: B) -> Self {
        Self::new(ctx, body)
    }

    /// Makes an edit with its dues. The second value is the error of the quota that it would exceed, if any.
    fn with_dues(ns: &Namespace, ctx: &Context<'_>, body: B) -> (Self, Option<FsError>)
    where
        B: Operation,
    {
        let mut edit = Self::new(ctx, body);
        let (charges, kept, refusal) = charge::of(ns, ctx, &edit.body);
        let dues = Dues { preserve: preserve::of(ns, &edit.body), charges, kept };
        edit.dues = (dues != Dues::default()).then(|| dues.into());
        (edit, refusal)
    }

    fn new(ctx: &Context<'_>, body: B) -> Self {
        let origin = ctx.origin.filter(|origin| origin.call_id.0 >= 0).map(|origin| Origin {
            client: origin.client_id,
            call: origin.call_id,
            fingerprint: ctx.fingerprint,
        });
        // A clock beyond what a record holds must not make an edit that cannot be read back.
        let time = Timestamp::from_ms(ctx.now.ms.min(TIME_LIMIT_MS - 1));
        Self { time, origin, dues: None, body }
    }

    /// The same edit as one of several kinds.
    pub(crate) fn of_kind<K>(self, kind: impl FnOnce(B) -> K) -> Edit<K> {
        let Self { time, origin, dues, body } = self;
        Edit { time, origin, dues, body: kind(body) }
    }
}

codec::record_fields! { Dues { preserve, charges, kept } }
