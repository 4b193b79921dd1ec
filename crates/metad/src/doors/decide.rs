//! Which group decides a call, by the tree of the server that looks: reads from a client's call what [`namespace::homes`] decides by.

use base::{BlockId, GroupId, InodeId, directory_log::Mark};
use namespace::{
    Namespace, RetryLookup,
    homes::{Decision, HomeCall, Intent, Rename},
};
use proto::{
    methods::{self, Class, Kind, Method, Paths},
    protocol,
    subject::{Subject, subject},
};
use rpc::Call;

/// A call of a client, as far as it matters for which group decides it.
pub struct Looked {
    pub method: &'static Method,
    pub home_call: HomeCall,
    /// The call asks this group for its part alone.
    pub is_part: bool,
}

/// The group that decides a call, if it is not the one that has this tree.
pub fn elsewhere(call: &Call, tree: &Namespace) -> Option<GroupId> {
    if !tree.has_homes() {
        return None;
    }
    let group = Looked::at(call)?.decision(tree)?.group();
    Some(group).filter(|group| *group != tree.group())
}

/// Whether the group of this tree has carried the call out before. It has the answer, wherever the call's paths lead since then.
pub fn is_remembered(looked: &Looked, call: &Call, tree: &Namespace) -> bool {
    looked.method.kind == Kind::Edit && tree.retry_lookup(&call.origin, 0) != RetryLookup::Miss
}

/// The marks of what a call has seen in the root group's tree.
pub fn seen(call: &Call, tree: &Namespace) -> Vec<Mark> {
    let mut seen = Vec::new();
    if let Some(looked) = Looked::at(call) {
        // A change of directories names all that it looks at by paths.
        let _ = looked.home_call.seen(tree, &mut seen);
    }
    seen
}

impl Looked {
    /// `None`: it is no call of `ClientProtocol`.
    pub fn at(call: &Call) -> Option<Self> {
        let method = methods::method(call.method).filter(|_| call.protocol == protocol::CLIENT_NAMENODE)?;
        let home_call = home_call(method, subject(method, &call.request));
        Some(Self { method, home_call, is_part: call.is_part })
    }

    /// `None`: each server answers the call about itself.
    pub fn decision(&self, tree: &Namespace) -> Option<Decision> {
        let Self { method, home_call, is_part } = self;
        if method.kind == Kind::Own {
            return None;
        }
        Some(match method.class {
            Class::Home | Class::Pool => home_call.decision(tree),
            // Each group is asked for its own part.
            Class::Every if *is_part => Decision::Group(tree.group()),
            // A sum that is about one file is its home's.
            Class::Every if self.is_about_no_directory(tree) => home_call.decision(tree),
            Class::Member | Class::Any | Class::Ordered | Class::Root | Class::Every | Class::Stream => {
                Decision::Group(GroupId::ROOT)
            }
        })
    }

    /// Whether the call names a path where no directory is.
    pub fn is_about_no_directory(&self, tree: &Namespace) -> bool {
        self.home_call.paths.first().is_some_and(|path| !tree.is_directory(path))
    }
}

fn home_call(method: &Method, subject: Subject) -> HomeCall {
    let intent = match method.kind {
        Kind::Edit if subject.makes_parents => Intent::CreateWithParents,
        Kind::Edit if method.name != "setTimes" => Intent::Change,
        _ => Intent::Look,
    };
    let rename = match method.name {
        "rename" => Some(Rename::ToOrInto),
        "rename2" => Some(Rename::To),
        _ => None,
    };
    let (file, block) = (subject.file.map(InodeId), subject.block.map(BlockId));
    let is_batch = method.paths == Paths::Many;
    HomeCall { intent, paths: subject.paths, file, block, rename, is_batch }
}
