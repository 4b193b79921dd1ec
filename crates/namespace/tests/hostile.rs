//! Bytes that nobody of ours wrote: an error, never a panic, and no large allocation.

mod common;

use common::{Dice, World, image_of};
use namespace::{
    Edit, Namespace,
    acl::{AclEntry, Kind, Scope},
    ops::{self, set_acl::Change},
    xattr::{Space, XattrName},
};

fn busy_world() -> World {
    let mut world = World::new(5);
    for n in 0..30 {
        let inode = world.create(&format!("/a/b{}/f{n}", n % 3), false);
        let inode = inode.unwrap_or_else(|error| panic!("{error}"));
        let block = world.add_block("/x", inode, None);
        if n % 2 == 0 {
            world.complete("/x", inode, Some(base::Block { length: n, ..block }));
        }
    }
    assert_eq!(world.rename("/a/b1", "/c"), Ok(true));
    assert_eq!(world.delete("/a/b2", true), Ok(true));
    assert!(world.set_times("/c", 1, -1).is_ok());
    assert!(world.set_owner("/c", Some("x"), None).is_ok());
    let entry = |scope| AclEntry { scope, kind: Kind::User, name: Some("ann".into()), permission: 6 };
    let entries = vec![entry(Scope::Access), entry(Scope::Default)];
    let request = ops::set_acl::Request { path: "/c".into(), change: Change::Merge(entries) };
    assert!(world.run(|ns, ctx| ops::set_acl::plan(ns, ctx, &request)).is_ok());
    assert_eq!(world.mkdirs("/c/heir/x", true), Ok(true));
    assert!(world.create("/c/made/heir", false).is_ok());
    for (space, value) in [(Space::User, &b"value"[..]), (Space::Trusted, b"")] {
        let name = XattrName { space, name: "name".into() };
        let request =
            ops::set_xattrs::Request { path: "/c".into(), name, value: Some(value.into()), flags: 3 };
        assert!(world.run(|ns, ctx| ops::set_xattrs::plan(ns, ctx, &request)).is_ok());
    }
    let name = XattrName { space: Space::Trusted, name: "name".into() };
    let gone = ops::set_xattrs::Removal { path: "/c".into(), name };
    assert!(world.run(|ns, ctx| ops::set_xattrs::plan_removal(ns, ctx, &gone)).is_ok());
    with_snapshots(&mut world);
    world
}

/// Records, entries, births, kept subtrees, and a sweep that is under way.
fn with_snapshots(world: &mut World) {
    assert!(world.set_quota("/a", 1_000, 1 << 40).is_ok());
    assert!(world.allow_snapshot("/a").is_ok());
    for name in ["one", "two", "three"] {
        assert!(world.create_snapshot("/a", name).is_ok());
        let files = [0, 3, 6, 9].map(|n| format!("/a/b0/f{n}"));
        let file = files.iter().find(|file| world.last_block(file).is_some());
        assert_eq!(world.delete(file.map_or("", |file| file), false), Ok(true));
        assert_eq!(world.mkdirs(&format!("/a/b0/{name}/below"), true), Ok(true));
        assert!(world.set_permission("/a/b0", 0o700).is_ok());
    }
    assert_eq!(world.rename("/a/b0", "/a/moved"), Ok(true));
    assert_eq!(world.delete("/a/moved", true), Ok(true));
    assert!(world.rename_snapshot("/a", "two", "zwei").is_ok());
    assert!(world.delete_snapshot("/a", "one").is_ok());
}

fn mutate(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(4) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at] = dice.below(256) as u8,
            2 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, 0xff),
        }
    }
    bytes
}

#[test]
fn mutated_edits_are_edits_or_errors() {
    let world = busy_world();
    let mut dice = Dice(1);
    for _ in 0..300 {
        for bytes in &world.journal {
            let bytes = mutate(&mut dice, bytes);
            if let Ok(edit) = Edit::decode(&bytes) {
                let mut again = Vec::new();
                edit.encode(&mut again);
                assert_eq!(Edit::decode(&again), Ok(edit));
            }
        }
    }
}

#[test]
fn truncated_edits_and_edits_with_a_tail_are_refused() {
    for bytes in &busy_world().journal {
        for length in 0..bytes.len() {
            assert!(Edit::decode(&bytes[..length]).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Edit::decode(&longer).is_err());
    }
}

#[test]
fn a_count_is_not_believed() {
    // A cleanup of 2^60 inodes, in an edit of a few bytes.
    let mut bytes = vec![1, 0, 0, 8];
    bytes.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]);
    assert!(Edit::decode(&bytes).is_err());
}

#[test]
fn mutated_images_are_refused() {
    let image = image_of(&busy_world().ns.freeze());
    let mut dice = Dice(2);
    let mut refused = 0;
    for _ in 0..800 {
        let bytes = mutate(&mut dice, &image);
        if bytes != image {
            let result = Namespace::read_image(0, &mut &bytes[..], bytes.len() as u64);
            assert!(result.is_err(), "a changed image was accepted");
            refused += 1;
        }
    }
    assert!(refused > 600);
    for length in (0..image.len()).step_by(11) {
        assert!(Namespace::read_image(0, &mut &image[..length], length as u64).is_err());
    }
    // The size that the container states is a bound too.
    assert!(Namespace::read_image(0, &mut &image[..], image.len() as u64 - 1).is_err());
}

#[test]
fn random_bytes_are_no_edit_and_no_image() {
    let mut dice = Dice(3);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..dice.below(60)).map(|_| dice.below(256) as u8).collect();
        if let Some(first) = bytes.first_mut() {
            *first = 1;
        }
        let _ = Edit::decode(&bytes);
    }
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..dice.below(60)).map(|_| dice.below(256) as u8).collect();
        let image = [b"clovrNS\x01\x01".as_slice(), &bytes].concat();
        assert!(Namespace::read_image(0, &mut &image[..], image.len() as u64).is_err());
    }
}
