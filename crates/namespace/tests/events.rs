//! Which events each change tells. The left side is done, the right side is told.

mod common;

use base::{Block, Epoch, InodeId, Sn, Timestamp, TxId};
use common::World;
use namespace::{
    Edit, Namespace, Reply,
    acl::{AclEntry, Kind, Scope},
    events::{Event, Update},
    ops::{
        self, Body,
        set_acl::{self, Change},
    },
    xattr::{Space, XattrName},
};

/// The events of the whole journal, each with the number of its entry, as they are made while a log is followed.
fn events(world: &World) -> Vec<(u64, Event)> {
    let mut ns = Namespace::new(5, "hdfs", "supergroup", Timestamp::from_ms(1));
    let mut told = Vec::new();
    for (sn, bytes) in (1..).zip(&world.journal) {
        let edit = Edit::decode(bytes).unwrap();
        told.extend(edit.events(&ns).into_iter().map(|event| (sn, event)));
        ns.apply(TxId { epoch: Epoch(1), sn: Sn(sn) }, &edit);
    }
    told
}

fn text(event: &Event) -> String {
    let name = |name: &Option<Box<str>>| name.as_deref().unwrap_or("-").to_owned();
    let ms = |time: &Option<Timestamp>| time.map_or("-".into(), |time| time.ms.to_string());
    let xattr = |name: &XattrName| format!("{}.{}", name.space.prefix(), name.name);
    match event {
        Event::Create(it) => match it.file {
            None => format!("mkdir {} {}:{} {:o}", it.path, it.owner, it.group, it.mode),
            Some(file) => {
                let replaces = if file.replaces { " replaces" } else { "" };
                let (replication, size) = (file.replication, file.block_size);
                format!(
                    "create {} {}:{} {:o} x{replication} {size}{replaces}",
                    it.path, it.owner, it.group, it.mode
                )
            }
        },
        Event::Close { path, length: Some(length), .. } => format!("close {path} {length}"),
        Event::Close { path, length: None, .. } => format!("close {path}"),
        Event::Append { path, new_block } => {
            format!("append {path}{}", if *new_block { " new block" } else { "" })
        }
        Event::Rename { from, to, .. } => format!("rename {from} {to}"),
        Event::Unlink { path, .. } => format!("unlink {path}"),
        Event::Truncate { path, length, .. } => format!("truncate {path} {length}"),
        Event::Update { path, update } => match update {
            Update::Times { modified, accessed } => format!("times {path} {} {}", ms(modified), ms(accessed)),
            Update::Replication(replication) => format!("replication {path} {replication}"),
            Update::Owner { owner, group } => format!("owner {path} {} {}", name(owner), name(group)),
            Update::Mode(mode) => format!("mode {path} {mode:o}"),
            Update::Acl(entries) => {
                let entries: Vec<_> = entries.iter().map(ToString::to_string).collect();
                format!("acl {path} {}", entries.join(","))
            }
            Update::XattrsSet(set) => {
                let set: Vec<_> = set
                    .iter()
                    .map(|it| format!("{}={}", xattr(&it.name), String::from_utf8_lossy(&it.value)))
                    .collect();
                format!("xattrs {path} {}", set.join(","))
            }
            Update::XattrsRemoved(removed) => {
                format!("xattrs gone {path} {}", removed.iter().map(xattr).collect::<Vec<_>>().join(","))
            }
        },
    }
}

/// The events of the edits that `act` makes, in a world that `prepare` has made.
fn told_behind<T>(prepare: impl FnOnce(&mut World) -> T, act: impl FnOnce(&mut World, T)) -> Vec<String> {
    let mut world = World::new(3);
    let prepared = prepare(&mut world);
    let before = world.journal.len() as u64;
    act(&mut world, prepared);
    world.check_replay();
    events(&world).iter().filter(|(sn, _)| *sn > before).map(|(_, event)| text(event)).collect()
}

/// A closed file of so many bytes in blocks of 1 MiB.
fn write(world: &mut World, path: &str, bytes: u64) -> InodeId {
    let inode = world.create(path, false).unwrap();
    let (mut left, mut last) = (bytes, None);
    while left > 0 {
        let mut block = world.add_block(path, inode, last);
        block.length = left.min(1 << 20);
        left -= block.length;
        last = Some(block);
    }
    world.complete(path, inode, last);
    inode
}

fn set_acl(world: &mut World, path: &str, change: Change) {
    let request = set_acl::Request { path: path.into(), change };
    world.run(|ns, ctx| ops::set_acl::plan(ns, ctx, &request)).unwrap();
}

fn entry(scope: Scope, kind: Kind, name: Option<&str>, permission: u8) -> AclEntry {
    AclEntry { scope, kind, name: name.map(Into::into), permission }
}

#[test]
fn directories_are_told_one_by_one_from_the_outermost() {
    let told = told_behind(
        |world| world.mkdirs("/a", true).unwrap(),
        |world, _| {
            world.mkdirs("/a/b/c", true).unwrap();
        },
    );
    assert_eq!(told, ["mkdir /a/b hdfs:supergroup 755", "mkdir /a/b/c hdfs:supergroup 755"]);
}

#[test]
fn a_new_file_is_told_with_the_directories_above_it_and_closed_with_its_length() {
    let told = told_behind(
        |_| (),
        |world, ()| {
            write(world, "/d/f", (1 << 20) + 5);
            let inode = world.create("/d/f", true).unwrap();
            world.complete("/d/f", inode, None);
        },
    );
    let expected = [
        "mkdir /d hdfs:supergroup 755",
        "create /d/f hdfs:supergroup 644 x3 1048576",
        "close /d/f 1048581",
        "create /d/f hdfs:supergroup 644 x3 1048576 replaces",
        "close /d/f 0",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_file_is_written_on() {
    let told = told_behind(
        |world| write(world, "/f", 5),
        |world, _| {
            let inode = world.append("/f", false).unwrap();
            let block = world.last_block("/f").unwrap();
            world.complete("/f", inode, Some(Block { length: 9, ..block }));
            world.append("/f", true).unwrap();
        },
    );
    assert_eq!(told, ["append /f", "close /f 9", "append /f new block"]);
}

#[test]
fn renames_have_the_name_that_the_file_gets() {
    let told = told_behind(
        |world| {
            write(world, "/f", 1);
            write(world, "/g", 1);
            world.mkdirs("/d", true).unwrap();
        },
        |world, ()| {
            world.rename("/f", "/d").unwrap();
            world.rename2("/d/f", "/g", true).unwrap();
            world.rename("/d", "/e").unwrap();
        },
    );
    assert_eq!(told, ["rename /f /d/f", "rename /d/f /g", "rename /d /e"]);
}

#[test]
fn only_the_top_of_what_is_deleted_is_told_and_only_once() {
    let told = told_behind(
        |world| write(world, "/d/e/f", 1),
        |world, _| {
            world.delete("/d", true).unwrap();
            while let Some(edit) = ops::cleanup::plan(&world.ns, &world.context(None)) {
                world.apply(edit);
            }
        },
    );
    assert_eq!(told, ["unlink /d"]);
}

#[test]
fn a_concat_is_told_as_an_append_with_the_sources_gone() {
    let told = told_behind(
        |world| {
            for path in ["/t", "/one", "/two"] {
                write(world, path, 1 << 20);
            }
        },
        |world, ()| assert_eq!(world.concat("/t", &["/one".into(), "/two".into()]), Ok(Reply::Unit)),
    );
    assert_eq!(told, ["append /t", "unlink /one", "unlink /two", "close /t"]);
}

#[test]
fn a_truncation_has_the_new_length_and_is_closed_once_a_block_was_cut() {
    let told = told_behind(
        |world| write(world, "/f", (2 << 20) + 9),
        |world, inode| {
            assert_eq!(world.truncate("/f", 2 << 20), Ok(true));
            assert_eq!(world.truncate("/f", (1 << 20) + 7), Ok(false));
            world.finish_truncation(inode, 7);
        },
    );
    assert_eq!(told, ["truncate /f 2097152", "truncate /f 1048583", "close /f 1048583"]);
}

#[test]
fn a_truncation_of_a_block_in_a_snapshot_is_told_like_any_other() {
    let told = told_behind(
        |world| {
            let inode = write(world, "/d/f", 9);
            world.allow_snapshot("/d").unwrap();
            world.create_snapshot("/d", "s").unwrap();
            inode
        },
        |world, inode| {
            assert_eq!(world.truncate("/d/f", 4), Ok(false));
            world.finish_truncation(inode, 4);
        },
    );
    assert_eq!(told, ["truncate /d/f 4", "close /d/f 4"]);
}

#[test]
fn updates_say_what_they_set() {
    let told = told_behind(
        |world| write(world, "/f", 1),
        |world, _| {
            world.set_permission("/f", 0o1600).unwrap();
            for (owner, group) in [(Some("eve"), None), (None, Some("staff")), (Some("bob"), Some("users"))] {
                world.set_owner("/f", owner, group).unwrap();
            }
            for (modified, accessed) in [(5, 6), (-1, 7), (8, -1)] {
                world.set_times("/f", modified, accessed).unwrap();
            }
            let request = ops::set_replication::Request { path: "/f".into(), replication: 2 };
            world.run(|ns, ctx| ops::set_replication::plan(ns, ctx, &request)).unwrap();
        },
    );
    let expected = [
        "mode /f 1600",
        "owner /f eve -",
        "owner /f - staff",
        "owner /f bob users",
        "times /f 5 6",
        "times /f - 7",
        "times /f 8 -",
        "replication /f 2",
    ];
    assert_eq!(told, expected);
}

#[test]
fn an_acl_is_told_whole() {
    let told = told_behind(
        |world| world.mkdirs("/d", true).unwrap(),
        |world, _| {
            set_acl(world, "/d", Change::Merge(vec![entry(Scope::Access, Kind::User, Some("eve"), 7)]));
            set_acl(world, "/d", Change::Merge(vec![entry(Scope::Default, Kind::Group, Some("staff"), 4)]));
            set_acl(world, "/d", Change::RemoveAll);
        },
    );
    let access = "user::rwx,user:eve:rwx,group::r-x,mask::rwx,other::r-x";
    let default =
        "default:user::rwx,default:group::r-x,default:group:staff:r--,default:mask::r-x,default:other::r-x";
    let expected = [
        format!("acl /d {access}"),
        format!("acl /d {access},{default}"),
        "acl /d user::rwx,group::r-x,other::r-x".into(),
    ];
    assert_eq!(told, expected);
}

#[test]
fn extended_attributes_are_told_with_their_values_until_they_go() {
    let told = told_behind(
        |world| world.mkdirs("/d", true).unwrap(),
        |world, _| {
            let name = XattrName { space: Space::User, name: "colour".into() };
            let set = ops::set_xattrs::Request {
                path: "/d".into(),
                name: name.clone(),
                value: Some(b"red".to_vec()),
                flags: 1,
            };
            world.run(|ns, ctx| ops::set_xattrs::plan(ns, ctx, &set)).unwrap();
            let removal = ops::set_xattrs::Removal { path: "/d".into(), name };
            world.run(|ns, ctx| ops::set_xattrs::plan_removal(ns, ctx, &removal)).unwrap();
        },
    );
    assert_eq!(told, ["xattrs /d user.colour=red", "xattrs gone /d user.colour"]);
}

#[test]
fn blocks_leases_quotas_policies_and_snapshots_are_not_told() {
    let told = told_behind(
        |world| {
            world.mkdirs("/d", true).unwrap();
            world.create("/d/f", false).unwrap()
        },
        |world, inode| {
            let block = world.add_block("/d/f", inode, None);
            let request = ops::fsync::Request {
                path: "/d/f".into(),
                holder: world.holder.clone(),
                inode,
                last_block_length: 1,
            };
            world.run(|ns, ctx| ops::fsync::plan(ns, ctx, &request)).unwrap();
            let request = ops::abandon_block::Request {
                path: "/d/f".into(),
                holder: world.holder.clone(),
                pool: String::new(),
                inode,
                block,
            };
            world.run(|ns, ctx| ops::abandon_block::plan(ns, ctx, &request)).unwrap();
            world.set_quota("/d", 100, 1 << 40).unwrap();
            world.set_storage_policy("/d", Some("COLD")).unwrap();
            world.allow_snapshot("/d").unwrap();
            world.create_snapshot("/d", "s").unwrap();
            world.delete_snapshot("/d", "s").unwrap();
        },
    );
    assert_eq!(told, [""; 0]);
}

#[test]
fn a_file_that_only_a_snapshot_shows_has_no_path_and_no_events() {
    let mut world = World::new(3);
    let inode = write(&mut world, "/d/f", 1);
    world.allow_snapshot("/d").unwrap();
    world.create_snapshot("/d", "s").unwrap();
    let edit = |inode| Edit {
        time: Timestamp::from_ms(1),
        origin: None,
        dues: None,
        body: Body::SetReplication(ops::set_replication::SetReplicationEdit { inode, replication: 2 }),
    };
    assert_eq!(edit(inode).events(&world.ns).len(), 1);
    world.delete("/d/f", false).unwrap();
    assert_eq!(edit(inode).events(&world.ns), []);
}
