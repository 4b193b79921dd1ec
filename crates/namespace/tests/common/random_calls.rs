//! Calls of all families on a small set of names.

use super::{Dice, World};
use base::Block;
use namespace::homes::Intent;

/// The names of the snapshots that the calls make.
pub const SNAPSHOTS: [&str; 2] = ["s0", "s1"];

/// All paths of up to three components.
pub fn paths() -> Vec<String> {
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

/// Whether a call would make a file in another home, which nobody asks here.
fn is_for_another_home(world: &World, path: &str) -> bool {
    world.ns.has_homes() && world.ns.decider(path, Intent::Look) != world.ns.group()
}

/// Anything; most of it is refused.
pub fn some_call(world: &mut World, dice: &mut Dice, paths: &[String]) {
    let mut pick = || &*paths[1 + dice.below(paths.len() as u64 - 1) as usize];
    let (path, other) = (pick(), pick());
    let root = ["/a", "/b"][dice.below(2) as usize];
    let name = SNAPSHOTS[dice.below(2) as usize];
    match dice.below(25) {
        4..7 if is_for_another_home(world, path) => {}
        9..12 if is_for_another_home(world, other) && !world.ns.is_directory(path) => {}
        0..4 => drop(world.mkdirs(path, true)),
        4..7 => {
            if let Ok(inode) = world.create(path, dice.below(3) == 0)
                && dice.below(3) > 0
            {
                let block = world.add_block(path, inode, None);
                let length = 512 + dice.below(512);
                world.complete(path, inode, Some(Block { length, ..block }));
            }
        }
        7 => drop(world.append(path, false)),
        8 => drop(world.truncate(path, dice.below(600) as i64)),
        9 | 10 => drop(world.rename(path, other)),
        11 => drop(world.rename2(path, other, true)),
        12 => drop(world.delete(path, true)),
        13 => drop(world.set_permission(path, [0o700, 0o755, 0o777, 0o750][dice.below(4) as usize])),
        14 => drop(world.set_owner(path, Some(["bob", "ann"][dice.below(2) as usize]), None)),
        15 => drop(world.set_times(path, dice.below(1 << 40) as i64, -1)),
        16 => drop(world.set_replication(path, 1 + dice.below(3) as u32)),
        17 if dice.below(3) == 0 => drop(world.satisfy_storage_policy(path)),
        17 => drop(world.set_storage_policy(path, Some(["HOT", "COLD"][dice.below(2) as usize]))),
        18 if world.sets_quotas => drop(world.set_quota(path, 1 + dice.below(1_000) as i64, i64::MAX)),
        19 => drop(world.allow_snapshot(root)),
        20 => drop(world.create_snapshot(root, name)),
        21 => drop(world.delete_snapshot(root, name)),
        22 => drop(world.rename_snapshot(root, name, "s1")),
        23 => drop(world.concat(path, &[other.to_owned()])),
        _ => drop(world.tidy_up()),
    }
}
