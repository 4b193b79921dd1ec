//! The journal's words: what was decided, with nothing left to decide.
//!
//! The bytes are described in `docs/format/edits.md`. What an operation's edit holds stands in the
//! operation's own file.

pub(crate) mod codec;

use crate::{Context, ops, store::inode::LIMIT_48};
use base::{CallId, ClientId, Timestamp};
use codec::{Reader, Writer};

/// The first byte of an edit.
const VERSION: u8 = 1;

/// A fully resolved change. It contains no "now", no "next id" and no "current user".
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// When it was planned. Journal time: what an edit changes carries this time on every member.
    pub time: Timestamp,
    /// `None` for what the service does of itself.
    pub origin: Option<Origin>,
    pub body: Body,
}

/// The call that an edit answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub client: ClientId,
    pub call: CallId,
    pub fingerprint: u64,
}

/// One kind an operation; rename and rename2 share theirs, and so do closing and releasing a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Mkdirs(ops::mkdirs::MkdirsEdit),
    Create(ops::create::CreateEdit),
    AddBlock(ops::add_block::AddBlockEdit),
    AbandonBlock(ops::abandon_block::AbandonBlockEdit),
    Complete(ops::complete::CompleteEdit),
    Rename(ops::rename::RenameEdit),
    Delete(ops::delete::DeleteEdit),
    Cleanup(ops::cleanup::CleanupEdit),
    SetPermission(ops::set_permission::SetPermissionEdit),
    SetOwner(ops::set_owner::SetOwnerEdit),
    SetTimes(ops::set_times::SetTimesEdit),
    SetReplication(ops::set_replication::SetReplicationEdit),
    Fsync(ops::fsync::FsyncEdit),
    NewStamp(ops::update_block_for_pipeline::NewStampEdit),
    UpdatePipeline(ops::update_pipeline::UpdatePipelineEdit),
    StartRecovery(ops::release_lease::StartRecoveryEdit),
    FinishRecovery(ops::commit_block_synchronization::FinishRecoveryEdit),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("edit ends after {0} bytes")]
    Truncated(usize),
    #[error("edit kind {0} is not known")]
    UnknownKind(u8),
    #[error("edit format version {0} is not known")]
    UnknownVersion(u8),
    #[error("edit at byte {offset}: {what}")]
    Malformed { offset: usize, what: &'static str },
}

/// Kinds 18 to 63 are free for append, truncate, concat, ACLs, extended attributes, snapshots, quotas, keys
/// and tokens.
macro_rules! kinds {
    ($($kind:literal => $name:ident),* $(,)?) => {
        fn encode_body(body: &Body, out: &mut Writer<'_>) {
            match body {
                $(Body::$name(edit) => {
                    out.byte($kind);
                    codec::Field::encode(edit, out);
                })*
            }
        }

        fn decode_body(kind: u8, input: &mut Reader<'_>) -> Result<Body, DecodeError> {
            match kind {
                $($kind => codec::Field::decode(input).map(Body::$name),)*
                _ => Err(DecodeError::UnknownKind(kind)),
            }
        }
    };
}

kinds! {
    1 => Mkdirs,
    2 => Create,
    3 => AddBlock,
    4 => AbandonBlock,
    5 => Complete,
    6 => Rename,
    7 => Delete,
    8 => Cleanup,
    9 => SetPermission,
    10 => SetOwner,
    11 => SetTimes,
    12 => SetReplication,
    13 => Fsync,
    14 => NewStamp,
    15 => UpdatePipeline,
    16 => StartRecovery,
    17 => FinishRecovery,
}

impl Edit {
    pub(crate) fn new(ctx: &Context<'_>, body: Body) -> Self {
        let origin = ctx.origin.filter(|origin| origin.call_id.0 >= 0).map(|origin| Origin {
            client: origin.client_id,
            call: origin.call_id,
            fingerprint: ctx.fingerprint,
        });
        // A clock beyond what a record holds must not make an edit that cannot be read back.
        let time = Timestamp::from_ms(ctx.now.ms.min(LIMIT_48 - 1));
        Self { time, origin, body }
    }

    /// Appends the edit's bytes; see `docs/format/edits.md`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        use codec::Field;
        let out = &mut Writer(out);
        out.byte(VERSION);
        self.time.encode(out);
        self.origin.encode(out);
        encode_body(&self.body, out);
    }

    /// The whole of `bytes` must be one edit.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        use codec::Field;
        let mut input = Reader::new(bytes);
        let version = input.byte()?;
        if version != VERSION {
            return Err(DecodeError::UnknownVersion(version));
        }
        let time = Field::decode(&mut input)?;
        let origin = Field::decode(&mut input)?;
        let kind = input.byte()?;
        let body = decode_body(kind, &mut input)?;
        input.finish()?;
        Ok(Self { time, origin, body })
    }
}

codec::record_fields! { Origin { client, call, fingerprint } }
