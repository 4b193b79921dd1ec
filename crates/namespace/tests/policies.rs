//! Storage policies: how they are set, inherited and shown.

mod common;

use base::{FsError, FsResult, POLICY_UNSPECIFIED};
use common::World;
use namespace::{
    Reply, ops,
    reads::{get_content_summary, get_file_info, get_listing, get_storage_policy},
};

fn shown(world: &World, path: &str) -> u8 {
    let status = get_file_info::get(&world.ns, &world.context(None), path);
    status.ok().flatten().expect("a file").storage_policy
}

fn in_force(world: &World, path: &str) -> FsResult<&'static str> {
    get_storage_policy::get(&world.ns, &world.context(None), path).map(|policy| policy.name)
}

#[test]
fn a_status_shows_the_own_policy_or_the_closest_ancestors() -> FsResult<()> {
    let mut world = World::new(0);
    world.create("/a/b/f", false)?;
    world.mkdirs("/a/c", true)?;
    assert_eq!(shown(&world, "/a/b/f"), POLICY_UNSPECIFIED);
    assert_eq!(in_force(&world, "/a/b/f"), Ok("HOT"));
    world.set_storage_policy("/a", Some("cold"))?;
    world.set_storage_policy("/a/b", Some("ONE_SSD"))?;
    assert_eq!([shown(&world, "/a"), shown(&world, "/a/b/f"), shown(&world, "/a/c")], [2, 10, 2]);
    assert_eq!(in_force(&world, "/a/c"), Ok("COLD"));
    let page = get_listing::get(&world.ns, &world.context(None), "/a", b"", false)?.expect("a directory");
    let listed: Vec<u8> = page.entries.iter().map(|entry| entry.storage_policy).collect();
    assert_eq!(listed, [10, 2]);
    world.set_storage_policy("/a/b/f", Some("WARM"))?;
    assert_eq!(shown(&world, "/a/b/f"), 5);
    world.set_storage_policy("/a/b/f", None)?;
    world.set_storage_policy("/a/b", None)?;
    assert_eq!(shown(&world, "/a/b/f"), 2);
    world.restart_from_image();
    assert_eq!(shown(&world, "/a/b/f"), 2);
    world.set_storage_policy("/a", None)?;
    assert!(!world.ns.has_storage_policies());
    world.check_replay();
    Ok(())
}

#[test]
fn what_cannot_be_set_is_refused_as_hdfs_refuses_it() -> FsResult<()> {
    let mut world = World::new(0);
    world.create("/d/f", false)?;
    assert_eq!(
        world.set_storage_policy("/d", Some("TEPID")),
        Err(FsError::InvalidArgument("Cannot find a block policy with the name TEPID".into()))
    );
    assert_eq!(
        world.set_storage_policy("/none", Some("HOT")),
        Err(FsError::NotFound("File/Directory does not exist: /none".into()))
    );
    assert_eq!(
        world.set_storage_policy("/d/f", Some("LAZY_PERSIST")),
        Err(FsError::InvalidArgument(
            "Policy BlockStoragePolicy{LAZY_PERSIST:15, storageTypes=[RAM_DISK, DISK], creationFallbacks=[DISK], \
             replicationFallbacks=[DISK]} cannot be set after file creation."
                .into()
        ))
    );
    // "Copy effective policy from ancestor directory to current file."
    world.set_storage_policy("/d", Some("LAZY_PERSIST"))?;
    world.create("/d/g", false)?;
    world.set_storage_policy("/d", None)?;
    assert_eq!([shown(&world, "/d/f"), shown(&world, "/d/g")], [0, 15]);
    assert_eq!(
        world.set_storage_policy("/d/g", Some("HOT")),
        Err(FsError::InvalidArgument(
            "Existing policy LAZY_PERSIST cannot be changed after file creation.".into()
        ))
    );
    world.check_replay();
    Ok(())
}

fn erasure_coding(world: &World, path: &str) -> FsResult<&'static str> {
    let context = world.context(None);
    let mut walk = get_content_summary::Walk::start(&world.ns, &context, path)?;
    Ok(walk.step(&world.ns, &context)?.expect("a small tree").erasure_coding)
}

#[test]
fn a_directory_keeps_the_order_to_replicate_and_summaries_show_it() -> FsResult<()> {
    use ops::set_erasure_coding::{REPLICATION, Removal, Request, plan, plan_removal};
    let set = |path: &str, policy: &str| Request { path: path.into(), policy: policy.into() };
    let unset = |path: &str| Removal { path: path.into() };
    let mut world = World::new(0);
    world.create("/a/b/f", false)?;
    world.run(|ns, ctx| plan(ns, ctx, &set("/a", REPLICATION)))?;
    let shown =
        |world: &World| ["/", "/a", "/a/b", "/a/b/f"].map(|path| erasure_coding(world, path).unwrap());
    assert_eq!(shown(&world), ["", "replication", "replication", "Replicated"]);
    let edits = world.journal.len();
    world.run(|ns, ctx| plan(ns, ctx, &set("/a", REPLICATION)))?;
    assert_eq!(world.journal.len(), edits);
    // HDFS looks no further than the first directory with any extended attribute, and a policy is one.
    world.set_storage_policy("/a/b", Some("HOT"))?;
    assert_eq!(shown(&world), ["", "replication", "", "Replicated"]);
    world.restart_from_image();
    assert_eq!(shown(&world), ["", "replication", "", "Replicated"]);
    // Nobody sees it among the attributes.
    let name = namespace::xattr::XattrName {
        space: namespace::xattr::Space::System,
        name: "hdfs.erasurecoding.policy".into(),
    };
    let context = world.context(None);
    assert_eq!(namespace::reads::get_xattrs::get(&world.ns, &context, "/a", &[]), Ok(vec![]));
    let asked = namespace::reads::get_xattrs::get(&world.ns, &context, "/a", &[name]);
    assert!(matches!(asked, Err(FsError::AccessDenied(_))));
    world.run(|ns, ctx| plan_removal(ns, ctx, &unset("/a")))?;
    assert_eq!(shown(&world), ["", "", "", "Replicated"]);
    for (path, error) in [
        ("/a", FsError::NoErasureCoding("No erasure coding policy explicitly set on /a".into())),
        ("/a/b/f", FsError::Io("Cannot unset an erasure coding policy on a file /a/b/f".into())),
        ("/none", FsError::NotFound("Path not found: /none".into())),
    ] {
        assert_eq!(world.run(|ns, ctx| plan_removal(ns, ctx, &unset(path))), Err(error));
    }
    assert_eq!(
        world.run(|ns, ctx| plan(ns, ctx, &set("/a/b/f", "Replication"))),
        Err(FsError::Io("Attempt to set an erasure coding policy for a file /a/b/f".into()))
    );
    world.check_replay();
    Ok(())
}

#[test]
fn a_file_may_be_created_with_a_policy() -> FsResult<()> {
    let mut world = World::new(0);
    let mut create = |path: &str, policy: Option<&str>, flags| {
        let mut request = world.create_request(path, "client");
        (request.storage_policy, request.flags) = (policy.map(str::to_owned), request.flags | flags);
        world.run(|ns, ctx| ops::create::plan(ns, ctx, &request))
    };
    assert!(matches!(create("/cold", Some("COLD"), 0), Ok(Reply::Created(_))));
    assert!(matches!(create("/none", Some(""), 0), Ok(Reply::Created(_))));
    assert!(matches!(create("/lazy", None, ops::create::flag::LAZY_PERSIST), Ok(Reply::Created(_))));
    assert_eq!(
        create("/x", Some("x"), 0),
        Err(FsError::InvalidArgument("Cannot find a block policy with the name x".into()))
    );
    assert_eq!(["/cold", "/none", "/lazy"].map(|path| shown(&world, path)), [2, 0, 15]);
    world.restart_from_image();
    world.check_replay();
    Ok(())
}

#[test]
fn a_file_may_be_created_with_the_order_to_replicate_and_with_no_other() {
    let mut world = World::new(0);
    let mut create = |path: &str, name: &str, flags| {
        let mut request = world.create_request(path, "client");
        (request.erasure_coding, request.flags) = (Some(name.into()), request.flags | flags);
        world.run(|ns, ctx| ops::create::plan(ns, ctx, &request))
    };
    assert!(matches!(create("/a", "REPLICATION", 0), Ok(Reply::Created(_))));
    assert!(matches!(create("/b", "", ops::create::flag::SHOULD_REPLICATE), Ok(Reply::Created(_))));
    let both = "SHOULD_REPLICATE flag and ecPolicyName are exclusive parameters. Set both is not allowed!";
    assert_eq!(
        create("/c", "replication", ops::create::flag::SHOULD_REPLICATE),
        Err(FsError::InvalidArgument(both.into()))
    );
    let disabled = "Policy 'RS-6-3-1024k' does not match any enabled erasure coding policies: []. An erasure \
                    coding policy can be enabled by enableErasureCodingPolicy API.";
    assert_eq!(create("/c", "RS-6-3-1024k", 0), Err(FsError::InvalidArgument(disabled.into())));
}
