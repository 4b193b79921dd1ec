//! A file moves to a directory of another home: an entry of the directory log, which each group carries out for its part.
//!
//! The root group plans it on what the homes have told, and hold until the entry is there: the whole file at the old home, and whether the new name is free at the new one.
//! The old home keeps an export of the file ([`crate::exports`]). The new one has the file from then on, under the same id.

use crate::{
    Context, Namespace, Reply,
    access::{Access, mode_text},
    charge::{self, ledger::Ledger, moving},
    codec::{DecodeError, Field, Reader, Writer},
    edit::Edit,
    exports::FileImage,
    footprint::Marks,
    operation::{Applying, Operation},
    ops::allow_snapshot,
    questions::{Busy, FileFact},
    quota::Amounts,
    resolve::Resolved,
    snapshots::AFTER_ALL,
    store::NONE,
};
use base::{FsError, FsResult, GroupId, InodeId, POLICY_UNSPECIFIED};

#[derive(Clone, Debug, PartialEq)]
pub struct MoveFileEdit {
    pub from: GroupId,
    pub to: GroupId,
    pub file: Box<FileImage>,
    /// The directory that it leaves, and its name there.
    pub source: InodeId,
    pub source_name: Box<str>,
    pub destination: InodeId,
    pub name: Box<str>,
    /// The file of the new home that goes away.
    pub replaced: Option<InodeId>,
    /// The old rename answers true; the newer one nothing.
    pub answers: bool,
}

impl Field for MoveFileEdit {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.from.0.into());
        out.number(self.to.0.into());
        self.file.encode(out);
        self.source.encode(out);
        self.source_name.encode(out);
        self.destination.encode(out);
        self.name.encode(out);
        self.replaced.encode(out);
        self.answers.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut group = || input.number().map(|group| GroupId(group.try_into().unwrap_or(0)));
        let (from, to) = (group()?, group()?);
        if !from.is_possible() || !to.is_possible() || from == to {
            return Err(input.malformed("groups between which no file moves"));
        }
        Ok(Self {
            from,
            to,
            file: Box::new(Field::decode(input)?),
            source: Field::decode(input)?,
            source_name: Field::decode(input)?,
            destination: Field::decode(input)?,
            name: Field::decode(input)?,
            replaced: Field::decode(input)?,
            answers: Field::decode(input)?,
        })
    }
}

/// What a rename moves.
pub(crate) enum Moved {
    /// An inode of this tree.
    Here(u32),
    /// A file of another home.
    Elsewhere(Box<FileImage>),
}

/// What is at the source of a rename. Another home is asked for a file if this tree has nothing there.
///
/// # Errors
/// The file cannot be moved as it is, or a sticky bit protects it.
pub(crate) fn source(
    ns: &Namespace,
    ctx: &Context<'_>,
    access: &Access<'_>,
    source: &Resolved<'_>,
) -> FsResult<Option<Moved>> {
    if let Some(target) = source.target {
        return Ok(Some(Moved::Here(target)));
    }
    let Some(parent) = source.parent() else { return Ok(None) };
    match ctx.file(ns, parent, source.path.name()) {
        FileFact::None => Ok(None),
        FileFact::Busy { why, .. } => Err(busy(source.path.as_str(), why)),
        FileFact::File(file) => {
            if access.is_sticky_for_others(ns, parent) && *file.owner != *access.caller.user {
                let path = source.path.as_str();
                let file = format!("{}:{}:-{}", file.owner, file.group, mode_text(file.mode));
                return Err(access.sticky_denial_of(ns, parent, (source.path.parent(), path), &file));
            }
            Ok(Some(Moved::Elsewhere(file)))
        }
    }
}

fn busy(path: &str, why: Busy) -> FsError {
    match why {
        Busy::Open => FsError::Unsupported(format!(
            "{path} is being written. A file that is being written cannot be renamed into a directory of another group of metadata servers; \
             close it first."
        )),
        Busy::TooLarge => FsError::Unsupported(format!(
            "{path} has too many blocks to be renamed into a directory of another group of metadata servers."
        )),
        Busy::InSnapshot => FsError::Unsupported(format!(
            "{path} is in a snapshot. A file that a snapshot sees cannot be renamed yet into a directory of another group of metadata servers; copy \
             it, or delete the snapshot first."
        )),
        Busy::OrdersUnderWay => FsError::Retry(format!(
            "Another group of metadata servers has still to hear of the last change of {path}; try again in a moment."
        )),
    }
}

impl Moved {
    /// The directories below of which snapshots may be made, as [`allow_snapshot::check_removable`] tells them.
    ///
    /// # Errors
    /// One of them has snapshots.
    pub fn roots(&self, ns: &Namespace) -> FsResult<Vec<InodeId>> {
        match self {
            Self::Here(handle) => allow_snapshot::check_removable(ns, *handle),
            Self::Elsewhere(_) => Ok(Vec::new()),
        }
    }

    pub fn is_directory(&self, ns: &Namespace) -> bool {
        matches!(self, Self::Here(handle) if ns.tree.inode(*handle).is_directory())
    }

    /// Whether this is a file of this group that goes to a directory of another home.
    pub fn leaves(&self, ns: &Namespace, destination: u32) -> bool {
        !self.is_directory(ns) && ns.home_of(ns.tree.inode(destination).id()) != ns.group()
    }
}

/// The edit that takes the file to another home.
///
/// # Errors
/// The file is one of this group, and cannot be moved as it is.
pub(crate) fn plan(
    ns: &Namespace,
    ctx: &Context<'_>,
    moved: Moved,
    source: &Resolved<'_>,
    (destination, name): (u32, &str),
    replaced: Option<InodeId>,
    answers: bool,
) -> FsResult<Edit<MoveFileEdit>> {
    let parent = source.parent().expect("a file is in a directory");
    let id = |directory: u32| ns.tree.inode(directory).id();
    let (from, file) = match moved {
        Moved::Elsewhere(file) => (ns.home_of(id(parent)), file),
        Moved::Here(file) => match ns.file_fact(file) {
            FileFact::File(file) => (ns.group(), file),
            FileFact::Busy { why, .. } => return Err(busy(source.path.as_str(), why)),
            FileFact::None => unreachable!("the rename has found it"),
        },
    };
    let edit = MoveFileEdit {
        from,
        to: ns.home_of(id(destination)),
        file,
        source: id(parent),
        source_name: source.path.name().into(),
        destination: id(destination),
        name: name.into(),
        replaced,
        answers,
    };
    Edit::plan(ns, ctx, edit)
}

/// What a file counts for.
struct Moving {
    /// Where it was.
    leaving: Amounts,
    /// Where it comes to.
    arriving: Amounts,
}

impl MoveFileEdit {
    fn amounts(&self, ns: &Namespace) -> Moving {
        let below = |directory: InodeId| match (self.file.storage_policy, ns.handle(directory)) {
            (POLICY_UNSPECIFIED, Some(directory)) => ns.tree.policy_of(directory),
            (policy, _) => policy,
        };
        Moving {
            leaving: self.file.amounts(below(self.source)),
            arriving: self.file.amounts(below(self.destination)),
        }
    }

    /// The new home may use of the quotas above both directories what the old one used for the file, as far as that was allowed.
    fn move_allowances(&self, ns: &mut Namespace) {
        if ns.tree.shares.is_empty() {
            return;
        }
        let Moving { leaving, .. } = self.amounts(ns);
        let (source, destination) = (ns.expect(self.source), ns.expect(self.destination));
        let mut at = moving::common_ancestor(&ns.tree, source, destination);
        while at != NONE {
            let inode = ns.tree.inode(at);
            let (id, parent) = (inode.id(), inode.parent);
            if let Some(mut share) = ns.tree.shares.get(&id).cloned() {
                let allowed = share.allowed_to(self.from);
                let moved = leaving.zip([&allowed], |leaving, [allowed]| leaving.clamp(0, allowed.max(0)));
                *share.allowed.entry(self.from).or_default() -= moved;
                *share.allowed.entry(self.to).or_default() += moved;
                ns.set_share(id, Some(share));
            }
            at = parent;
        }
    }

    /// Whether this tree has what the edit says of this group.
    fn fits(&self, ns: &Namespace) -> bool {
        let child = |directory: InodeId, name: &str| {
            ns.handle(directory).and_then(|directory| ns.tree.child(directory, name.as_bytes()))
        };
        if !ns.has_directory(self.source) || !ns.has_directory(self.destination) {
            return false;
        }
        let own = ns.group();
        let leaves = own != self.from
            || child(self.source, &self.source_name).is_some_and(|file| {
                let inode = ns.tree.inode(file);
                inode.id() == self.file.inode && inode.is_file() && !inode.is_open()
            });
        let comes = own != self.to
            || (child(self.destination, &self.name).map(|file| ns.tree.inode(file).id()) == self.replaced
                && (ns.handle(self.file.inode).is_none() || ns.exported_to(self.file.inode).is_some()));
        leaves && comes
    }
}

impl Operation for MoveFileEdit {
    fn answer(&self) -> Option<Reply> {
        Some(if self.answers { Reply::Bool(true) } else { Reply::Unit })
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.inode(self.file.inode);
        marks.entry(self.source, self.source_name.as_bytes());
        marks.entry(self.destination, self.name.as_bytes());
        self.replaced.into_iter().for_each(|replaced| marks.inode(replaced));
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        [self.source, self.destination].into_iter().for_each(add);
    }

    /// Each of the two groups charges its part. The root group looks whether the new home may use so much more below the closest common ancestor.
    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let (source, destination) = (ns.expect(self.source), ns.expect(self.destination));
        let Moving { leaving, arriving } = self.amounts(ns);
        // Another group may have an export of it.
        let replaced = self.replaced.filter(|_| ns.group() == self.to).map(|replaced| ns.expect(replaced));
        if ns.group() == GroupId::ROOT && ledger.is_charged(destination) {
            let mut more = arriving;
            more -= match replaced {
                Some(replaced) => ledger.amounts(replaced, ns.tree.policy_of(replaced), AFTER_ALL, false),
                None => ledger.told_amounts(destination, &self.name),
            };
            let end = moving::common_ancestor(&ns.tree, source, destination);
            let above = (!moving::may_stay(ns, destination)).then_some(end);
            ledger.verify_in(destination, self.to, more, above);
            let mut difference = arriving;
            difference -= leaving;
            ledger.settle_in(end, self.to, difference);
        }
        if ns.group() == self.from {
            ledger.charge(source, -leaving);
        }
        if ns.group() == self.to {
            replaced.into_iter().for_each(|replaced| charge::delete(ns, ledger, replaced));
            ledger.charge(destination, arriving);
        }
    }

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        self.fits(ns).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        self.move_allowances(ns);
        let own = ns.group();
        if own == self.from {
            let (file, source) = (ns.expect(self.file.inode), ns.expect(self.source));
            ns.export(file, self.to);
            ns.set_modified(source, applying.time);
        } else if own == self.to {
            let destination = ns.expect(self.destination);
            if let Some(replaced) = self.replaced {
                let replaced = ns.expect(replaced);
                ns.unlink(replaced);
                ns.discard(replaced, true, applying.changes);
            }
            ns.import(&self.file, destination, self.name.as_bytes(), applying.changes);
            ns.set_modified(destination, applying.time);
        } else {
            ns.note_where(self.file.inode, self.to);
        }
        if self.answers { Reply::Bool(true) } else { Reply::Unit }
    }
}
