//! Random operations against a slow obvious file system, and the promises of plan and apply: whatever plan
//! accepts apply accepts, edits survive their bytes, and a replay, an image and a snapshot are the same tree.

mod common;

use base::{Block, Caller, FsError, InodeId};
use common::{Dice, World};
use namespace::{
    FileKind, Limits, Namespace,
    acl::{AclEntry, Kind, Scope},
    ops::{self, set_acl::Change},
    reads::{
        get_acl_status, get_block_locations, get_content_summary::Walk, get_file_info, get_listing,
        get_xattrs,
    },
    xattr::{Space, XattrName},
};
use std::{collections::BTreeMap, ops::Bound};

/// The paths that must exist: `None` for a directory, else the final lengths of a file's blocks.
#[derive(Default)]
struct Model {
    nodes: BTreeMap<String, Node>,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Directory,
    /// `cut`: the length that its last block is being truncated to.
    File {
        lengths: Vec<u64>,
        open: bool,
        id: InodeId,
        cut: Option<u64>,
    },
}

impl Model {
    fn is_directory(&self, path: &str) -> bool {
        path == "/" || matches!(self.nodes.get(path), Some(Node::Directory))
    }

    fn exists(&self, path: &str) -> bool {
        path == "/" || self.nodes.contains_key(path)
    }

    /// Whether something on the way to the path is a file.
    fn is_blocked(&self, path: &str) -> bool {
        ancestors(path).any(|above| matches!(self.nodes.get(above), Some(Node::File { .. })))
    }

    fn children(&self, path: &str) -> Vec<&str> {
        let prefix = if path == "/" { "/".to_string() } else { format!("{path}/") };
        let range = (Bound::Excluded(prefix.clone()), Bound::Unbounded);
        let below = self.nodes.range::<String, _>(range).map(|(path, _)| path);
        let below = below.take_while(|path| path.starts_with(&prefix));
        below.map(|path| &path[prefix.len()..]).filter(|name| !name.contains('/')).collect()
    }

    fn make_ancestors(&mut self, path: &str) {
        let missing: Vec<String> = ancestors(path).map(String::from).collect();
        for above in missing {
            self.nodes.entry(above).or_insert(Node::Directory);
        }
    }

    fn remove(&mut self, path: &str) {
        let prefix = format!("{path}/");
        self.nodes.retain(|other, _| other != path && !other.starts_with(&prefix));
    }

    fn rename(&mut self, from: &str, to: &str) {
        self.remove(to);
        let prefix = format!("{from}/");
        let moved: Vec<String> =
            self.nodes.keys().filter(|path| *path == from || path.starts_with(&prefix)).cloned().collect();
        for path in moved {
            if let Some(node) = self.nodes.remove(&path) {
                self.nodes.insert(format!("{to}{}", &path[from.len()..]), node);
            }
        }
    }
}

fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).filter(|above| !above.is_empty())
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

fn random_path(dice: &mut Dice) -> String {
    let depth = 1 + dice.below(4);
    (0..depth).map(|_| format!("/{}", ["a", "b", "c", "d%", "é"][dice.below(5) as usize])).collect()
}

struct Run {
    world: World,
    model: Model,
    dice: Dice,
    /// The attributes of each inode, by its id: it may have been moved.
    xattrs: BTreeMap<InodeId, BTreeMap<XattrName, Vec<u8>>>,
}

impl Run {
    fn mkdirs(&mut self) {
        let path = random_path(&mut self.dice);
        let create_parent = self.dice.below(3) > 0;
        let result = self.world.mkdirs(&path, create_parent);
        let model = &mut self.model;
        if model.is_directory(&path) {
            assert_eq!(result, Ok(true));
        } else if model.exists(&path) {
            assert!(matches!(result, Err(FsError::AlreadyExists(_))), "{result:?}");
        } else if model.is_blocked(&path) {
            assert!(matches!(result, Err(FsError::ParentNotDirectory(_))), "{result:?}");
        } else if !create_parent && !model.is_directory(parent(&path)) {
            assert!(matches!(result, Err(FsError::NotFound(_))), "{result:?}");
        } else {
            assert_eq!(result, Ok(true));
            model.make_ancestors(&path);
            model.nodes.insert(path, Node::Directory);
        }
    }

    fn create(&mut self) {
        let path = random_path(&mut self.dice);
        let overwrite = self.dice.below(2) == 0;
        let result = self.world.create(&path, overwrite);
        let model = &mut self.model;
        if model.is_blocked(&path) {
            assert!(matches!(result, Err(FsError::ParentNotDirectory(_))), "{result:?}");
            return;
        }
        match model.nodes.get(&path) {
            Some(Node::Directory) => assert!(matches!(result, Err(FsError::AlreadyExists(_)))),
            Some(Node::File { open, .. }) if !overwrite => match open {
                true => assert!(matches!(result, Err(FsError::AlreadyBeingCreated(_))), "{result:?}"),
                false => assert!(matches!(result, Err(FsError::AlreadyExists(_))), "{result:?}"),
            },
            _ => {
                let id = result.unwrap_or_else(|error| panic!("{path}: {error}"));
                model.make_ancestors(&path);
                model.nodes.insert(path, Node::File { lengths: Vec::new(), open: true, id, cut: None });
            }
        }
    }

    fn random_file(&mut self, wanted: bool) -> Option<String> {
        let files = self.model.nodes.iter().filter(|(_, node)| match node {
            Node::Directory => false,
            Node::File { open, cut, .. } => *open == wanted && cut.is_none(),
        });
        let files: Vec<&String> = files.map(|(path, _)| path).collect();
        (!files.is_empty()).then(|| files[self.dice.below(files.len() as u64) as usize].clone())
    }

    /// Adds a block, or closes the file; the last block gets a length either way.
    fn write(&mut self) {
        let Some(path) = self.random_file(true) else {
            return;
        };
        let (close, length) = (self.dice.below(2) == 0, 1 + self.dice.below(1_000));
        // A block that was appended to has its old length at least; a finished one has just that.
        let last = self.world.last_file_block(&path).map(|last| match last.committed {
            true => last.block,
            false => Block { length: last.block.length.max(length), ..last.block },
        });
        let Some(Node::File { lengths, open, id, .. }) = self.model.nodes.get_mut(&path) else {
            panic!("{path} is a file");
        };
        if let Some(last) = last
            && let Some(known) = lengths.last_mut()
        {
            *known = last.length;
        }
        if close {
            self.world.complete("/anything", *id, last);
            *open = false;
        } else {
            self.world.add_block("/anything", *id, last);
            lengths.push(0);
        }
    }

    fn append(&mut self) {
        let path = random_path(&mut self.dice);
        let new_block = self.dice.below(3) == 0;
        let result = self.world.append(&path, new_block);
        let model = &mut self.model;
        if model.is_blocked(&path) {
            assert!(matches!(result, Err(FsError::AccessDenied(_))), "{result:?}");
            return;
        }
        match model.nodes.get_mut(&path) {
            None => assert!(matches!(result, Err(FsError::NotFound(_))), "{result:?}"),
            Some(Node::Directory) => assert!(matches!(result, Err(FsError::AlreadyExists(_))), "{result:?}"),
            Some(Node::File { open: true, .. }) => {
                assert!(matches!(result, Err(FsError::AlreadyBeingCreated(_))), "{result:?}");
            }
            Some(Node::File { open, id, .. }) => {
                assert_eq!(result, Ok(*id));
                *open = true;
            }
        }
    }

    fn truncate(&mut self) {
        let path = random_path(&mut self.dice);
        let wanted = self.dice.below(2_500);
        let result = self.world.truncate(&path, wanted as i64);
        let model = &mut self.model;
        if model.is_blocked(&path) {
            assert!(matches!(result, Err(FsError::AccessDenied(_))), "{result:?}");
            return;
        }
        match model.nodes.get_mut(&path) {
            None | Some(Node::Directory) => {
                assert!(matches!(result, Err(FsError::NotFound(_))), "{result:?}");
            }
            Some(Node::File { open: true, cut, lengths, .. }) => {
                let before: u64 = lengths.iter().rev().skip(1).sum();
                match cut {
                    Some(cut) if before + *cut == wanted => assert_eq!(result, Ok(false)),
                    _ => assert!(matches!(result, Err(FsError::AlreadyBeingCreated(_))), "{result:?}"),
                }
            }
            Some(Node::File { lengths, open, cut, .. }) => {
                let length: u64 = lengths.iter().sum();
                if wanted > length {
                    assert!(matches!(result, Err(FsError::InvalidArgument(_))), "{result:?}");
                    return;
                }
                // The obvious way: take blocks off the end until what is left is not too long, or the last is cut.
                let mut over = length - wanted;
                while lengths.last().is_some_and(|last| over > 0 && *last <= over) {
                    over -= lengths.pop().unwrap_or(0);
                }
                assert_eq!(result, Ok(over == 0));
                if over > 0 {
                    *cut = lengths.last().map(|last| last - over);
                    *open = true;
                }
            }
        }
    }

    /// The data servers have cut a block.
    fn finish_truncation(&mut self) {
        let cutting = self.model.nodes.iter_mut().find_map(|(_, node)| match node {
            Node::File { lengths, open, cut, id } if cut.is_some() => Some((lengths, open, cut, *id)),
            _ => None,
        });
        let Some((lengths, open, cut, id)) = cutting else { return };
        let Some(length) = cut.take() else { return };
        self.world.finish_truncation(id, length);
        *open = false;
        if let Some(last) = lengths.last_mut() {
            *last = length;
        }
    }

    fn concat(&mut self) {
        let target = random_path(&mut self.dice);
        let count = 1 + self.dice.below(3);
        let sources: Vec<String> = (0..count)
            .map(|_| {
                format!(
                    "{}/{}",
                    parent(&target).trim_end_matches('/'),
                    ["a", "b", "c"][self.dice.below(3) as usize]
                )
            })
            .collect();
        let result = self.world.concat(&target, &sources);
        let model = &mut self.model;
        let closed = |path: &str| match model.nodes.get(path) {
            Some(Node::File { lengths, open: false, .. }) => Some(lengths.clone()),
            _ => None,
        };
        let distinct: std::collections::BTreeSet<&String> = sources.iter().collect();
        let parts: Option<Vec<Vec<u64>>> =
            sources.iter().map(|source| closed(source).filter(|lengths| !lengths.is_empty())).collect();
        let possible = closed(&target).is_some()
            && parts.is_some()
            && !sources.contains(&target)
            && distinct.len() == sources.len();
        assert_eq!(result.is_ok(), possible, "{target} and {sources:?}: {result:?}");
        if !possible {
            return;
        }
        for source in &sources {
            model.nodes.remove(source);
        }
        if let Some(Node::File { lengths, .. }) = model.nodes.get_mut(&target) {
            lengths.extend(parts.into_iter().flatten().flatten());
        }
    }

    fn delete(&mut self) {
        let path = random_path(&mut self.dice);
        let recursive = self.dice.below(2) == 0;
        let result = self.world.delete(&path, recursive);
        let model = &mut self.model;
        if model.is_blocked(&path) {
            assert!(matches!(result, Err(FsError::AccessDenied(_))), "{result:?}");
        } else if !model.exists(&path) {
            assert_eq!(result, Ok(false));
        } else if !recursive && !model.children(&path).is_empty() {
            assert!(matches!(result, Err(FsError::NotEmpty(_))), "{result:?}");
        } else {
            assert_eq!(result, Ok(true));
            model.remove(&path);
        }
    }

    fn rename(&mut self) {
        let (from, to) = (random_path(&mut self.dice), random_path(&mut self.dice));
        let result = self.world.rename(&from, &to);
        let model = &mut self.model;
        if model.is_blocked(&from) || model.is_blocked(&to) {
            assert!(result.is_err(), "{result:?}");
            return;
        }
        let goal = match model.is_directory(&to) {
            true => format!("{to}/{}", from.rsplit('/').next().unwrap_or_default()),
            false => to.clone(),
        };
        let possible = model.exists(&from)
            && (goal == from
                || (!goal.starts_with(&format!("{from}/"))
                    && !model.exists(&goal)
                    && model.is_directory(parent(&goal))));
        assert_eq!(result, Ok(possible), "{from} to {to}");
        if possible && goal != from {
            model.rename(&from, &goal);
        }
    }

    fn rename2(&mut self) {
        let (from, to) = (random_path(&mut self.dice), random_path(&mut self.dice));
        let overwrite = self.dice.below(2) == 0;
        let result = self.world.rename2(&from, &to, overwrite);
        let model = &mut self.model;
        let same_kind = model.is_directory(&from) == model.is_directory(&to);
        let possible = !model.is_blocked(&from)
            && !model.is_blocked(&to)
            && model.exists(&from)
            && from != to
            && !to.starts_with(&format!("{from}/"))
            && model.is_directory(parent(&to))
            && (!model.exists(&to) || (overwrite && same_kind && model.children(&to).is_empty()));
        assert_eq!(result.is_ok(), possible, "{from} to {to}: {result:?}");
        if possible {
            model.rename(&from, &to);
        }
    }

    fn attributes(&mut self) {
        let path = random_path(&mut self.dice);
        let (mode, time) = (self.dice.below(0o1000) as u16, self.dice.below(1 << 40) as i64);
        let results = [
            self.world.set_permission(&path, mode),
            self.world.set_times(&path, time, -1),
            self.world.set_owner(&path, Some("someone"), None),
        ];
        for result in results {
            assert_eq!(result.is_ok(), self.model.exists(&path), "{path}: {result:?}");
        }
        let file = matches!(self.model.nodes.get(&path), Some(Node::File { .. }));
        if !self.model.is_blocked(&path) {
            assert_eq!(self.world.set_replication(&path, 1 + mode as u32 % 5), Ok(file));
        }
    }

    /// Entries without a mask: it is worked out from all that it bounds.
    fn acl(&mut self) {
        let path = random_path(&mut self.dice);
        let scope = if self.dice.below(3) == 0 { Scope::Default } else { Scope::Access };
        let name = format!("u{}", self.dice.below(4));
        let permission = self.dice.below(8) as u8;
        let kind = if self.dice.below(2) == 0 { Kind::User } else { Kind::Group };
        let entry = AclEntry { scope, kind, name: Some(name.as_str().into()), permission };
        let change = match self.dice.below(6) {
            0 => Change::RemoveAll,
            1 => Change::RemoveDefault,
            _ => Change::Merge(vec![entry.clone()]),
        };
        let merges = matches!(change, Change::Merge(_));
        let request = ops::set_acl::Request { path: path.clone(), change };
        let result = self.world.run(|ns, ctx| ops::set_acl::plan(ns, ctx, &request));
        let may_have = scope == Scope::Access || self.model.is_directory(&path) || !merges;
        assert_eq!(result.is_ok(), self.model.exists(&path) && may_have, "{path}: {result:?}");
        if !merges || result.is_err() {
            return;
        }
        let status = get_acl_status::get(&self.world.ns, &self.world.context(None), &path);
        let status = status.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(status.entries.contains(&entry), "{path}: {:?}", status.entries);
        let masked = |entry: &&AclEntry| entry.name.is_some() || entry.kind == Kind::Group;
        let of_scope = status.entries.iter().filter(|other| other.scope == scope);
        let union = of_scope.clone().filter(masked).fold(0, |union, entry| union | entry.permission);
        let mask = match scope {
            Scope::Access => (status.permission.unwrap_or_default() >> 3) as u8 & 7,
            Scope::Default => {
                of_scope.clone().find(|entry| entry.kind == Kind::Mask).map_or(8, |mask| mask.permission)
            }
        };
        assert_eq!(mask, union, "{path}: {:?}", status.entries);
    }

    fn xattr(&mut self) {
        let path = random_path(&mut self.dice);
        let name = XattrName { space: Space::User, name: format!("n{}", self.dice.below(5)).into() };
        let value = vec![b'v'; self.dice.below(4) as usize];
        let ctx = self.world.context(None);
        let id = get_file_info::get(&self.world.ns, &ctx, &path).ok().flatten().map(|status| status.id);
        let known = id.map(|id| self.xattrs.entry(id).or_default());
        if self.dice.below(3) == 0 {
            let request = ops::set_xattrs::Removal { path: path.clone(), name: name.clone() };
            let result = self.world.run(|ns, ctx| ops::set_xattrs::plan_removal(ns, ctx, &request));
            let was_there = known.is_some_and(|known| known.remove(&name).is_some());
            assert_eq!(result.is_ok(), was_there, "{path}: {result:?}");
            return;
        }
        let request = ops::set_xattrs::Request {
            path: path.clone(),
            name: name.clone(),
            value: Some(value.clone()),
            flags: 3,
        };
        let result = self.world.run(|ns, ctx| ops::set_xattrs::plan(ns, ctx, &request));
        assert_eq!(result.is_ok(), id.is_some(), "{path}: {result:?}");
        if let Some(known) = known {
            known.insert(name, value);
        }
    }

    /// Everything that can be asked answers like the model.
    fn check(&mut self) {
        let (ns, model) = (&self.world.ns, &self.model);
        assert_eq!(ns.check_consistency(), Ok(()));
        let ctx = self.world.context(None);
        for (path, node) in &model.nodes {
            let status = get_file_info::get(ns, &ctx, path).ok().flatten();
            let status = status.unwrap_or_else(|| panic!("{path} is there"));
            match node {
                Node::Directory => {
                    assert_eq!(status.kind, FileKind::Directory);
                    assert_eq!(status.children_count as usize, model.children(path).len());
                }
                Node::File { lengths, open, id, .. } => {
                    assert_eq!((status.id, status.under_construction), (*id, *open));
                    let blocks = get_block_locations::by_id(ns, *id).unwrap_or_else(|| panic!("{path}"));
                    assert!(blocks.blocks.iter().map(|block| block.block.length).eq(lengths.iter().copied()));
                    assert_eq!(status.length, lengths.iter().sum::<u64>());
                }
            }
            assert_eq!(ns.path_of(status.id).as_deref(), Some(&**path));
            let xattrs =
                get_xattrs::get(ns, &ctx, path, &[]).unwrap_or_else(|error| panic!("{path}: {error}"));
            let known = self.xattrs.get(&status.id).into_iter().flatten();
            let found = xattrs.iter().map(|xattr| (&xattr.name, &xattr.value[..]));
            assert!(found.eq(known.map(|(name, value)| (name, &value[..]))), "{path}");
        }
        let directories = model.nodes.keys().filter(|path| model.is_directory(path)).map(|path| &**path);
        for path in directories.chain(["/"]) {
            assert_eq!(list(&self.world, path), model.children(path), "{path}");
        }
        let mut walk = Walk::start(ns, &ctx, "/").unwrap_or_else(|error| panic!("{error}"));
        let summary = loop {
            if let Ok(Some(summary)) = walk.step(ns, &ctx) {
                break summary;
            }
        };
        let files = model.nodes.values().filter(|node| **node != Node::Directory).count();
        assert_eq!(summary.file_count as usize, files);
        assert_eq!(summary.directory_count as usize, model.nodes.len() - files + 1);
    }
}

/// Pages of two.
fn list(world: &World, path: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let limits = Limits { listing_max: 2, ..world.limits.clone() };
    let ctx = namespace::Context { limits: &limits, ..world.context(None) };
    loop {
        let after = names.last().cloned().unwrap_or_default();
        let page = get_listing::get(&world.ns, &ctx, path, after.as_bytes(), false);
        let page = page.ok().flatten().unwrap_or_else(|| panic!("{path} is listed"));
        names.extend(page.entries.iter().map(|entry| String::from_utf8_lossy(entry.name).into_owned()));
        if page.remaining == 0 {
            return names;
        }
        assert_eq!(page.entries.len(), 2);
    }
}

#[test]
fn random_operations_agree_with_an_obvious_model() {
    for seed in 0..40 {
        let mut run = Run {
            world: World::new(seed),
            model: Model::default(),
            dice: Dice(seed),
            xattrs: BTreeMap::new(),
        };
        run.world.limits.content_summary_step = 3;
        for step in 0..400 {
            match run.dice.below(19) {
                0 | 1 => run.mkdirs(),
                2..=4 => run.create(),
                5..=7 => run.write(),
                8 => run.delete(),
                9 => run.rename(),
                10 => run.rename2(),
                11 => run.append(),
                12 => run.truncate(),
                13 => run.finish_truncation(),
                14 => run.concat(),
                15 | 16 => run.acl(),
                17 => run.xattr(),
                _ => run.attributes(),
            }
            if step % 40 == 0 {
                run.check();
            }
            if step == 200 {
                run.world.restart_from_image();
            }
        }
        run.check();
        run.world.check_replay();
        run.world.restart_from_image();
        run.check();
    }
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let mut run =
        Run { world: World::new(7), model: Model::default(), dice: Dice(7), xattrs: BTreeMap::new() };
    for _ in 0..300 {
        run.create();
        run.write();
    }
    let frozen = run.world.ns.freeze();
    let (digest, bytes) = (frozen.digest(), common::image_of(&frozen));
    for _ in 0..300 {
        run.mkdirs();
        run.create();
        run.write();
        run.delete();
    }
    assert_ne!(run.world.ns.digest(), digest);
    assert_eq!(common::image_of(&frozen), bytes);
    let size = bytes.len() as u64;
    let back = Namespace::read_image(99, &mut &bytes[..], size).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(back.digest(), digest);
}

#[test]
fn a_large_subtree_is_unlinked_at_once_and_taken_apart_in_steps() {
    let mut world = World::new(1);
    for directory in 0..30 {
        for file in 0..100 {
            assert!(world.create(&format!("/big/d{directory}/f{file}"), false).is_ok());
        }
    }
    assert!(world.create("/small", false).is_ok());
    assert_eq!(world.delete("/big", true), Ok(true));
    assert_eq!(list(&world, "/"), ["small"]);
    assert_eq!(world.ns.counts().orphans, 1);
    // A deleted file can no longer be written, though its inode is still there.
    let lost = world.ns.files_of(common::HOLDER)[0];
    let ctx = world.context(None);
    let request = ops::fsync::Request {
        path: "/big/d0/f0".into(),
        holder: common::HOLDER.into(),
        last_block_length: -1,
        inode: lost,
    };
    let refused = ops::fsync::plan(&world.ns, &ctx, &request);
    assert!(matches!(refused, Err(FsError::NotFound(_))), "{refused:?}");
    world.restart_from_image();
    let mut steps = 0;
    while let Some(edit) = ops::cleanup::plan(&world.ns, &world.context(None)) {
        world.apply(edit);
        steps += 1;
        assert!(steps < 10);
    }
    assert_eq!(steps, 4);
    let counts = world.ns.counts();
    assert_eq!((counts.files, counts.directories, counts.orphans), (1, 1, 0));
    assert_eq!(counts.files_under_construction, 1);
    world.check_replay();
}

#[test]
fn strangers_may_not_pass() {
    let mut world = World::new(2);
    assert_eq!(world.mkdirs("/home/ann", true), Ok(true));
    assert!(world.set_owner("/home/ann", Some("ann"), Some("staff")).is_ok());
    assert!(world.set_permission("/home/ann", 0o750).is_ok());
    world.caller = Caller::simple("ann", &["staff"]);
    assert_eq!(world.mkdirs("/home/ann/own", true), Ok(true));
    world.caller = Caller::simple("bob", &["other"]);
    assert_eq!(
        world.mkdirs("/home/ann/mine", true),
        Err(FsError::AccessDenied(
            "Permission denied: user=bob, access=EXECUTE, inode=\"/home/ann\":ann:staff:drwxr-x---".into()
        ))
    );
    assert_eq!(
        world.mkdirs("/home/bob", true),
        Err(FsError::AccessDenied(
            "Permission denied: user=bob, access=WRITE, inode=\"/home\":hdfs:supergroup:drwxr-xr-x".into()
        ))
    );
    world.limits.access.enabled = false;
    assert_eq!(world.mkdirs("/home/ann/mine", true), Ok(true));
    assert!(matches!(world.set_permission("/home/ann", 0o777), Err(FsError::AccessDenied(_))));
}
