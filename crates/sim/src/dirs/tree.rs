//! A small model of a tree: directories that all groups hold, files that their homes hold, calls, and their plans.
//!
//! A plan says what it saw, as the namespace's plans will. The order of all calls is checked with the very same plans on one whole tree.

use base::GroupId;
use dirlog::{Mark, MarkKind};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

pub type Name = u8;
pub type DirId = u8;
pub type FileId = u8;

/// The directory `/`.
pub const TOP: DirId = 0;

/// A path of at most three names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub &'static [Name]);

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Path {
    fn split(self) -> (&'static [Name], Option<Name>) {
        match self.0.split_last() {
            Some((last, parents)) => (parents, Some(*last)),
            None => (&[], None),
        }
    }

    pub fn text(self) -> String {
        if self.0.is_empty() {
            return "/".to_owned();
        }
        self.0.iter().map(|name| format!("/{}", char::from(*name))).collect()
    }
}

/// A call of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    Mkdir(Path),
    Rmdir(Path),
    RenameDir(Path, Path),
    /// Nobody may create or delete anything below, from now on.
    Close(Path),
    Create(Path),
    Delete(Path),
    /// A file, within one home or between two.
    Move(Path, Path),
    Stat(Path),
    List(Path),
}

/// What a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Done,
    Missing,
    Exists,
    NotEmpty,
    Denied,
    /// Whether there was a source, and whether there was something in the place of the target.
    NotMoved {
        source: bool,
        target: bool,
    },
    Nothing,
    IsDir,
    IsFile(FileId),
    /// One bit a name, directories above files.
    Names(u64),
}

/// A change, fully resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edit {
    Mkdir { id: DirId, parent: DirId, name: Name },
    Rmdir { id: DirId },
    RenameDir { id: DirId, parent: DirId, name: Name },
    Close { id: DirId },
    Create { dir: DirId, name: Name, file: FileId },
    Delete { dir: DirId, name: Name },
    Move { from: (DirId, Name), to: (DirId, Name), file: FileId },
}

impl Edit {
    pub fn encode(self) -> [u8; 6] {
        match self {
            Self::Mkdir { id, parent, name } => [0, id, parent, name, 0, 0],
            Self::Rmdir { id } => [1, id, 0, 0, 0, 0],
            Self::RenameDir { id, parent, name } => [2, id, parent, name, 0, 0],
            Self::Close { id } => [3, id, 0, 0, 0, 0],
            Self::Create { dir, name, file } => [4, dir, name, file, 0, 0],
            Self::Delete { dir, name } => [5, dir, name, 0, 0, 0],
            Self::Move { from, to, file } => [6, from.0, from.1, to.0, to.1, file],
        }
    }

    pub fn decode(bytes: &[u8]) -> Self {
        match *bytes {
            [0, id, parent, name, _, _] => Self::Mkdir { id, parent, name },
            [1, id, ..] => Self::Rmdir { id },
            [2, id, parent, name, _, _] => Self::RenameDir { id, parent, name },
            [3, id, ..] => Self::Close { id },
            [4, dir, name, file, ..] => Self::Create { dir, name, file },
            [5, dir, name, ..] => Self::Delete { dir, name },
            [6, a, b, c, d, file] => Self::Move { from: (a, b), to: (c, d), file },
            _ => panic!("no edit is encoded so"),
        }
    }
}

/// What the root group asks a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// Which file has the name?
    Name(DirId, Name),
    /// Is there a file in the directory?
    Files(DirId),
}

/// What a plan comes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// An answer that changes nothing.
    Answer(Outcome),
    Do(Edit),
    /// These facts of other homes are needed.
    Ask(Vec<Question>),
}

/// A plan, and all that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Planned {
    pub plan: Plan,
    pub seen: Vec<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dir {
    pub parent: DirId,
    pub name: Name,
    pub is_closed: bool,
}

pub fn name_of(dir: DirId, name: Name) -> Mark {
    Mark::new(MarkKind::Name, u128::from(dir) << 8 | u128::from(name))
}

pub fn mark_of(kind: MarkKind, id: u8) -> Mark {
    Mark::new(kind, id.into())
}

/// The group of this index: the root group has 0, the first home 1.
pub fn group_id(index: usize) -> GroupId {
    GroupId(GroupId::ROOT.0 + index as u32)
}

/// The home of a directory. `/` is the root group's; directories that are there from the beginning have small numbers.
pub fn home(dir: DirId, homes: u8) -> GroupId {
    group_id(if dir == TOP { 0 } else { usize::from(1 + (dir + 1) % homes) })
}

/// A group's tree: all directories, and its own files; or a whole tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tree {
    pub dirs: BTreeMap<DirId, Dir>,
    pub files: BTreeMap<(DirId, Name), FileId>,
    pub closed_top: bool,
}

impl Tree {
    fn child(&self, parent: DirId, name: Name) -> Option<DirId> {
        self.dirs.iter().find(|(_, dir)| (dir.parent, dir.name) == (parent, name)).map(|(id, _)| *id)
    }

    fn is_closed(&self, id: DirId) -> bool {
        self.dirs.get(&id).map_or(self.closed_top, |dir| dir.is_closed)
    }

    /// The deepest directory of the path that exists, and how many names lead there; what was seen on the way.
    pub fn walk(&self, names: &[Name], seen: &mut Vec<Mark>) -> (DirId, usize, bool) {
        let mut at = TOP;
        let mut is_closed = self.is_closed(TOP);
        seen.push(mark_of(MarkKind::Passage, TOP));
        for (count, name) in names.iter().enumerate() {
            seen.push(name_of(at, *name));
            match self.child(at, *name) {
                Some(next) => {
                    at = next;
                    is_closed |= self.is_closed(at);
                    seen.push(mark_of(MarkKind::Passage, at));
                }
                None => return (at, count, is_closed),
            }
        }
        (at, names.len(), is_closed)
    }

    /// The directory of the path, if it is there.
    fn dir(&self, names: &[Name], seen: &mut Vec<Mark>) -> Option<(DirId, bool)> {
        let (dir, count, is_closed) = self.walk(names, seen);
        (count == names.len()).then_some((dir, is_closed))
    }

    fn has_subdirs(&self, id: DirId) -> bool {
        self.dirs.values().any(|dir| dir.parent == id)
    }

    fn has_files(&self, id: DirId) -> bool {
        self.files.range((id, 0)..=(id, u8::MAX)).next().is_some()
    }

    fn is_below(&self, mut id: DirId, top: DirId) -> bool {
        let mut steps = 0;
        while id != TOP && steps <= self.dirs.len() {
            if id == top {
                return true;
            }
            id = self.dirs.get(&id).map_or(TOP, |dir| dir.parent);
            steps += 1;
        }
        top == TOP
    }

    /// The group that decides this call, as far as this tree shows: `None` is the root group's ordering.
    pub fn decider(&self, call: Call, homes: u8) -> Option<GroupId> {
        let mut seen = Vec::new();
        let mut home_of = |names: &[Name]| home(self.walk(names, &mut seen).0, homes);
        match call {
            Call::Mkdir(_) | Call::Rmdir(_) | Call::RenameDir(..) | Call::Close(_) => None,
            Call::Move(from, to) => {
                let (one, other) = (home_of(from.split().0), home_of(to.split().0));
                (one == other).then_some(one)
            }
            Call::Create(path) | Call::Delete(path) | Call::Stat(path) => Some(home_of(path.split().0)),
            Call::List(path) => Some(home_of(path.0)),
        }
    }

    /// Plans a call. `fact` tells what a home has answered, or what is known here; `None`: it must be asked for.
    pub fn plan(&self, call: Call, number: u8, fact: &dyn Fn(Question) -> Option<u8>) -> Planned {
        let mut seen = Vec::new();
        let plan = self.plan_seeing(call, number, fact, &mut seen);
        Planned { plan, seen }
    }

    fn plan_seeing(
        &self,
        call: Call,
        number: u8,
        fact: &dyn Fn(Question) -> Option<u8>,
        seen: &mut Vec<Mark>,
    ) -> Plan {
        use Plan::{Answer, Ask, Do};
        match call {
            Call::Mkdir(path) => {
                let (parents, Some(name)) = path.split() else { return Answer(Outcome::Exists) };
                let Some((parent, is_closed)) = self.dir(parents, seen) else {
                    return Answer(Outcome::Missing);
                };
                seen.push(name_of(parent, name));
                if self.child(parent, name).is_some() {
                    return Answer(Outcome::Exists);
                }
                match fact(Question::Name(parent, name)) {
                    None => Ask(vec![Question::Name(parent, name)]),
                    Some(0) if is_closed => Answer(Outcome::Denied),
                    Some(0) => Do(Edit::Mkdir { id: 8 + number, parent, name }),
                    Some(_) => Answer(Outcome::Exists),
                }
            }
            Call::Rmdir(path) => {
                let Some((id, _)) = self.dir(path.0, seen).filter(|(id, _)| *id != TOP) else {
                    return Answer(Outcome::Missing);
                };
                seen.extend([mark_of(MarkKind::Names, id), mark_of(MarkKind::Files, id)]);
                if self.has_subdirs(id) {
                    return Answer(Outcome::NotEmpty);
                }
                match fact(Question::Files(id)) {
                    None => Ask(vec![Question::Files(id)]),
                    Some(0) => Do(Edit::Rmdir { id }),
                    Some(_) => Answer(Outcome::NotEmpty),
                }
            }
            Call::RenameDir(from, to) => {
                let Some((id, _)) = self.dir(from.0, seen).filter(|(id, _)| *id != TOP) else {
                    return Answer(Outcome::Missing);
                };
                let (parents, Some(name)) = to.split() else { return Answer(Outcome::Exists) };
                let Some((parent, _)) = self.dir(parents, seen) else { return Answer(Outcome::Missing) };
                seen.push(name_of(parent, name));
                if self.child(parent, name).is_some() || self.is_below(parent, id) {
                    return Answer(Outcome::Exists);
                }
                match fact(Question::Name(parent, name)) {
                    None => Ask(vec![Question::Name(parent, name)]),
                    Some(0) => Do(Edit::RenameDir { id, parent, name }),
                    Some(_) => Answer(Outcome::Exists),
                }
            }
            Call::Close(path) => match self.dir(path.0, seen) {
                Some((id, _)) => Do(Edit::Close { id }),
                None => Answer(Outcome::Missing),
            },
            Call::Create(path) | Call::Delete(path) => {
                let (parents, Some(name)) = path.split() else { return Answer(Outcome::IsDir) };
                let Some((dir, is_closed)) = self.dir(parents, seen) else { return Answer(Outcome::Missing) };
                seen.extend([name_of(dir, name), mark_of(MarkKind::Files, dir)]);
                if is_closed {
                    return Answer(Outcome::Denied);
                }
                if self.child(dir, name).is_some() {
                    return Answer(Outcome::IsDir);
                }
                match (self.files.get(&(dir, name)), call) {
                    (None, Call::Create(_)) => Do(Edit::Create { dir, name, file: 1 + number }),
                    (Some(_), Call::Create(_)) => Answer(Outcome::Exists),
                    (Some(_), _) => Do(Edit::Delete { dir, name }),
                    (None, _) => Answer(Outcome::Missing),
                }
            }
            Call::Move(from, to) => self.plan_move(from, to, fact, seen),
            Call::Stat(path) => {
                let (parents, Some(name)) = path.split() else { return Answer(Outcome::IsDir) };
                let Some((dir, _)) = self.dir(parents, seen) else { return Answer(Outcome::Nothing) };
                seen.push(name_of(dir, name));
                if self.child(dir, name).is_some() {
                    return Answer(Outcome::IsDir);
                }
                Answer(self.files.get(&(dir, name)).map_or(Outcome::Nothing, |file| Outcome::IsFile(*file)))
            }
            Call::List(path) => {
                let Some((id, _)) = self.dir(path.0, seen) else { return Answer(Outcome::Missing) };
                seen.push(mark_of(MarkKind::Names, id));
                let bit = |name: Name| 1_u64 << (name % 32);
                let dirs: u64 =
                    self.dirs.values().filter(|dir| dir.parent == id).map(|dir| bit(dir.name)).sum();
                let files: u64 =
                    self.files.range((id, 0)..=(id, u8::MAX)).map(|((_, name), _)| bit(*name)).sum();
                Answer(Outcome::Names(dirs << 32 | files))
            }
        }
    }

    fn plan_move(
        &self,
        from: Path,
        to: Path,
        fact: &dyn Fn(Question) -> Option<u8>,
        seen: &mut Vec<Mark>,
    ) -> Plan {
        use Plan::{Answer, Ask, Do};
        let ((parents, Some(name)), (to_parents, Some(to_name))) = (from.split(), to.split()) else {
            return Answer(Outcome::Missing);
        };
        let Some((dir, _)) = self.dir(parents, seen) else { return Answer(Outcome::Missing) };
        let Some((to_dir, _)) = self.dir(to_parents, seen) else { return Answer(Outcome::Missing) };
        seen.extend([name_of(dir, name), name_of(to_dir, to_name)]);
        seen.extend([mark_of(MarkKind::Files, dir), mark_of(MarkKind::Files, to_dir)]);
        let questions = [Question::Name(dir, name), Question::Name(to_dir, to_name)];
        let facts = questions.map(fact);
        let [Some(file), Some(target)] = facts else { return Ask(questions.to_vec()) };
        let is_taken = target != 0 || self.child(to_dir, to_name).is_some();
        match (file, is_taken) {
            (0, _) | (_, true) => Answer(Outcome::NotMoved { source: file != 0, target: is_taken }),
            (file, false) => Do(Edit::Move { from: (dir, name), to: (to_dir, to_name), file }),
        }
    }

    /// What a home tells, by its own files.
    pub fn tell(&self, question: Question) -> u8 {
        match question {
            Question::Name(dir, name) => self.files.get(&(dir, name)).copied().unwrap_or(0),
            Question::Files(dir) => self.has_files(dir).into(),
        }
    }

    /// The marks of an entry, made on the tree on which it was planned.
    pub fn marks(&self, edit: Edit) -> Vec<Mark> {
        let named = |dir: DirId, name: Name| [name_of(dir, name), mark_of(MarkKind::Names, dir)];
        let mut marks = Vec::new();
        match edit {
            Edit::Mkdir { id, parent, name } => {
                marks.extend(named(parent, name));
                marks.push(mark_of(MarkKind::Passage, id));
            }
            Edit::Rmdir { id } | Edit::RenameDir { id, .. } => {
                if let Some(dir) = self.dirs.get(&id) {
                    marks.extend(named(dir.parent, dir.name));
                }
                if let Edit::RenameDir { parent, name, .. } = edit {
                    marks.extend(named(parent, name));
                }
                marks.extend([mark_of(MarkKind::Passage, id), mark_of(MarkKind::Files, id)]);
            }
            Edit::Close { id } => {
                marks.extend([mark_of(MarkKind::Passage, id), mark_of(MarkKind::Inode, id)]);
            }
            Edit::Create { dir, name, .. } | Edit::Delete { dir, name } => marks.extend(named(dir, name)),
            Edit::Move { from, to, file } => {
                marks.extend(named(from.0, from.1));
                marks.extend(named(to.0, to.1));
                marks.push(mark_of(MarkKind::Inode, file));
                marks.extend([mark_of(MarkKind::Files, from.0), mark_of(MarkKind::Files, to.0)]);
            }
        }
        marks
    }

    /// What the holds of a question keep still.
    pub fn held_marks(question: Question) -> Mark {
        match question {
            Question::Name(dir, name) => name_of(dir, name),
            Question::Files(dir) => mark_of(MarkKind::Files, dir),
        }
    }

    /// Applies a change. `own`: the directories whose files are here; `None`: all.
    pub fn apply(&mut self, edit: Edit, own: Option<(GroupId, u8)>) {
        let is_own = |dir: DirId| own.is_none_or(|(group, homes)| home(dir, homes) == group);
        match edit {
            Edit::Mkdir { id, parent, name } => {
                _ = self.dirs.insert(id, Dir { parent, name, is_closed: false })
            }
            Edit::Rmdir { id } => _ = self.dirs.remove(&id),
            Edit::RenameDir { id, parent, name } => {
                if let Some(dir) = self.dirs.get_mut(&id) {
                    (dir.parent, dir.name) = (parent, name);
                }
            }
            Edit::Close { id: TOP } => self.closed_top = true,
            Edit::Close { id } => {
                if let Some(dir) = self.dirs.get_mut(&id) {
                    dir.is_closed = true;
                }
            }
            Edit::Create { dir, name, file } => _ = self.files.insert((dir, name), file),
            Edit::Delete { dir, name } => _ = self.files.remove(&(dir, name)),
            Edit::Move { from, to, file } => {
                if is_own(from.0) {
                    self.files.remove(&from);
                }
                if is_own(to.0) {
                    self.files.insert(to, file);
                }
            }
        }
    }

    /// The call on a whole tree, at once: the order of all calls is made of these.
    pub fn call(&mut self, call: Call, number: u8) -> Outcome {
        let planned = self.plan(call, number, &|question| Some(self.tell(question)));
        match planned.plan {
            Plan::Answer(outcome) => outcome,
            Plan::Do(edit) => {
                self.apply(edit, None);
                Outcome::Done
            }
            Plan::Ask(_) => unreachable!("everything is known"),
        }
    }

    /// S1 and S2 of one group: a name has one inode, and everything hangs on `/`.
    ///
    /// # Errors
    /// The rule that does not hold, and where.
    pub fn is_sound(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for (id, dir) in &self.dirs {
            let mut at = dir.parent;
            for _ in 0..=self.dirs.len() {
                if at == TOP {
                    break;
                }
                match self.dirs.get(&at) {
                    Some(above) => at = above.parent,
                    None => {
                        return Err(format!(
                            "the tree is attached: directory {id} hangs on {at}, which is not there"
                        ));
                    }
                }
            }
            if at != TOP {
                return Err(format!("the tree is acyclic: directory {id} is below itself"));
            }
            if !names.insert((dir.parent, dir.name)) || self.files.contains_key(&(dir.parent, dir.name)) {
                return Err(format!("a name has one inode: {}/{}", dir.parent, char::from(dir.name)));
            }
        }
        for (dir, name) in self.files.keys() {
            if *dir != TOP && !self.dirs.contains_key(dir) {
                return Err(format!(
                    "the tree is attached: file {} lies in {dir}, which is not there",
                    char::from(*name)
                ));
            }
        }
        Ok(())
    }
}
