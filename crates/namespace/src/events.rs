//! What an edit tells those who watch the namespace (HDFS's inotify), as a NameNode tells it of its own log.
//!
//! Edits name inodes, and events have paths: the translation is asked for right before the edit is applied, when the tree still has all that the edit
//! removes. An edit of which HDFS tells nothing gives no event: blocks, leases, quotas, storage policies, snapshots, and all that the service does
//! of itself.

use crate::{
    Edit, Namespace,
    acl::{AclEntry, storage},
    ops::{Body, mkdirs::NewDirectory, truncate_copy::Cut},
    store::NONE,
    xattr::{Xattr, XattrName},
};
use base::{Block, InodeId, Timestamp};
use std::sync::Arc;

/// One event, with the paths that held right before its edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Create(Box<Created>),
    /// A file was closed, and has this many bytes; `None` for the target of a concat, whose length HDFS does not tell.
    Close {
        path: Box<str>,
        length: Option<u64>,
        time: Timestamp,
    },
    /// A file is written on: with `new_block`, in a new block although its last one has room.
    Append {
        path: Box<str>,
        new_block: bool,
    },
    Rename {
        from: Box<str>,
        to: Box<str>,
        time: Timestamp,
    },
    Update {
        path: Box<str>,
        update: Update,
    },
    Unlink {
        path: Box<str>,
        time: Timestamp,
    },
    /// A file shall have this many bytes.
    Truncate {
        path: Box<str>,
        length: u64,
        time: Timestamp,
    },
}

/// A new file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    pub path: Box<str>,
    pub time: Timestamp,
    pub owner: Arc<str>,
    pub group: Arc<str>,
    pub mode: u16,
    /// `None` for a directory.
    pub file: Option<CreatedFile>,
}

/// The properties that only a new file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedFile {
    pub replication: u16,
    /// In bytes.
    pub block_size: u64,
    /// Another file of this name went away.
    pub replaces: bool,
}

/// A change of what stands beside a name and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// `None` leaves a time as it is.
    Times {
        modified: Option<Timestamp>,
        accessed: Option<Timestamp>,
    },
    Replication(u16),
    /// `None` leaves a name as it is.
    Owner {
        owner: Option<Box<str>>,
        group: Option<Box<str>>,
    },
    Mode(u16),
    /// The whole list, with the entries that stand in the permission bits.
    Acl(Vec<AclEntry>),
    XattrsSet(Vec<Xattr>),
    XattrsRemoved(Vec<XattrName>),
}

impl Event {
    /// An estimate of the memory that it takes.
    pub fn bytes(&self) -> usize {
        let beside = match self {
            Self::Create(created) => size_of::<Created>() + created.path.len(),
            Self::Close { path, .. }
            | Self::Append { path, .. }
            | Self::Unlink { path, .. }
            | Self::Truncate { path, .. } => path.len(),
            Self::Rename { from, to, .. } => from.len() + to.len(),
            Self::Update { path, update } => path.len() + update.bytes(),
        };
        size_of::<Self>() + beside
    }
}

impl Update {
    fn bytes(&self) -> usize {
        let name_bytes = |name: &XattrName| size_of::<XattrName>() + name.name.len();
        match self {
            Self::Times { .. } | Self::Replication(_) | Self::Mode(_) => 0,
            Self::Owner { owner, group } => [owner, group].into_iter().flatten().map(|name| name.len()).sum(),
            Self::Acl(entries) => size_of_val(&**entries),
            Self::XattrsSet(set) => {
                set.iter().map(|xattr| name_bytes(&xattr.name) + size_of::<Xattr>() + xattr.value.len()).sum()
            }
            Self::XattrsRemoved(removed) => removed.iter().map(name_bytes).sum(),
        }
    }
}

impl Edit {
    /// The events of the edit, in their order. To be asked before it is applied.
    pub fn events(&self, ns: &Namespace) -> Vec<Event> {
        let mut told = Told { ns, time: self.time, events: Vec::new() };
        told.body(&self.body);
        told.events
    }
}

struct Told<'a> {
    ns: &'a Namespace,
    time: Timestamp,
    events: Vec<Event>,
}

impl Told<'_> {
    fn body(&mut self, body: &Body) {
        let time = self.time;
        match body {
            Body::Relay(relay) => self.body(&relay.change),
            Body::Ordered(ordered) => self.body(&ordered.change),
            Body::Mkdirs(edit) => {
                self.directories(edit.parent, &edit.directories, &edit.owner, &edit.group);
            }
            Body::Create(edit) => {
                let parent = self.directories(edit.parent, &edit.missing, &edit.owner, &edit.group);
                let file = CreatedFile {
                    replication: edit.replication,
                    block_size: edit.block_size,
                    replaces: edit.replaced.is_some(),
                };
                let (owner, group) = (edit.owner.clone(), edit.group.clone());
                let path = parent.map(|parent| below(&parent, &edit.name));
                self.tell(path, |path| {
                    Event::Create(Box::new(Created {
                        path,
                        time,
                        owner,
                        group,
                        mode: edit.mode,
                        file: Some(file),
                    }))
                });
            }
            Body::Complete(edit) => {
                self.close(edit.inode, edit.committed, edit.drop_last);
            }
            Body::FinishRecovery(edit) if edit.close => {
                self.close(edit.inode, edit.block, edit.block.is_none())
            }
            Body::Append(edit) => {
                let new_block = !edit.reopens_block && self.has_room(edit.inode);
                self.tell_of(edit.inode, |path| Event::Append { path, new_block });
            }
            Body::Rename(edit) => self.rename(self.path(edit.inode), edit.destination, &edit.name),
            Body::MoveFile(edit) => {
                let from = self.path(edit.source).map(|parent| below(&parent, &edit.source_name));
                self.rename(from, edit.destination, &edit.name);
            }
            Body::Delete(edit) => self.tell_of(edit.inode, |path| Event::Unlink { path, time }),
            Body::Concat(edit) => {
                self.tell_of(edit.target, |path| Event::Append { path, new_block: false });
                for source in &edit.sources {
                    self.tell_of(*source, |path| Event::Unlink { path, time });
                }
                self.tell_of(edit.target, |path| Event::Close { path, length: None, time });
            }
            Body::Truncate(edit) => self.truncate(edit.inode, edit.kept, edit.cut.as_ref()),
            Body::TruncateCopy(edit) => self.truncate(edit.inode, edit.kept, Some(&edit.cut)),
            Body::SetPermission(edit) => self.update(edit.inode, || Update::Mode(edit.mode)),
            Body::SetOwner(edit) => self.update(edit.inode, || Update::Owner {
                owner: edit.owner.clone(),
                group: edit.group.clone(),
            }),
            Body::SetTimes(edit) => {
                self.update(edit.inode, || Update::Times {
                    modified: edit.modified,
                    accessed: edit.accessed,
                });
            }
            Body::SetReplication(edit) => self.update(edit.inode, || Update::Replication(edit.replication)),
            Body::SetAcl(edit) => {
                self.update(edit.inode, || Update::Acl(storage::whole(edit.mode, edit.acl.as_deref())));
            }
            Body::SetXattrs(edit) => {
                if !edit.removed.is_empty() {
                    self.update(edit.inode, || Update::XattrsRemoved(edit.removed.clone()));
                }
                if !edit.set.is_empty() {
                    self.update(edit.inode, || Update::XattrsSet(edit.set.clone()));
                }
            }
            Body::FinishRecovery(_)
            | Body::AddBlock(_)
            | Body::AbandonBlock(_)
            | Body::Cleanup(_)
            | Body::Fsync(_)
            | Body::NewStamp(_)
            | Body::UpdatePipeline(_)
            | Body::StartRecovery(_)
            | Body::SetQuota(_)
            | Body::SetStoragePolicy(_)
            | Body::SetSnapshottable(_)
            | Body::CreateSnapshot(_)
            | Body::RenameSnapshot(_)
            | Body::DeleteSnapshot(_)
            | Body::Sweep(_)
            | Body::AllowDeletions(_)
            | Body::RaiseLevel(_)
            | Body::NoteAnswer(_)
            | Body::AddGroup(_)
            | Body::GiveSlots(_)
            | Body::CarryOut(_)
            | Body::NoteCarriedOut(_)
            | Body::Allot(_)
            | Body::OrderServer(_) => {}
        }
    }

    /// `None` for an inode that hangs in no directory any more. HDFS tells nothing of such.
    fn path(&self, inode: InodeId) -> Option<String> {
        self.ns.path_of(inode)
    }

    fn tell(&mut self, path: Option<String>, event: impl FnOnce(Box<str>) -> Event) {
        self.events.extend(path.map(|path| event(path.into())));
    }

    fn tell_of(&mut self, inode: InodeId, event: impl FnOnce(Box<str>) -> Event) {
        self.tell(self.path(inode), event);
    }

    fn update(&mut self, inode: InodeId, update: impl FnOnce() -> Update) {
        self.tell_of(inode, |path| Event::Update { path, update: update() });
    }

    /// Tells of directories of which each is made in the one before it. Returns the path of the innermost.
    fn directories(
        &mut self,
        parent: InodeId,
        directories: &[NewDirectory],
        owner: &Arc<str>,
        group: &Arc<str>,
    ) -> Option<String> {
        let mut at = self.path(parent)?;
        for directory in directories {
            at = below(&at, &directory.name);
            self.events.push(Event::Create(Box::new(Created {
                path: at.as_str().into(),
                time: self.time,
                owner: owner.clone(),
                group: group.clone(),
                mode: directory.mode,
                file: None,
            })));
        }
        Some(at)
    }

    fn rename(&mut self, from: Option<String>, destination: InodeId, name: &str) {
        let Some((from, parent)) = from.zip(self.path(destination)) else { return };
        let (from, to) = (from.into(), below(&parent, name).into());
        self.events.push(Event::Rename { from, to, time: self.time });
    }

    /// The file is closed with this last block, or without the last one that it has.
    fn close(&mut self, inode: InodeId, last: Option<Block>, drops_last: bool) {
        let tree = &self.ns.tree;
        let Some(file) = self.ns.handle(inode) else { return };
        let mut length = tree.length_of(file);
        let at = tree.last_block(file);
        if at != NONE && (last.is_some() || drops_last) {
            length -= tree.blocks.stored(at).block.length;
            length += last.filter(|_| !drops_last).map_or(0, |block| block.length);
        }
        let time = self.time;
        self.tell_of(inode, |path| Event::Close { path, length: Some(length), time });
    }

    fn has_room(&self, inode: InodeId) -> bool {
        let tree = &self.ns.tree;
        let Some(file) = self.ns.handle(inode) else { return false };
        let last = tree.last_block(file);
        last != NONE && tree.blocks.stored(last).block.length < tree.attributes_of(file).block_size
    }

    fn truncate(&mut self, inode: InodeId, kept: u64, cut: Option<&Cut>) {
        let Some(file) = self.ns.handle(inode) else { return };
        let whole = kept - u64::from(cut.is_some()).min(kept);
        let blocks = self.ns.tree.blocks_of(file).take(whole as usize);
        let length = blocks.map(|stored| stored.block.length).sum::<u64>() + cut.map_or(0, |cut| cut.length);
        let time = self.time;
        self.tell_of(inode, |path| Event::Truncate { path, length, time });
    }
}

fn below(parent: &str, name: &str) -> String {
    match parent {
        "/" => format!("/{name}"),
        _ => format!("{parent}/{name}"),
    }
}
