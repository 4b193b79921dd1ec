//! Which group decides a call, by the tree of the server that looks.

use base::{BlockId, FsError, GroupId, InodeId, directory_log::Mark};
use namespace::{Namespace, homes::Intent};
use proto::{
    methods::{self, Class, Kind, Method},
    protocol,
    subject::{Subject, subject},
};
use rpc::Call;

/// A call of a client, as far as it matters for that.
pub struct Looked {
    pub method: &'static Method,
    pub subject: Subject,
    is_forwarded: bool,
}

/// Whether the group that looks decides the call.
pub enum Decision {
    Group(GroupId),
    /// No group can, as this one, which decides about the first path, says: the call touches files of several.
    Refused(GroupId, FsError),
}

/// The group that decides a call, if it is not the one that has this tree.
pub fn elsewhere(call: &Call, tree: &Namespace) -> Option<GroupId> {
    if !tree.has_homes() {
        return None;
    }
    match Looked::at(call)?.decision(tree)? {
        Decision::Group(group) | Decision::Refused(group, _) => {
            Some(group).filter(|group| *group != tree.group())
        }
    }
}

/// The marks of what a call has seen in the root group's tree.
pub fn seen(call: &Call, tree: &Namespace) -> Vec<Mark> {
    let mut seen = Vec::new();
    if let Some(looked) = Looked::at(call) {
        // A change of directories names all that it looks at by paths.
        let _ = looked.seen(tree, &mut seen);
    }
    seen
}

impl Looked {
    /// `None`: it is no call of `ClientProtocol`.
    pub fn at(call: &Call) -> Option<Self> {
        let method = methods::method(call.method).filter(|_| call.protocol == protocol::CLIENT_NAMENODE)?;
        Some(Self { method, subject: subject(method, &call.request), is_forwarded: call.is_forwarded })
    }

    /// `None`: each server answers the call about itself.
    pub fn decision(&self, tree: &Namespace) -> Option<Decision> {
        let Self { method, subject, is_forwarded } = self;
        if method.kind == Kind::Own {
            return None;
        }
        Some(match method.class {
            Class::Home => self.among_homes(tree),
            Class::Pool => Decision::Group(match subject.block {
                Some(block) => tree.decider_of_block(BlockId(block)),
                None => GroupId::ROOT,
            }),
            // The door asks all groups, and puts their answers together. Each answers for itself.
            Class::Every if *is_forwarded => Decision::Group(tree.group()),
            // A sum that is about one file is its home's.
            Class::Every if subject.paths.first().is_some_and(|path| !tree.is_directory(path)) => {
                self.among_homes(tree)
            }
            Class::Member | Class::Any | Class::Ordered | Class::Root | Class::Every | Class::Stream => {
                Decision::Group(GroupId::ROOT)
            }
        })
    }

    fn among_homes(&self, tree: &Namespace) -> Decision {
        let Subject { paths, file, makes_parents, .. } = &self.subject;
        if let Some(file) = file {
            return Decision::Group(tree.decider_of_file(InodeId(*file)));
        }
        let intent = match self.method.kind {
            Kind::Edit if *makes_parents => Intent::CreateWithParents,
            Kind::Edit if self.method.name != "setTimes" => Intent::Change,
            _ => Intent::Look,
        };
        let Some(first) = paths.first() else { return Decision::Group(GroupId::ROOT) };
        let group = tree.decider(first, intent);
        let is_rename = matches!(self.method.name, "rename" | "rename2");
        let others = &paths[1..];
        let is_of_one = match is_rename {
            // What is moved is a directory, or goes to a directory of the same home.
            true => {
                tree.is_directory(first) || others.iter().all(|to| tree.decider(to, Intent::Look) == group)
            }
            false => others.iter().all(|path| tree.decider(path, intent) == group),
        };
        match is_of_one {
            true => Decision::Group(group),
            false => Decision::Refused(
                group,
                FsError::Unsupported(format!(
                    "{} is not possible yet where the files of {first} and {} belong to different groups of metadata servers.",
                    self.method.name,
                    others.join(", ")
                )),
            ),
        }
    }

    /// The path that a rename makes in a directory that is there, and that the call does not name.
    fn moved_into(&self, tree: &Namespace) -> Option<String> {
        let [from, to] = &self.subject.paths[..] else { return None };
        if self.method.name != "rename" || !tree.is_directory(to) {
            return None;
        }
        let name = from.trim_end_matches('/').rsplit('/').next()?;
        Some(format!("{}/{name}", to.trim_end_matches('/')))
    }

    /// Adds the marks of what a plan of the call rests on at a home. False: it may rest on anything.
    pub fn seen(&self, tree: &Namespace, seen: &mut Vec<Mark>) -> bool {
        let Subject { paths, file, block, .. } = &self.subject;
        if let Some(file) = file {
            tree.seen_by_home_of(InodeId(*file), seen);
        }
        let is_known = paths.iter().all(|path| tree.seen_by_home(path, true, seen));
        let is_known =
            is_known && self.moved_into(tree).is_none_or(|path| tree.seen_by_home(&path, true, seen));
        // The file of a block is found by the block alone.
        is_known && block.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Caller, Moment, Timestamp, TxId};
    use namespace::{Context, Edit, Limits, Planned, ops, questions::Question};

    /// A tree with these directories.
    fn tree(paths: &[&str]) -> Namespace {
        let mut tree = Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1));
        let (caller, limits) = (Caller::simple("hdfs", &["supergroup"]), Limits::default());
        for (at, path) in paths.iter().enumerate() {
            let context = Context {
                caller: &caller,
                origin: None,
                fingerprint: 0,
                now: Timestamp::from_ms(1),
                moment: Moment::default(),
                limits: &limits,
                renewals: None,
                looks: None,
                told: None,
            };
            let (path, create_parent) = ((*path).to_owned(), true);
            let request = ops::mkdirs::Request { path, permission: 0o755, unmasked: None, create_parent };
            let planned = ops::mkdirs::plan(&tree, &context, &request);
            let Ok(Planned::Edit(edit)) = planned else { panic!("{planned:?}") };
            let at = TxId { epoch: base::Epoch(1), sn: base::Sn(at as u64 + 1) };
            tree.apply(at, &Edit::from(edit));
        }
        tree
    }

    fn seen(tree: &Namespace, method: &str, paths: &[&str]) -> Vec<Mark> {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let subject = Subject { paths, ..Subject::default() };
        let looked = Looked { method: methods::method(method).unwrap(), subject, is_forwarded: false };
        let mut seen = Vec::new();
        assert!(looked.seen(tree, &mut seen));
        seen
    }

    /// A home that has told that a directory has no file of this name, or none at all, lets no call make one.
    #[test]
    fn a_call_that_makes_a_file_meets_the_holds_about_it() {
        let tree = tree(&["/a/b", "/c"]);
        let directory = InodeId(InodeId::ROOT.0 + 2);
        let held = [
            Question::HasFile { directory, name: "f".into() }.mark(),
            Question::HasFiles { directory }.mark(),
        ];
        for (method, paths) in [
            ("create", &["/a/b/f"][..]),
            ("rename", &["/c/f", "/a/b/f"]),
            // Into the directory, under its own name, which the call does not say.
            ("rename", &["/c/f", "/a/b"]),
            ("rename", &["/c/f", "/a/b/"]),
            ("rename2", &["/c/f", "/a/b/f"]),
            ("delete", &["/a/b/f"]),
            ("setOwner", &["/a/b/f"]),
        ] {
            let seen = seen(&tree, method, paths);
            assert!(held.iter().all(|mark| seen.contains(mark)), "{method} {paths:?}");
        }
    }
}
