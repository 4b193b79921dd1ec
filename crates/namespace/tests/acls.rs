//! ACLs: who may do what, what new files inherit, and that all of it survives journal and image.

mod common;

use base::{Caller, FsError, FsResult};
use common::World;
use namespace::{
    Reply,
    acl::{AclEntry, Kind, Scope},
    ops::{self, set_acl::Change},
    reads::{check_access, get_acl_status, get_file_info},
};

fn entry(scope: Scope, kind: Kind, name: &str, permission: u8) -> AclEntry {
    AclEntry { scope, kind, name: (!name.is_empty()).then(|| name.into()), permission }
}

fn access(kind: Kind, name: &str, permission: u8) -> AclEntry {
    entry(Scope::Access, kind, name, permission)
}

fn default(kind: Kind, name: &str, permission: u8) -> AclEntry {
    entry(Scope::Default, kind, name, permission)
}

fn set(world: &mut World, path: &str, change: Change) -> FsResult<Reply> {
    world.run(|ns, ctx| ops::set_acl::plan(ns, ctx, &ops::set_acl::Request { path: path.into(), change }))
}

/// The bits and what is beside them, as `getfacl` would print the entries.
fn acl_of(world: &World, path: &str) -> FsResult<String> {
    let status = get_acl_status::get(&world.ns, &world.context(None), path)?;
    let entries: Vec<String> = status.entries.iter().map(AclEntry::to_string).collect();
    Ok(format!("{:o} {}", status.permission.unwrap_or_default(), entries.join(",")))
}

fn may(world: &mut World, user: &str, groups: &[&str], path: &str, action: u8) -> bool {
    let before = std::mem::replace(&mut world.caller, Caller::simple(user, groups));
    let result = check_access::check(&world.ns, &world.context(None), path, action);
    world.caller = before;
    result.is_ok()
}

fn create(world: &mut World, path: &str, permission: u16, unmasked: Option<u16>) -> FsResult<Reply> {
    let mut request = world.create_request(path, "holder");
    (request.permission, request.unmasked) = (permission, unmasked);
    world.run(|ns, ctx| ops::create::plan(ns, ctx, &request))
}

fn mkdirs(world: &mut World, path: &str, permission: u16, unmasked: Option<u16>) -> FsResult<Reply> {
    let request = ops::mkdirs::Request { path: path.into(), permission, unmasked, create_parent: true };
    world.run(|ns, ctx| ops::mkdirs::plan(ns, ctx, &request))
}

#[test]
fn the_bits_and_the_list_are_set_and_removed_together() -> FsResult<()> {
    let mut world = World::new(1);
    create(&mut world, "/f", 0o640, None)?;
    let ann = [access(Kind::User, "ann", 6)];
    set(&mut world, "/f", Change::Merge(ann.to_vec()))?;
    assert_eq!(acl_of(&world, "/f")?, "660 user:ann:rw-,group::r--");
    let status = get_file_info::get(&world.ns, &world.context(None), "/f")?;
    assert_eq!(status.map(|status| (status.has_acl, status.permission)), Some((true, 0o660)));
    // chmod changes the mask then, not what the group's own entry grants.
    world.set_permission("/f", 0o604)?;
    assert_eq!(acl_of(&world, "/f")?, "604 user:ann:rw-,group::r--");
    set(&mut world, "/f", Change::RemoveAll)?;
    assert_eq!(acl_of(&world, "/f")?, "644 ");
    // Nothing to remove is no edit.
    let edits = world.journal.len();
    set(&mut world, "/f", Change::RemoveAll)?;
    set(&mut world, "/f", Change::Replace(vec![]))?;
    set(&mut world, "/f", Change::RemoveDefault)?;
    assert_eq!(world.journal.len(), edits);
    world.check_replay();
    Ok(())
}

#[test]
fn the_sticky_bit_stays() -> FsResult<()> {
    let mut world = World::new(2);
    mkdirs(&mut world, "/d", 0o1755, None)?;
    set(&mut world, "/d", Change::Merge(vec![access(Kind::User, "ann", 7), default(Kind::User, "bob", 7)]))?;
    assert!(acl_of(&world, "/d")?.starts_with("1775 user:ann:rwx,group::r-x,default:user::rwx,"));
    set(&mut world, "/d", Change::RemoveDefault)?;
    assert_eq!(acl_of(&world, "/d")?, "1775 user:ann:rwx,group::r-x");
    set(&mut world, "/d", Change::Remove(vec![access(Kind::User, "ann", 0), access(Kind::Mask, "", 0)]))?;
    assert_eq!(acl_of(&world, "/d")?, "1755 ");
    Ok(())
}

/// `FSPermissionChecker.hasAclPermission`: "Use owner entry from permission bits if user is owner"; "Use named
/// user entry with mask from permission bits applied if user matches name"; of several groups, any that grants.
#[test]
fn the_first_class_that_speaks_of_the_caller_decides() -> FsResult<()> {
    let mut world = World::new(3);
    create(&mut world, "/f", 0o600, None)?;
    world.set_owner("/f", Some("olga"), Some("staff"))?;
    let entries = [
        access(Kind::User, "", 4),
        access(Kind::User, "ann", 6),
        access(Kind::User, "nemo", 0),
        access(Kind::Group, "", 2),
        access(Kind::Group, "readers", 4),
        access(Kind::Mask, "", 6),
        access(Kind::Other, "", 1),
    ];
    set(&mut world, "/f", Change::Replace(entries.to_vec()))?;
    let mut check = |user: &str, groups: &[&str], action| may(&mut world, user, groups, "/f", action);
    // The owner is not helped by a group.
    assert!(check("olga", &["staff"], 4) && !check("olga", &["staff"], 2));
    assert!(check("ann", &["staff"], 6) && !check("ann", &[], 1));
    // Named, and granted nothing: neither a group nor the others' bits help.
    assert!(!check("nemo", &["staff"], 2) && !check("nemo", &[], 1));
    assert!(check("bob", &["staff"], 2) && !check("bob", &["staff"], 4));
    assert!(check("bob", &["staff", "readers"], 4) && check("bob", &["staff", "readers"], 2));
    // One group must grant all that is asked.
    assert!(!check("bob", &["staff", "readers"], 6));
    assert!(!check("bob", &["staff"], 1), "a member of a named group is not among the others");
    assert!(check("carl", &["guests"], 1) && !check("carl", &["guests"], 4));
    // The mask bounds all but the owner and the others.
    set(&mut world, "/f", Change::Merge(vec![access(Kind::Mask, "", 0)]))?;
    assert!(!may(&mut world, "ann", &[], "/f", 4));
    assert!(may(&mut world, "olga", &[], "/f", 4));
    assert!(may(&mut world, "carl", &[], "/f", 1));
    Ok(())
}

#[test]
fn a_default_list_alone_grants_nothing() -> FsResult<()> {
    let mut world = World::new(4);
    mkdirs(&mut world, "/d", 0o750, None)?;
    set(&mut world, "/d", Change::Merge(vec![default(Kind::User, "ann", 7)]))?;
    assert!(!may(&mut world, "ann", &[], "/d", 4));
    assert!(may(&mut world, "bob", &["supergroup"], "/d", 5));
    Ok(())
}

/// `AclStorage.copyINodeDefaultAcl`, and HDFS-6962: "POSIX ACL inheritance".
#[test]
fn new_files_and_directories_inherit_the_default_list() -> FsResult<()> {
    let mut world = World::new(5);
    mkdirs(&mut world, "/d", 0o750, None)?;
    set(&mut world, "/d", Change::Merge(vec![default(Kind::User, "ann", 7)]))?;
    // The umask of 027 is not applied where the client sent the mode without it.
    create(&mut world, "/d/f", 0o640, Some(0o666))?;
    assert_eq!(acl_of(&world, "/d/f")?, "660 user:ann:rwx,group::r-x");
    // An old client sends what the umask has left: that filters.
    create(&mut world, "/d/old", 0o640, None)?;
    assert_eq!(acl_of(&world, "/d/old")?, "640 user:ann:rwx,group::r-x");
    mkdirs(&mut world, "/d/a/b", 0o750, Some(0o777))?;
    for path in ["/d/a", "/d/a/b"] {
        assert_eq!(
            acl_of(&world, path)?,
            "770 user:ann:rwx,group::r-x,default:user::rwx,default:user:ann:rwx,default:group::r-x,\
             default:mask::rwx,default:other::---",
            "{path}"
        );
    }
    // Directories that a create makes inherit as well.
    create(&mut world, "/d/x/y/f", 0o640, Some(0o666))?;
    assert!(acl_of(&world, "/d/x/y")?.contains("default:user:ann:rwx"));
    assert_eq!(acl_of(&world, "/d/x/y/f")?, "660 user:ann:rwx,group::r-x");
    // Without a default list the umask counts.
    create(&mut world, "/f", 0o640, Some(0o666))?;
    assert_eq!(acl_of(&world, "/f")?, "640 ");
    world.limits.access.posix_acl_inheritance = false;
    create(&mut world, "/d/g", 0o640, Some(0o666))?;
    assert_eq!(acl_of(&world, "/d/g")?, "640 user:ann:rwx,group::r-x");
    world.check_replay();
    world.restart_from_image();
    assert_eq!(acl_of(&world, "/d/g")?, "640 user:ann:rwx,group::r-x");
    Ok(())
}

/// "This only happens if the default ACL is a minimal ACL": then the child has none of its own.
#[test]
fn a_minimal_default_list_filters_the_childs_bits() -> FsResult<()> {
    let mut world = World::new(6);
    mkdirs(&mut world, "/d", 0o755, None)?;
    set(&mut world, "/d", Change::Merge(vec![default(Kind::Group, "", 4), default(Kind::Other, "", 0)]))?;
    create(&mut world, "/d/f", 0o644, Some(0o666))?;
    assert_eq!(acl_of(&world, "/d/f")?, "640 ");
    mkdirs(&mut world, "/d/e", 0o755, Some(0o777))?;
    assert_eq!(acl_of(&world, "/d/e")?, "740 default:user::rwx,default:group::r--,default:other::---");
    Ok(())
}

#[test]
fn a_moved_file_inherits_nothing() -> FsResult<()> {
    let mut world = World::new(7);
    mkdirs(&mut world, "/d", 0o755, None)?;
    set(&mut world, "/d", Change::Merge(vec![default(Kind::User, "ann", 7)]))?;
    create(&mut world, "/f", 0o644, None)?;
    assert_eq!(world.rename("/f", "/d/f"), Ok(true));
    assert_eq!(acl_of(&world, "/d/f")?, "644 ");
    Ok(())
}

/// `createParentDirectories`: the implicit u+wx; an `FsPermission` of three actions has no sticky bit.
#[test]
fn missing_directories_above_are_not_sticky() -> FsResult<()> {
    let mut world = World::new(8);
    mkdirs(&mut world, "/a/b", 0o1500, None)?;
    assert_eq!((acl_of(&world, "/a")?, acl_of(&world, "/b").is_err()), ("700 ".into(), true));
    assert_eq!(acl_of(&world, "/a/b")?, "1500 ");
    Ok(())
}

#[test]
fn refusals_say_what_hdfs_says() -> FsResult<()> {
    let mut world = World::new(9);
    create(&mut world, "/f", 0o644, None)?;
    let ann = [default(Kind::User, "ann", 7)];
    assert_eq!(
        set(&mut world, "/f", Change::Merge(ann.to_vec())),
        Err(FsError::Acl("Invalid ACL: only directories may have a default ACL. Path: /f Path: /f".into()))
    );
    assert_eq!(
        set(&mut world, "/f", Change::Replace(vec![access(Kind::User, "", 7)])),
        Err(FsError::Acl("Invalid ACL: the user, group and other entries are required. Path: /f".into()))
    );
    assert_eq!(acl_of(&world, "/no"), Err(FsError::NotFound("cannot find /no".into())));
    assert_eq!(
        set(&mut world, "/no", Change::RemoveAll),
        Err(FsError::NotFound("Directory/File does not exist /no".into()))
    );
    world.caller = Caller::simple("ann", &[]);
    assert_eq!(
        set(&mut world, "/f", Change::RemoveAll),
        Err(FsError::AccessDenied("Permission denied. user=ann is not the owner of inode=/f".into()))
    );
    world.limits.access.acls_enabled = false;
    let disabled = Err(FsError::Acl(
        "The ACL operation has been rejected.  Support for ACLs has been disabled by setting \
         dfs.namenode.acls.enabled to false."
            .into(),
    ));
    assert_eq!(set(&mut world, "/f", Change::RemoveAll), disabled);
    assert_eq!(acl_of(&world, "/f").map(|_| Reply::Unit), disabled);
    Ok(())
}

/// The list is part of an interned combination: as many files as one likes share it, and none pays for those
/// without.
#[test]
fn files_with_one_list_share_it() -> FsResult<()> {
    let mut world = World::new(10);
    mkdirs(&mut world, "/d", 0o755, None)?;
    set(&mut world, "/d", Change::Merge(vec![default(Kind::User, "ann", 7)]))?;
    create(&mut world, "/d/f", 0o644, Some(0o666))?;
    let before = world.ns.memory().attributes;
    for n in 0..1_000 {
        create(&mut world, &format!("/d/f{n}"), 0o644, Some(0o666))?;
    }
    assert_eq!(world.ns.memory().attributes, before);
    assert_eq!(world.ns.check_consistency(), Ok(()));
    assert_eq!(world.delete("/d", true), Ok(true));
    while let Some(edit) = ops::cleanup::plan(&world.ns, &world.context(None)) {
        world.apply(edit);
    }
    assert_eq!(world.ns.check_consistency(), Ok(()));
    Ok(())
}

/// `FSPermissionChecker.checkPermission` looks at every inode of the path as it was in the path's snapshot, the
/// snapshot's own directory included.
#[test]
fn a_snapshot_keeps_the_rights_to_its_directory() -> FsResult<()> {
    let mut world = World::new(11);
    mkdirs(&mut world, "/d", 0o700, None)?;
    create(&mut world, "/d/f", 0o644, None)?;
    set(&mut world, "/d", Change::Merge(vec![access(Kind::User, "ann", 5)]))?;
    world.allow_snapshot("/d")?;
    world.create_snapshot("/d", "s")?;
    set(
        &mut world,
        "/d",
        Change::Replace(vec![
            access(Kind::User, "", 7),
            access(Kind::User, "bob", 5),
            access(Kind::Group, "", 0),
            access(Kind::Other, "", 0),
        ]),
    )?;
    for (user, now, then) in [("ann", false, true), ("bob", true, false)] {
        assert_eq!(may(&mut world, user, &[], "/d", 5), now, "{user}");
        assert_eq!(may(&mut world, user, &[], "/d/f", 4), now, "{user}");
        assert_eq!(may(&mut world, user, &[], "/d/.snapshot/s", 5), then, "{user}");
        assert_eq!(may(&mut world, user, &[], "/d/.snapshot/s/f", 4), then, "{user}");
    }
    Ok(())
}
