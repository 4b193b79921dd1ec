//! Extended attributes: whose they are, how many there may be, and that they survive journal and image.

mod common;

use base::{Caller, FsError, FsResult};
use common::World;
use namespace::{
    Reply,
    acl::{AclEntry, Kind, Scope},
    ops::{
        self,
        set_acl::Change,
        set_xattrs::flag::{CREATE, REPLACE},
    },
    reads::{get_acl_status, get_block_locations, get_xattrs},
    xattr::{Space, XattrName},
};

const EITHER: u32 = CREATE | REPLACE;

fn name(text: &str) -> XattrName {
    let (prefix, rest) = text.split_once('.').unwrap_or(("", text));
    let space = Space::ALL.into_iter().find(|space| space.prefix() == prefix);
    XattrName { space: space.unwrap_or(Space::User), name: rest.into() }
}

fn set(world: &mut World, path: &str, text: &str, value: Option<&[u8]>, flags: u32) -> FsResult<Reply> {
    let request =
        ops::set_xattrs::Request { path: path.into(), name: name(text), value: value.map(Into::into), flags };
    world.run(|ns, ctx| ops::set_xattrs::plan(ns, ctx, &request))
}

fn remove(world: &mut World, path: &str, text: &str) -> FsResult<Reply> {
    let request = ops::set_xattrs::Removal { path: path.into(), name: name(text) };
    world.run(|ns, ctx| ops::set_xattrs::plan_removal(ns, ctx, &request))
}

fn get(world: &World, path: &str, names: &[&str]) -> FsResult<Vec<String>> {
    let names: Vec<XattrName> = names.iter().map(|text| name(text)).collect();
    let found = get_xattrs::get(&world.ns, &world.context(None), path, &names)?;
    let show = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    Ok(found.into_iter().map(|xattr| format!("{}={}", xattr.name, show(&xattr.value))).collect())
}

fn world_with_file(seed: u64) -> FsResult<World> {
    let mut world = World::new(seed);
    world.create("/d/f", false)?;
    Ok(world)
}

fn denied(text: &str) -> FsError {
    FsError::AccessDenied(text.into())
}

fn io(text: &str) -> FsError {
    FsError::Io(text.into())
}

#[test]
fn attributes_are_set_read_and_removed() -> FsResult<()> {
    let mut world = world_with_file(1)?;
    set(&mut world, "/d/f", "user.b", Some(b"2"), CREATE)?;
    set(&mut world, "/d/f", "user.a", None, EITHER)?;
    set(&mut world, "/d/f", "trusted.t", Some(b"x"), EITHER)?;
    set(&mut world, "/d/f", "user.b", Some(b"two"), REPLACE)?;
    assert_eq!(get(&world, "/d/f", &[])?, ["user.a=", "user.b=two", "trusted.t=x"]);
    // In the order asked for.
    assert_eq!(get(&world, "/d/f", &["user.b", "user.a"])?, ["user.b=two", "user.a="]);
    remove(&mut world, "/d/f", "user.b")?;
    assert_eq!(
        get(&world, "/d/f", &["user.a", "user.b"]),
        Err(FsError::XattrNotFound("At least one of the attributes provided was not found.".into()))
    );
    world.check_replay();
    world.restart_from_image();
    assert_eq!(get(&world, "/d/f", &[])?, ["user.a=", "trusted.t=x"]);
    // They go wherever the file goes, and with it.
    assert_eq!(world.rename("/d/f", "/g"), Ok(true));
    assert_eq!(get(&world, "/g", &[])?, ["user.a=", "trusted.t=x"]);
    world.create("/g", true)?;
    assert_eq!(get(&world, "/g", &[])?, [""; 0]);
    assert_eq!(world.ns.check_consistency(), Ok(()));
    world.check_replay();
    Ok(())
}

/// HDFS refuses as soon as it finds any attribute, and a directory's policies are some.
#[test]
fn what_forbids_superusers_to_read_is_never_taken_away() -> FsResult<()> {
    const NAME: &str = "security.hdfs.unreadable.by.superuser";
    let mut world = world_with_file(1)?;
    let none = io("No matching attributes found for remove operation");
    let never = denied(&format!("The xattr '{NAME}' can not be deleted."));
    for path in ["/d", "/d/f"] {
        assert_eq!(remove(&mut world, path, NAME), Err(none.clone()));
        world.set_storage_policy(path, Some("HOT"))?;
    }
    assert_eq!(remove(&mut world, "/d", NAME), Err(never.clone()));
    assert_eq!(remove(&mut world, "/d/f", NAME), Err(none.clone()), "a file's policy is no attribute");
    set(&mut world, "/d/f", "user.a", None, CREATE)?;
    assert_eq!(remove(&mut world, "/d/f", NAME), Err(never.clone()));
    world.set_storage_policy("/d", None)?;
    assert_eq!(remove(&mut world, "/d", NAME), Err(none));
    let request = ops::set_erasure_coding::Request { path: "/d".into(), policy: "replication".into() };
    world.run(|ns, ctx| ops::set_erasure_coding::plan(ns, ctx, &request))?;
    assert_eq!(remove(&mut world, "/d", NAME), Err(never));
    Ok(())
}

#[test]
fn what_is_no_change_makes_no_edit() -> FsResult<()> {
    let mut world = world_with_file(2)?;
    set(&mut world, "/d/f", "user.a", Some(b"1"), CREATE)?;
    let edits = world.journal.len();
    set(&mut world, "/d/f", "user.a", Some(b"1"), EITHER)?;
    assert_eq!(world.journal.len(), edits);
    Ok(())
}

/// `XAttrSetFlag.validate`.
#[test]
fn the_flags_say_whether_it_may_be_there() -> FsResult<()> {
    let mut world = world_with_file(3)?;
    assert_eq!(
        set(&mut world, "/d/f", "user.a", None, 0),
        Err(FsError::InvalidArgument("A flag must be specified.".into()))
    );
    assert_eq!(
        set(&mut world, "/d/f", "user.a", None, REPLACE),
        Err(io("XAttr: a does not exist. The CREATE flag must be specified."))
    );
    set(&mut world, "/d/f", "user.a", None, CREATE)?;
    assert_eq!(
        set(&mut world, "/d/f", "user.a", Some(b"1"), CREATE),
        Err(io("XAttr: a already exists. The REPLACE flag must be specified."))
    );
    assert_eq!(
        remove(&mut world, "/d/f", "user.z"),
        Err(io("No matching attributes found for remove operation"))
    );
    Ok(())
}

#[test]
fn thirty_two_and_no_more_sixteen_kibibytes_and_no_more() -> FsResult<()> {
    let mut world = world_with_file(4)?;
    for n in 0..31 {
        set(&mut world, "/d/f", &format!("user.{n}"), None, CREATE)?;
    }
    set(&mut world, "/d/f", "trusted.t", Some(&vec![7; 16_383]), CREATE)?;
    let too_many = Err(io("Cannot add additional XAttr to inode, would exceed limit of 32"));
    assert_eq!(set(&mut world, "/d/f", "user.x", None, CREATE), too_many);
    assert_eq!(set(&mut world, "/d/f", "trusted.x", None, CREATE), too_many);
    // Attributes that are there may change, and attributes outside the user's namespaces do not count.
    set(&mut world, "/d/f", "user.3", Some(b"v"), REPLACE)?;
    set(&mut world, "/.reserved/raw/d/f", "raw.x", Some(b"v"), CREATE)?;
    set(&mut world, "/d/f", "security.hdfs.unreadable.by.superuser", None, CREATE)?;
    let text = "The XAttr is too big. The maximum combined size of the name and value is 16384, but the total \
                size is 16385";
    assert_eq!(
        set(&mut world, "/d/f", "trusted.t", Some(&vec![7; 16_384]), REPLACE),
        Err(FsError::InvalidArgument(text.into()))
    );
    assert!(matches!(set(&mut world, "/d/f", "user.", None, CREATE), Err(FsError::InvalidArgument(_))));
    world.check_replay();
    world.restart_from_image();
    Ok(())
}

/// `XAttrPermissionFilter`.
#[test]
fn each_namespace_has_its_own_owners() -> FsResult<()> {
    let mut world = world_with_file(5)?;
    set(&mut world, "/d/f", "trusted.t", Some(b"1"), CREATE)?;
    set(&mut world, "/.reserved/raw/d/f", "raw.r", Some(b"2"), CREATE)?;
    for text in ["security.s", "system.s", "raw.r"] {
        let expected = Err(denied(&format!("User doesn't have permission for xattr: {text}")));
        assert_eq!(set(&mut world, "/d/f", text, None, EITHER), expected, "{text}");
        assert_eq!(get(&world, "/d/f", &[text]).map(|_| Reply::Unit), expected, "{text}");
        assert_eq!(remove(&mut world, "/d/f", text), expected, "{text}");
    }
    // Only those who come by that way see raw ones.
    assert_eq!(get(&world, "/d/f", &[])?, ["trusted.t=1"]);
    assert_eq!(get(&world, "/.reserved/raw/d/f", &[])?, ["trusted.t=1", "raw.r=2"]);
    world.set_permission("/d/f", 0o666)?;
    world.caller = Caller::simple("ann", &[]);
    let expected = Err(denied("User doesn't have permission for xattr: trusted.t"));
    assert_eq!(set(&mut world, "/d/f", "trusted.t", None, EITHER), expected);
    assert_eq!(get(&world, "/d/f", &["trusted.t"]).map(|_| Reply::Unit), expected);
    set(&mut world, "/d/f", "user.u", Some(b"3"), CREATE)?;
    assert_eq!(get(&world, "/d/f", &[])?, ["user.u=3"]);
    assert_eq!(get(&world, "/.reserved/raw/d/f", &[])?, ["user.u=3", "raw.r=2"]);
    assert!(matches!(
        set(&mut world, "/.reserved/raw/d/f", "raw.x", None, CREATE),
        Err(FsError::AccessDenied(_))
    ));
    Ok(())
}

/// `checkXAttrChangeAccess`: write access for a file, ownership for a sticky directory.
#[test]
fn who_may_write_may_set_but_not_on_a_sticky_directory() -> FsResult<()> {
    let mut world = world_with_file(6)?;
    world.mkdirs("/tmp", true)?;
    world.set_permission("/tmp", 0o1777)?;
    world.caller = Caller::simple("ann", &[]);
    assert_eq!(
        set(&mut world, "/d/f", "user.a", None, CREATE),
        Err(denied("Permission denied: user=ann, access=WRITE, inode=\"/d/f\":hdfs:supergroup:-rw-r--r--"))
    );
    assert_eq!(
        set(&mut world, "/tmp", "user.a", None, CREATE),
        Err(denied("Permission denied. user=ann is not the owner of inode=/tmp"))
    );
    assert_eq!(get(&world, "/d/f", &[])?, [""; 0]);
    assert_eq!(get(&world, "/no", &[]), Err(FsError::NotFound("cannot find /no".into())));
    world.caller = Caller::simple("hdfs", &[]);
    assert_eq!(
        set(&mut world, "/no", "user.a", None, CREATE),
        Err(FsError::NotFound("cannot find /no".into()))
    );
    set(&mut world, "/tmp", "user.a", None, CREATE)?;
    world.limits.xattrs.enabled = false;
    let text = "The XAttr operation has been rejected.  Support for XAttrs has been disabled by setting \
                dfs.namenode.xattrs.enabled to false.";
    assert_eq!(set(&mut world, "/tmp", "user.a", None, CREATE), Err(io(text)));
    assert_eq!(get(&world, "/tmp", &[]), Err(io(text)));
    Ok(())
}

#[test]
fn a_superuser_cannot_read_what_is_marked_so_nor_unmark_it() -> FsResult<()> {
    const MARK: &str = "security.hdfs.unreadable.by.superuser";
    let mut world = world_with_file(7)?;
    assert_eq!(
        set(&mut world, "/d/f", MARK, Some(b""), CREATE),
        Err(denied(&format!("Attempt to set a value for '{MARK}'. Values are not allowed for this xattr.")))
    );
    assert_eq!(
        set(&mut world, "/d", MARK, None, CREATE),
        Err(io(&format!("Can only set '{MARK}' on a file.")))
    );
    set(&mut world, "/d/f", MARK, None, CREATE)?;
    assert_eq!(get(&world, "/d/f", &[MARK])?, [format!("{MARK}=")]);
    assert_eq!(
        remove(&mut world, "/d/f", MARK),
        Err(denied(&format!("The xattr '{MARK}' can not be deleted.")))
    );
    let read =
        |world: &World| get_block_locations::get(&world.ns, &world.context(None), "/d/f", 0, 1).map(|_| ());
    assert_eq!(
        read(&world),
        Err(denied(
            "Access is denied for hdfs since the superuser is not allowed to perform this operation."
        ))
    );
    world.caller = Caller::simple("ann", &[]);
    assert_eq!(read(&world), Ok(()));
    Ok(())
}

#[test]
fn a_snapshot_shows_attributes_and_acls_as_they_were() -> FsResult<()> {
    let mut world = world_with_file(8)?;
    set(&mut world, "/d/f", "user.a", Some(b"then"), CREATE)?;
    let ann =
        vec![AclEntry { scope: Scope::Access, kind: Kind::User, name: Some("ann".into()), permission: 6 }];
    let merge = ops::set_acl::Request { path: "/d/f".into(), change: Change::Merge(ann) };
    world.run(|ns, ctx| ops::set_acl::plan(ns, ctx, &merge))?;
    world.allow_snapshot("/d")?;
    world.create_snapshot("/d", "s")?;
    set(&mut world, "/d/f", "user.a", Some(b"now"), REPLACE)?;
    set(&mut world, "/d/f", "user.b", None, CREATE)?;
    let strip = ops::set_acl::Request { path: "/d/f".into(), change: Change::RemoveAll };
    world.run(|ns, ctx| ops::set_acl::plan(ns, ctx, &strip))?;
    for step in 0..3 {
        let acl = get_acl_status::get(&world.ns, &world.context(None), "/d/.snapshot/s/f")?;
        assert_eq!(acl.entries.len(), 2, "{step}: {:?}", acl.entries);
        assert_eq!(get(&world, "/d/.snapshot/s/f", &[])?, ["user.a=then"], "{step}");
        match step {
            0 => {
                assert_eq!(get(&world, "/d/f", &[])?, ["user.a=now", "user.b="]);
                // A deleted file is kept for the snapshot, with its attributes.
                assert_eq!(world.delete("/d/f", false), Ok(true));
            }
            1 => world.restart_from_image(),
            _ => {}
        }
    }
    world.check_replay();
    let refused = set(&mut world, "/d/.snapshot/s/f", "user.c", None, CREATE);
    assert_eq!(refused, Err(FsError::SnapshotReadOnly));
    Ok(())
}
