//! An answer that an edit changed rests on an inode that the edit's footprint names. If it did not, a reader
//! could be told of what is not yet durable.

mod common;

use common::{Dice, World};
use namespace::{
    Edit,
    acl::{AclEntry, Kind, Scope},
    ops,
    reads::{get_acl_status, get_block_locations, get_file_info, get_listing, get_xattrs},
    xattr::{Space, XattrName},
};

/// All paths of up to three components.
fn paths() -> Vec<String> {
    let names = ["a", "b", "c"];
    let mut paths = vec![String::new()];
    let mut at = 0;
    while at < paths.len() {
        if paths[at].matches('/').count() < 3 {
            let longer: Vec<String> = names.iter().map(|name| format!("{}/{name}", paths[at])).collect();
            paths.extend(longer);
        }
        at += 1;
    }
    paths[0] = "/".into();
    paths
}

/// Whatever can be asked of a path.
fn answer(world: &World, path: &str) -> String {
    let ctx = world.context(None);
    let ns = &world.ns;
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        get_file_info::get(ns, &ctx, path),
        get_listing::get(ns, &ctx, path, b"", true),
        get_block_locations::get(ns, &ctx, path, 0, i64::MAX as u64),
        get_acl_status::get(ns, &ctx, path),
        get_xattrs::get(ns, &ctx, path, &[])
    )
}

fn apply_and_compare(world: &mut World, edit: Edit, paths: &[String]) {
    let mut footprint = Vec::new();
    world.ns.footprint_of(&edit, &mut footprint);
    let before: Vec<String> = paths.iter().map(|path| answer(world, path)).collect();
    world.apply(edit.clone());
    for (path, before) in paths.iter().zip(before) {
        let after = answer(world, path);
        let mut seen = Vec::new();
        world.ns.inodes_on(path, &mut seen);
        let rests = seen.iter().any(|inode| footprint.contains(inode));
        assert!(before == after || rests, "{path}: {before} became {after} by {edit:?}");
    }
}

#[test]
fn a_changed_answer_rests_on_the_footprint_of_the_change() {
    let paths = paths();
    let mut world = World::new(4);
    let mut dice = Dice(4);
    let pick = |dice: &mut Dice| paths[1 + dice.below(paths.len() as u64 - 1) as usize].clone();
    for step in 0..600 {
        let (path, other) = (pick(&mut dice), pick(&mut dice));
        let ctx = world.context(None);
        let ns = &world.ns;
        let planned = match dice.below(10) {
            0 => {
                let request = ops::mkdirs::Request {
                    path: &path,
                    permission: 0o755,
                    unmasked: None,
                    create_parent: true,
                };
                ops::mkdirs::plan(ns, &ctx, &request)
            }
            1 | 2 => {
                let mut request = world.create_request(&path, "holder");
                request.flags |= ops::create::flag::OVERWRITE;
                ops::create::plan(ns, &ctx, &request)
            }
            3 => {
                let request = ops::rename::Request { source: &path, destination: &other };
                ops::rename::plan(ns, &ctx, &request)
            }
            4 => {
                let request = ops::rename2::Request {
                    source: &path,
                    destination: &other,
                    overwrite: true,
                    to_trash: false,
                };
                ops::rename2::plan(ns, &ctx, &request)
            }
            5 if step % 3 == 0 => {
                ops::delete::plan(ns, &ctx, &ops::delete::Request { path: &path, recursive: true })
            }
            8 => {
                let entry = AclEntry {
                    scope: Scope::Access,
                    kind: Kind::User,
                    name: Some("ann".into()),
                    permission: step as u8 & 7,
                };
                let entries = [entry];
                let change = ops::set_acl::Change::Merge(&entries);
                ops::set_acl::plan(ns, &ctx, &ops::set_acl::Request { path: &path, change })
            }
            9 => {
                let name = XattrName { space: Space::User, name: "a".into() };
                let value = step.to_string();
                let value = Some(value.as_bytes());
                let request = ops::set_xattrs::Request { path: &path, name: &name, value, flags: 3 };
                ops::set_xattrs::plan(ns, &ctx, &request)
            }
            6 => {
                let request = ops::set_permission::Request { path: &path, permission: step as u16 & 0o777 };
                ops::set_permission::plan(ns, &ctx, &request)
            }
            _ => {
                let request =
                    ops::set_times::Request { path: &path, modified: i64::from(step), accessed: -1 };
                ops::set_times::plan(ns, &ctx, &request)
            }
        };
        if let Ok(namespace::Planned::Edit(edit)) = planned {
            apply_and_compare(&mut world, edit, &paths);
        }
    }
    assert!(world.journal.len() > 100);
    world.check_replay();
}
