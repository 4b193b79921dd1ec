//! What HDFS would answer: a tree of a few names, one call after the other. It shares nothing with the server's own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Paths are below the directory of the history, which is `""`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Mkdirs {
        path: String,
        parents: bool,
    },
    Create {
        path: String,
        overwrite: bool,
        parents: bool,
    },
    /// The first of the two steps of a `create` with missing parents: these are made. It may find nothing to do, and happens again if one of them
    /// is deleted before the file is there.
    Parents {
        path: String,
    },
    /// The client has opened the file with this id at this path.
    Close {
        path: String,
        id: u64,
        /// What it has written in between.
        bytes: u64,
    },
    /// The client asks for a block of such a file.
    AddBlock {
        path: String,
        id: u64,
    },
    /// Opens the file for its client.
    Append {
        path: String,
    },
    Delete {
        path: String,
        recursive: bool,
    },
    /// The older call, which moves into a directory that is there.
    Rename {
        from: String,
        to: String,
    },
    Rename2 {
        from: String,
        to: String,
        overwrite: bool,
    },
    SetPermission {
        path: String,
        permission: u32,
    },
    Status {
        path: String,
    },
    List {
        path: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Is(bool),
    /// The id of the file that was made or opened.
    File(u64),
    Seen(Option<Seen>),
    /// In the order of the names.
    Listed(Option<Vec<(String, Seen)>>),
    /// The class of the exception, without its package.
    Refused(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub is_directory: bool,
    pub id: u64,
    pub permission: u32,
    pub length: u64,
    /// How many names are in a directory, in a status of its own.
    pub children: Option<u32>,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_directory, id, permission, length, children } = self;
        match is_directory {
            true => write!(f, "directory {id} {permission:o}")?,
            false => write!(f, "file {id} {permission:o} {length}")?,
        }
        children.map_or(Ok(()), |children| write!(f, " with {children}"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    /// `None`: the client that made the inode has heard no answer, and no other client has looked at it since.
    id: Option<u64>,
    permission: u32,
    length: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Directory,
    /// The client that has it open.
    File {
        writer: Option<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
    /// The ids of deleted files and directories.
    gone: BTreeSet<u64>,
}

const FILE_PERMISSION: u32 = 0o644;
const DIRECTORY_PERMISSION: u32 = 0o755;

const NOT_FOUND: &str = "FileNotFoundException";
const EXISTS: &str = "FileAlreadyExistsException";
/// Something on the way is a file; for calls that make a name.
const PARENT_IS_FILE: &str = "ParentNotDirectoryException";
/// The same for all other calls.
const NO_WAY: &str = "AccessControlException";
const IS_OPEN: &str = "AlreadyBeingCreatedException";
const LEASE_EXPIRED: &str = "LeaseExpiredException";
const NOT_EMPTY: &str = "PathIsNotEmptyDirectoryException";
const IO: &str = "IOException";
/// A file that is being written does not go to another home.
const STAYS: &str = "UnsupportedOperationException";

/// A refusal, by its class.
type Answer<T> = Result<T, &'static str>;

impl Default for Tree {
    /// An empty directory.
    fn default() -> Self {
        let mut tree = Self { entries: BTreeMap::new(), gone: BTreeSet::new() };
        tree.enter("", None, Kind::Directory);
        tree
    }
}

pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(_, name)| name)
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// The directories on the way to a path, upper ones first, without the path itself.
fn way(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

impl Tree {
    /// The tree after the call, if the call may have had this outcome. `None` as the outcome: nobody knows it.
    pub fn after(&self, client: u8, call: &Call, told: Option<&Outcome>) -> Option<Self> {
        let mut tree = self.clone();
        tree.carry_out(client, call, told).then_some(tree)
    }

    /// What the call is told of this tree. `id`: of what is made now.
    pub fn outcome(&self, client: u8, call: &Call, id: u64) -> Outcome {
        let look = |path: &str, children: bool| {
            self.entries.get(path).map(|entry| {
                let is_directory = entry.kind == Kind::Directory;
                let children = (children && is_directory).then(|| self.count(path) as u32);
                // Two inodes of which no client knows the ids get different ones.
                let new = || id + self.entries.range(..path.to_owned()).count() as u64;
                Seen {
                    is_directory,
                    id: entry.id.unwrap_or_else(new),
                    permission: entry.permission,
                    length: entry.length,
                    children,
                }
            })
        };
        let all = |path: &str| -> Vec<(String, Seen)> {
            let line = |at: &String| (name(at).to_owned(), look(at, false).expect("it is there"));
            self.inside(path).map(line).collect()
        };
        let (path, listed) = match call {
            Call::Status { path } => return Outcome::Seen(look(path, true)),
            Call::Append { path } => (path, None),
            Call::List { path } => match look(path, false) {
                Some(seen) if !seen.is_directory => (path, Some(vec![(String::new(), seen)])),
                seen => (path, seen.map(|_| all(path))),
            },
            Call::Create { path, .. } | Call::Mkdirs { path, .. } => (path, None),
            _ => (&String::new(), None),
        };
        let refusals =
            [NOT_FOUND, EXISTS, PARENT_IS_FILE, NO_WAY, IS_OPEN, LEASE_EXPIRED, NOT_EMPTY, IO].into_iter();
        let opened = look(path, false).map_or(id, |seen| seen.id);
        let possible = [
            Outcome::Listed(listed),
            Outcome::Done,
            Outcome::Is(true),
            Outcome::Is(false),
            Outcome::File(id),
            Outcome::File(opened),
        ];
        let mut all = refusals.map(|class| Outcome::Refused(class.to_owned())).chain(possible);
        all.find(|told| self.after(client, call, Some(told)).is_some()).expect("there is an answer")
    }

    /// For a reader.
    pub fn tell(&self) -> String {
        let line = |(path, Entry { id, permission, length, kind }): (&String, &Entry)| {
            let id = id.map_or("?".to_owned(), |id| id.to_string());
            format!("    {path:<8} {permission:o} {id} {length} {kind:?}\n")
        };
        self.entries.iter().map(line).collect()
    }

    /// Whether the outcome can be that one.
    fn carry_out(&mut self, client: u8, call: &Call, told: Option<&Outcome>) -> bool {
        match call {
            Call::Mkdirs { path, parents } => {
                let made = self.mkdirs(path, *parents);
                fits(told, made.map(Outcome::Is))
            }
            Call::Parents { path } => {
                self.make_parents(path);
                true
            }
            Call::Create { path, overwrite, .. } => {
                let id = match told {
                    Some(Outcome::File(id)) if self.knows(*id) => return false,
                    Some(Outcome::File(id)) => Some(*id),
                    _ => None,
                };
                let made = self.create(client, path, *overwrite, id);
                fits(told, made.map(|()| Outcome::File(id.unwrap_or(0))))
            }
            Call::Close { id, bytes, .. } => fits(told, self.close(client, *id, *bytes).map(Outcome::Is)),
            Call::AddBlock { id, .. } => fits(told, self.add_block(client, *id).map(|()| Outcome::Done)),
            Call::Append { path } => match (self.append(client, path), told) {
                (Ok(()), Some(Outcome::File(id))) => self.is_called(path, *id),
                (Ok(()), told) => told.is_none(),
                (Err(class), told) => fits(told, Err(class)),
            },
            Call::Delete { path, recursive } => fits(told, self.delete(path, *recursive).map(Outcome::Is)),
            Call::Rename { from, .. } | Call::Rename2 { from, .. } if refused(told) == Some(STAYS) => self
                .entries
                .get(from)
                .is_some_and(|entry| matches!(entry.kind, Kind::File { writer: Some(_) })),
            Call::Rename { from, to } => fits(told, self.rename(from, to).map(Outcome::Is)),
            Call::Rename2 { from, to, overwrite } => {
                fits(told, self.rename2(from, to, *overwrite).map(|()| Outcome::Done))
            }
            Call::SetPermission { path, permission } => {
                let done = self.existing(path).map(|entry| entry.permission = *permission);
                fits(told, done.map(|()| Outcome::Done))
            }
            // A file on the way is no error here, for a superuser.
            Call::Status { path } => match told {
                Some(Outcome::Seen(Some(seen))) => self.looks_like(path, seen),
                Some(Outcome::Seen(None)) => !self.entries.contains_key(path),
                told => told.is_none(),
            },
            Call::List { path } => match (self.is_passable(path, NO_WAY), told) {
                (Err(class), told) => fits(told, Err(class)),
                (Ok(()), Some(Outcome::Listed(Some(listed)))) => self.has_inside(path, listed),
                (Ok(()), Some(Outcome::Listed(None))) => !self.entries.contains_key(path),
                (Ok(()), told) => told.is_none(),
            },
        }
    }

    fn mkdirs(&mut self, path: &str, parents: bool) -> Answer<bool> {
        self.is_passable(path, PARENT_IS_FILE)?;
        match self.entries.get(path) {
            Some(Entry { kind: Kind::Directory, .. }) => return Ok(true),
            Some(_) => return Err(EXISTS),
            None if !parents && !self.entries.contains_key(parent(path)) => return Err(NOT_FOUND),
            None => {}
        }
        for directory in way(path).chain([path]) {
            if !self.entries.contains_key(directory) {
                self.enter(directory, None, Kind::Directory);
            }
        }
        Ok(true)
    }

    /// The directories above a file, with the rights of those above them. Those of a `mkdirs` have rights of their own.
    fn make_parents(&mut self, path: &str) {
        let directory = parent(path).to_owned();
        let missing: Vec<String> =
            way(path).filter(|above| !self.entries.contains_key(*above)).map(str::to_owned).collect();
        if self.mkdirs(&directory, true).is_ok() {
            for path in missing {
                let above = self.entries[parent(&path)].permission;
                self.entries.get_mut(&path).expect("it was made").permission = above | 0o300;
            }
        }
    }

    fn create(&mut self, client: u8, path: &str, overwrite: bool, id: Option<u64>) -> Answer<()> {
        self.is_passable(path, PARENT_IS_FILE)?;
        match self.entries.get(path).map(|entry| entry.kind) {
            Some(Kind::Directory) => return Err(EXISTS),
            Some(Kind::File { .. }) if overwrite => self.remove(path),
            Some(Kind::File { writer: Some(_) }) => return Err(IS_OPEN),
            Some(Kind::File { writer: None }) => return Err(EXISTS),
            None if !self.entries.contains_key(parent(path)) => return Err(NOT_FOUND),
            None => {}
        }
        self.enter(path, id, Kind::File { writer: Some(client) });
        Ok(())
    }

    /// The file with this id, if nobody but this client writes it.
    fn opened(&mut self, client: u8, id: u64) -> Answer<&mut Entry> {
        let entry = self.entries.values_mut().find(|entry| entry.id == Some(id)).ok_or(NOT_FOUND)?;
        match entry.kind {
            Kind::File { writer } if writer.is_none_or(|writer| writer == client) => Ok(entry),
            _ => Err(LEASE_EXPIRED),
        }
    }

    /// A block counts in the length of its file from the close on.
    fn add_block(&mut self, client: u8, id: u64) -> Answer<()> {
        let is_open = self.opened(client, id)?.kind == (Kind::File { writer: Some(client) });
        if is_open { Ok(()) } else { Err(LEASE_EXPIRED) }
    }

    /// Nothing is wrong with a file that is closed already.
    fn close(&mut self, client: u8, id: u64, bytes: u64) -> Answer<bool> {
        let entry = self.opened(client, id)?;
        if entry.kind == (Kind::File { writer: Some(client) }) {
            entry.kind = Kind::File { writer: None };
            entry.length += bytes;
        }
        Ok(true)
    }

    fn append(&mut self, client: u8, path: &str) -> Answer<()> {
        match &mut self.existing(path)?.kind {
            Kind::Directory => Err(EXISTS),
            Kind::File { writer: Some(_) } => Err(IS_OPEN),
            Kind::File { writer } => {
                *writer = Some(client);
                Ok(())
            }
        }
    }

    fn delete(&mut self, path: &str, recursive: bool) -> Answer<bool> {
        self.is_passable(path, NO_WAY)?;
        if !self.entries.contains_key(path) {
            return Ok(false);
        }
        if !recursive && self.count(path) > 0 {
            return Err(NOT_EMPTY);
        }
        self.remove(path);
        Ok(true)
    }

    /// Most of what it may not do is `false`.
    fn rename(&mut self, from: &str, to: &str) -> Answer<bool> {
        self.is_passable(from, NO_WAY)?;
        self.is_passable(to, PARENT_IS_FILE)?;
        let is_directory = |path: &str| self.entries.get(path).is_some_and(|it| it.kind == Kind::Directory);
        let to = if is_directory(to) { format!("{to}/{}", name(from)) } else { to.to_owned() };
        if !self.entries.contains_key(from) {
            return Ok(false);
        }
        if to == from {
            return Ok(true);
        }
        if is_below(&to, from) || self.entries.contains_key(&to) || !is_directory(parent(&to)) {
            return Ok(false);
        }
        self.put(from, &to);
        Ok(true)
    }

    fn rename2(&mut self, from: &str, to: &str, overwrite: bool) -> Answer<()> {
        self.is_passable(from, NO_WAY)?;
        self.is_passable(to, PARENT_IS_FILE)?;
        let moved = self.entries.get(from).ok_or(NOT_FOUND)?;
        if to == from {
            return Err(EXISTS);
        }
        if is_below(to, from) {
            return Err(IO);
        }
        if let Some(there) = self.entries.get(to) {
            if (there.kind == Kind::Directory) != (moved.kind == Kind::Directory) {
                return Err(IO);
            }
            if !overwrite {
                return Err(EXISTS);
            }
            if self.count(to) > 0 {
                return Err(IO);
            }
            self.remove(to);
        } else if !self.entries.contains_key(parent(to)) {
            return Err(NOT_FOUND);
        }
        self.put(from, to);
        Ok(())
    }

    /// Nothing on the way is a file.
    fn is_passable(&self, path: &str, class: &'static str) -> Answer<()> {
        let is_file = |above: &str| {
            self.entries.get(above).is_some_and(|entry| matches!(entry.kind, Kind::File { .. }))
        };
        if way(path).any(is_file) { Err(class) } else { Ok(()) }
    }

    fn existing(&mut self, path: &str) -> Answer<&mut Entry> {
        self.is_passable(path, NO_WAY)?;
        self.entries.get_mut(path).ok_or(NOT_FOUND)
    }

    fn enter(&mut self, path: &str, id: Option<u64>, kind: Kind) {
        let permission = if kind == Kind::Directory { DIRECTORY_PERMISSION } else { FILE_PERMISSION };
        self.entries.insert(path.to_owned(), Entry { id, permission, length: 0, kind });
    }

    /// With all below.
    fn take(&mut self, path: &str) -> Vec<(String, Entry)> {
        let is_of = |at: &String| at == path || is_below(at, path);
        self.entries.extract_if(.., |at, _| is_of(at)).collect()
    }

    fn remove(&mut self, path: &str) {
        let removed = self.take(path);
        self.gone.extend(removed.into_iter().filter_map(|(_, entry)| entry.id));
    }

    fn put(&mut self, from: &str, to: &str) {
        for (path, entry) in self.take(from) {
            self.entries.insert(format!("{to}{}", &path[from.len()..]), entry);
        }
    }

    fn inside(&self, path: &str) -> impl Iterator<Item = &String> {
        self.entries.keys().filter(move |at| !at.is_empty() && parent(at) == path)
    }

    fn count(&self, path: &str) -> usize {
        self.inside(path).count()
    }

    fn knows(&self, id: u64) -> bool {
        self.gone.contains(&id) || self.entries.values().any(|entry| entry.id == Some(id))
    }

    /// Whether the file or directory there may have this id. If so, it has this id from here on.
    fn is_called(&mut self, path: &str, id: u64) -> bool {
        let is_new = !self.knows(id);
        match self.entries.get_mut(path) {
            Some(Entry { id: Some(known), .. }) => *known == id,
            Some(entry) => {
                entry.id = Some(id);
                is_new
            }
            None => false,
        }
    }

    fn looks_like(&mut self, path: &str, seen: &Seen) -> bool {
        let count = self.count(path) as u32;
        let Some(entry) = self.entries.get(path) else { return false };
        let is_directory = entry.kind == Kind::Directory;
        (entry.permission, entry.length) == (seen.permission, seen.length)
            && is_directory == seen.is_directory
            && (!is_directory || seen.children.is_none_or(|children| children == count))
            && self.is_called(path, seen.id)
    }

    /// A listing of a file is the file, without a name.
    fn has_inside(&mut self, path: &str, listed: &[(String, Seen)]) -> bool {
        let paths: Vec<String> = match self.entries.get(path) {
            Some(Entry { kind: Kind::Directory, .. }) => self.inside(path).cloned().collect(),
            Some(_) => vec![path.to_owned()],
            None => return false,
        };
        let is_file = paths.first().is_some_and(|first| first == path);
        let names = paths.iter().map(|path| if is_file { "" } else { name(path) });
        names.eq(listed.iter().map(|(name, _)| name.as_str()))
            && paths.iter().zip(listed).all(|(path, (_, seen))| self.looks_like(path, seen))
    }
}

fn refused(told: Option<&Outcome>) -> Option<&str> {
    match told {
        Some(Outcome::Refused(class)) => Some(class),
        _ => None,
    }
}

fn fits(told: Option<&Outcome>, answer: Answer<Outcome>) -> bool {
    let answer = answer.unwrap_or_else(|class| Outcome::Refused(class.to_owned()));
    told.is_none_or(|told| *told == answer)
}
