//! `/.reserved`: other names for what is in the tree.

mod common;

use base::{Caller, FsError, FsResult, InodeId};
use common::World;
use namespace::{
    acl::{AclEntry, Kind, Scope},
    ops::{self, set_acl::Change},
    reads::{get_file_info, get_listing},
};

fn id_of(world: &World, path: &str) -> FsResult<Option<InodeId>> {
    Ok(get_file_info::get(&world.ns, &world.context(None), path)?.map(|status| status.id))
}

#[test]
fn an_inode_is_found_by_its_number_wherever_it_goes() -> FsResult<()> {
    let mut world = World::new(1);
    let file = world.create("/a/b/f", false)?;
    let directory = id_of(&world, "/a")?.unwrap_or_default();
    let by_id = format!("/.reserved/.inodes/{file}");
    assert_eq!(id_of(&world, &by_id), Ok(Some(file)));
    assert_eq!(id_of(&world, &format!("/.reserved/.inodes/{directory}/b/f")), Ok(Some(file)));
    assert_eq!(world.rename("/a/b", "/c"), Ok(true));
    assert_eq!(id_of(&world, &by_id), Ok(Some(file)));
    assert_eq!(id_of(&world, "/.reserved/.inodes/16385"), Ok(Some(InodeId::ROOT)));
    assert_eq!(id_of(&world, "/.reserved/.inodes/16385/c/f"), Ok(Some(file)));
    // NFS looks up parents in this way.
    assert_eq!(id_of(&world, &format!("{by_id}/..")), id_of(&world, "/c"));
    assert_eq!(id_of(&world, "/.reserved/.inodes/16385/.."), Ok(Some(InodeId::ROOT)));
    // Changes go the same way.
    world.set_permission(&by_id, 0o600)?;
    assert_eq!(world.rename(&by_id, "/g"), Ok(true));
    assert_eq!(id_of(&world, "/g"), Ok(Some(file)));
    assert_eq!(world.delete(&by_id, false), Ok(true));
    assert_eq!(
        id_of(&world, &by_id),
        Err(FsError::NotFound(format!("File for given inode path does not exist: {by_id}")))
    );
    world.check_replay();
    Ok(())
}

#[test]
fn what_is_no_inode_is_not_found() -> FsResult<()> {
    let world = World::new(2);
    for id in ["x", "1e3", "99999999999999999999"] {
        let path = format!("/.reserved/.inodes/{id}");
        assert_eq!(id_of(&world, &path), Err(FsError::NotFound(format!("Invalid inode path: {path}"))));
    }
    for id in ["-1", "0", "16386", "281474976710656"] {
        let path = format!("/.reserved/.inodes/{id}/x");
        let text = format!("File for given inode path does not exist: {path}");
        assert_eq!(id_of(&world, &path), Err(FsError::NotFound(text)));
    }
    for path in ["/.reserved/.inodes", "/.reserved/other", "/.reserved/raw/.reserved"] {
        assert_eq!(id_of(&world, path), Ok(None), "{path}");
    }
    Ok(())
}

#[test]
fn the_inode_of_a_deleted_subtree_is_gone_before_it_is_taken_apart() -> FsResult<()> {
    let mut world = World::new(3);
    for n in 0..1_100 {
        world.create(&format!("/d/f{n}"), false)?;
    }
    let file = id_of(&world, "/d/f7")?.unwrap_or_default();
    assert_eq!(world.delete("/d", true), Ok(true));
    assert!(matches!(id_of(&world, &format!("/.reserved/.inodes/{file}")), Err(FsError::NotFound(_))));
    Ok(())
}

#[test]
fn raw_paths_are_the_paths_of_the_tree() -> FsResult<()> {
    let mut world = World::new(4);
    let file = world.create("/.reserved/raw/a/f", false)?;
    assert_eq!(id_of(&world, "/a/f"), Ok(Some(file)));
    assert_eq!(id_of(&world, "/.reserved/raw"), Ok(Some(InodeId::ROOT)));
    assert_eq!(id_of(&world, "/.reserved/raw/"), Ok(Some(InodeId::ROOT)));
    world.set_permission("/a", 0o777)?;
    world.caller = Caller::simple("ann", &[]);
    // Anybody may look; changes by this way are the superuser's.
    assert_eq!(id_of(&world, "/.reserved/raw/a/f"), Ok(Some(file)));
    assert!(matches!(world.mkdirs("/.reserved/raw/a/x", true), Err(FsError::AccessDenied(_))));
    assert_eq!(world.mkdirs("/a/x", true), Ok(true));
    Ok(())
}

#[test]
fn the_reserved_directory_can_be_looked_at_and_that_is_all() -> FsResult<()> {
    let mut world = World::new(5);
    let status = get_file_info::get(&world.ns, &world.context(None), "/.reserved")?;
    assert_eq!(status.map(|status| (status.is_directory(), status.permission)), Some((true, 0o1770)));
    let page = get_listing::get(&world.ns, &world.context(None), "/.reserved", b"", false)?;
    let page = page.unwrap_or_else(|| panic!("/.reserved is listed"));
    let shown = |entry: &namespace::FileStatus<'_>| {
        (String::from_utf8_lossy(entry.name).into_owned(), entry.permission, entry.group.to_owned())
    };
    let entries: Vec<_> = page.entries.iter().map(shown).collect();
    assert_eq!(
        entries,
        [(".inodes".into(), 0o770, "supergroup".into()), ("raw".into(), 0o770, "supergroup".into())]
    );
    let invalid = FsError::InvalidPath("/.reserved".into());
    assert_eq!(world.set_permission("/.reserved", 0o777), Err(invalid.clone()));
    assert_eq!(world.set_owner("/.reserved", Some("ann"), None), Err(invalid.clone()));
    assert_eq!(world.delete("/.reserved", true), Err(invalid.clone()));
    assert_eq!(world.create("/.reserved", false), Err(invalid));
    assert_eq!(world.create("/.reserved/x", false), Err(FsError::InvalidPath("/.reserved/x".into())));
    assert!(matches!(world.create("/.reserved/raw.1", false), Err(FsError::InvalidArgument(_))));
    for path in ["/.reserved", "/.reserved/x", "/.reserved/.inodes/"] {
        assert!(matches!(world.mkdirs(path, true), Err(FsError::InvalidArgument(_))), "{path}");
    }
    // It does not show in the root.
    let root = get_listing::get(&world.ns, &world.context(None), "/", b"", false)?;
    assert_eq!(root.map(|page| page.entries.len()), Some(0));
    assert_eq!(world.ns.counts().directories, 1);
    Ok(())
}

/// HDFS says some things as they were asked, and others as they were found.
#[test]
fn some_refusals_name_the_path_as_it_was_asked() -> FsResult<()> {
    let mut world = World::new(7);
    world.create("/d/f", false)?;
    let path = format!("/.reserved/.inodes/{}", id_of(&world, "/d")?.unwrap_or_default());
    let closed = get_file_info::is_closed(&world.ns, &world.context(None), &path);
    assert_eq!(closed, Err(FsError::NotFound(format!("Path is not a file: {path}"))));
    let inner = get_file_info::preferred_block_size(&world.ns, &world.context(None), &path);
    assert_eq!(inner, Err(FsError::NotFound("Path is not a file: /d".into())));
    let path = format!("/.reserved/.inodes/{}", id_of(&world, "/d/f")?.unwrap_or_default());
    let entry = |scope| AclEntry { scope, kind: Kind::User, name: None, permission: 7 };
    let entries = vec![entry(Scope::Access), entry(Scope::Access)];
    let mut refused = |change| {
        let request = ops::set_acl::Request { path: path.clone(), change };
        world.run(|ns, ctx| ops::set_acl::plan(ns, ctx, &request)).err().map(|error| error.to_string())
    };
    let text = "Invalid ACL: multiple entries with same scope, type and name. Path: ";
    assert_eq!(refused(Change::Replace(entries)), Some(format!("{text}{path}")));
    let text = "Invalid ACL: only directories may have a default ACL. Path: /d/f Path: /d/f";
    assert_eq!(refused(Change::Merge(vec![entry(Scope::Default)])).as_deref(), Some(text));
    Ok(())
}

#[test]
fn a_listing_goes_on_after_an_inode() -> FsResult<()> {
    let mut world = World::new(6);
    for name in ["a", "b", "c"] {
        world.create(&format!("/d/{name}"), false)?;
    }
    let b = id_of(&world, "/d/b")?.unwrap_or_default();
    let list = |world: &World, after: &str| {
        let page = get_listing::get(&world.ns, &world.context(None), "/d", after.as_bytes(), false);
        page.map(|page| page.map(|page| page.entries.len()))
    };
    assert_eq!(list(&world, &format!("/.reserved/.inodes/{b}")), Ok(Some(1)));
    assert_eq!(
        list(&world, "/.reserved/.inodes/77777"),
        Err(FsError::ListingStartNotFound("Can't find startAfter /.reserved/.inodes/77777".into()))
    );
    Ok(())
}
