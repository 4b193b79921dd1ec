//! The edits in the journal: a decision each, with nothing left to decide.
//!
//! The bytes are described in `docs/format/edits.md`. The fields of an operation's edit are in the operation's own
//! file.

mod apply;
pub(crate) mod heirs;

use crate::{
    Context, Namespace, Reply, SnapshotId,
    charge::{self, Charge, ledger::Ledger},
    codec::{self, DecodeError, Reader, Writer},
    footprint::{Mark, Marks},
    operation::{Applying, Operation},
    preserve,
    quota::Amounts,
    retry::Origin,
    store::inode::TIME_LIMIT_MS,
};
use base::{FsError, FsResult, InodeId, Timestamp};
use heirs::Heirs;

/// The first byte of an edit that preserves and charges nothing.
const VERSION: u8 = 1;
/// The first byte of an edit that preserves or charges something.
const VERSION_WITH_DUES: u8 = 2;

/// A fully resolved change. It contains no "now", no "next id" and no "current user".
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// When it was planned. Journal time: what an edit changes carries this time on every member.
    pub time: Timestamp,
    /// `None` for the service's own edits.
    pub origin: Option<Origin>,
    /// The edit's dues to snapshots and quotas; `None` for most edits.
    pub dues: Option<Box<Dues>>,
    pub body: Body,
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
pub enum Planned {
    /// To be applied, appended and answered with [`crate::Applied::reply`].
    Edit(Edit),
    /// The state already is what was asked for.
    NoChange(Reply),
}

/// Kinds of their own for what is rare, so that the ordinary ones stay as short as they are.
const MKDIRS_WITH_ACLS: u8 = 36;
const CREATE_WITH_ACLS: u8 = 37;

/// The kinds of edits, each with its number and the type of its body. The other numbers up to 63 are free, for keys and
/// tokens among others.
macro_rules! kinds {
    ($($kind:literal => $name:ident($body:ty)),* $(,)?) => {
        /// One kind an operation; rename and rename2 share theirs, and so do closing and releasing a file.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Body {
            $($name($body),)*
        }

        fn encode_body(body: &Body, out: &mut Writer<'_>) {
            match body {
                Body::Mkdirs(edit) if edit.inherits() => {
                    out.byte(MKDIRS_WITH_ACLS);
                    heirs::encode(edit, out);
                }
                Body::Create(edit) if edit.inherits() => {
                    out.byte(CREATE_WITH_ACLS);
                    heirs::encode(edit, out);
                }
                $(Body::$name(edit) => {
                    out.byte($kind);
                    codec::Field::encode(edit, out);
                })*
            }
        }

        fn decode_body(kind: u8, input: &mut Reader<'_>) -> Result<Body, DecodeError> {
            match kind {
                MKDIRS_WITH_ACLS => heirs::decode(input).map(Body::Mkdirs),
                CREATE_WITH_ACLS => heirs::decode(input).map(Body::Create),
                $($kind => codec::Field::decode(input).map(Body::$name),)*
                _ => Err(DecodeError::UnknownKind(kind)),
            }
        }

        /// Each kind by its own rules.
        impl Operation for Body {
            fn answer(&self) -> Option<Reply> {
                match self { $(Self::$name(edit) => edit.answer(),)* }
            }

            fn mark(&self, marks: &mut Marks<'_>) {
                match self { $(Self::$name(edit) => edit.mark(marks),)* }
            }

            fn changed(&self, ns: &Namespace, add: &mut dyn FnMut(InodeId)) {
                match self { $(Self::$name(edit) => edit.changed(ns, add),)* }
            }

            fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
                match self { $(Self::$name(edit) => edit.charge(ns, ledger),)* }
            }

            fn keep(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
                match self { $(Self::$name(edit) => edit.keep(ns, ledger),)* }
            }

            fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
                match self { $(Self::$name(edit) => edit.apply(ns, applying),)* }
            }
        }
    };
}

kinds! {
    1 => Mkdirs(crate::ops::mkdirs::MkdirsEdit),
    2 => Create(crate::ops::create::CreateEdit),
    3 => AddBlock(crate::ops::add_block::AddBlockEdit),
    4 => AbandonBlock(crate::ops::abandon_block::AbandonBlockEdit),
    5 => Complete(crate::ops::complete::CompleteEdit),
    6 => Rename(crate::ops::rename::RenameEdit),
    7 => Delete(crate::ops::delete::DeleteEdit),
    8 => Cleanup(crate::ops::cleanup::CleanupEdit),
    9 => SetPermission(crate::ops::set_permission::SetPermissionEdit),
    10 => SetOwner(crate::ops::set_owner::SetOwnerEdit),
    11 => SetTimes(crate::ops::set_times::SetTimesEdit),
    12 => SetReplication(crate::ops::set_replication::SetReplicationEdit),
    13 => Fsync(crate::ops::fsync::FsyncEdit),
    14 => NewStamp(crate::ops::update_block_for_pipeline::NewStampEdit),
    15 => UpdatePipeline(crate::ops::update_pipeline::UpdatePipelineEdit),
    16 => StartRecovery(crate::ops::release_lease::StartRecoveryEdit),
    17 => FinishRecovery(crate::ops::commit_block_synchronization::FinishRecoveryEdit),
    18 => Append(crate::ops::append::AppendEdit),
    19 => Truncate(crate::ops::truncate::TruncateEdit),
    20 => Concat(crate::ops::concat::ConcatEdit),
    21 => SetAcl(crate::ops::set_acl::SetAclEdit),
    22 => SetXattrs(crate::ops::set_xattrs::SetXattrsEdit),
    23 => SetQuota(crate::ops::set_quota::SetQuotaEdit),
    24 => SetStoragePolicy(crate::ops::set_storage_policy::SetStoragePolicyEdit),
    25 => SetSnapshottable(crate::ops::allow_snapshot::SetSnapshottableEdit),
    26 => CreateSnapshot(crate::ops::create_snapshot::CreateSnapshotEdit),
    27 => RenameSnapshot(crate::ops::rename_snapshot::RenameSnapshotEdit),
    28 => DeleteSnapshot(crate::ops::delete_snapshot::DeleteSnapshotEdit),
    29 => Sweep(crate::ops::sweep::SweepEdit),
    31 => TruncateCopy(crate::ops::truncate_copy::TruncateCopyEdit),
    38 => AllowDeletions(crate::ops::allow_deletions::AllowDeletionsEdit),
    39 => RaiseLevel(crate::ops::raise_level::RaiseLevelEdit),
}

impl Edit {
    /// An edit that answers a client, with what it owes to snapshots and quotas.
    ///
    /// # Errors
    /// A quota has no room for the edit: see [`crate::ops`].
    pub(crate) fn plan(ns: &Namespace, ctx: &Context<'_>, body: Body) -> FsResult<Self> {
        match Self::with_dues(ns, ctx, body) {
            (_, Some(refusal)) => Err(refusal),
            (edit, None) => Ok(edit),
        }
    }

    /// An edit that the service makes of itself. It answers no call, and no quota stands in its way.
    pub(crate) fn of_service(ns: &Namespace, ctx: &Context<'_>, body: Body) -> Self {
        Self::with_dues(ns, &Context { origin: None, ..*ctx }, body).0
    }

    /// Makes an edit with its dues. The second value is the error of the quota that it would exceed, if any.
    fn with_dues(ns: &Namespace, ctx: &Context<'_>, body: Body) -> (Self, Option<FsError>) {
        let mut edit = Self::new(ctx, body);
        let (charges, kept, refusal) = charge::of(ns, &edit.body);
        let dues = Dues { preserve: preserve::of(ns, &edit.body), charges, kept };
        edit.dues = (dues != Dues::default()).then(|| dues.into());
        (edit, refusal)
    }

    fn new(ctx: &Context<'_>, body: Body) -> Self {
        let origin = ctx.origin.filter(|origin| origin.call_id.0 >= 0).map(|origin| Origin {
            client: origin.client_id,
            call: origin.call_id,
            fingerprint: ctx.fingerprint,
        });
        // A clock beyond what a record holds must not make an edit that cannot be read back.
        let time = Timestamp::from_ms(ctx.now.ms.min(TIME_LIMIT_MS - 1));
        Self { time, origin, dues: None, body }
    }

    /// The answer to the call that made this edit, as [`crate::Applied::reply`] had it, for a call that is repeated after the
    /// retry cache has forgotten it. `None`: the call is planned anew, and recognises its own repetition from the tree.
    pub fn answer(&self) -> Option<Reply> {
        self.body.answer()
    }

    /// Adds the marks of what the edit changes. To be asked before it is applied, while what it removes is still there.
    pub fn footprint(&self, ns: &Namespace, footprint: &mut Vec<Mark>) {
        self.body.mark(&mut Marks::new(ns, footprint));
    }

    /// Appends the edit's bytes; see `docs/format/edits.md`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        use crate::codec::Field;
        let out = &mut Writer(out);
        out.byte(if self.dues.is_some() { VERSION_WITH_DUES } else { VERSION });
        self.time.encode(out);
        self.origin.encode(out);
        if let Some(dues) = &self.dues {
            dues.encode(out);
        }
        encode_body(&self.body, out);
    }

    /// The whole of `bytes` must be one edit.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if the bytes end too early, [`DecodeError::Malformed`] if they go on behind the edit
    /// or a value in them makes no sense, [`DecodeError::UnknownVersion`] or [`DecodeError::UnknownKind`] if this
    /// release does not know the version or the kind of edit.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        use crate::codec::Field;
        let mut input = Reader::new(bytes);
        let version = input.byte()?;
        if !matches!(version, VERSION | VERSION_WITH_DUES) {
            return Err(DecodeError::UnknownVersion(version));
        }
        let time = Field::decode(&mut input)?;
        let origin = Field::decode(&mut input)?;
        let dues = if version == VERSION_WITH_DUES { Some(Field::decode(&mut input)?) } else { None };
        let kind = input.byte()?;
        let body = decode_body(kind, &mut input)?;
        input.finish()?;
        Ok(Self { time, origin, dues: dues.map(Box::new), body })
    }
}

codec::record_fields! { Dues { preserve, charges, kept } }
