//! Files move between the homes of a namespace with three groups. What clients see is compared with a namespace of one group, and what the pools of the groups
//! keep with the files that are there.

mod common;

use base::{
    Block, BlockId, FsError, FsResult, GroupId, InodeId,
    directory_log::{Dix, Point},
};
use common::{
    ALL_FINISHED, Dice, World,
    cluster::{Cluster, GROUPS, see},
};
use namespace::{
    Edit, Namespace, Plannable, Reply,
    acl::{AclEntry, Kind, Scope},
    ops::{self, carry_out, relay::NotFollowed},
    outbox::{Join, Message, Order},
    reads::{get_block_locations, get_file_info},
};
use std::collections::BTreeMap;

/// Stories of the random play; with 3,000 it was played once.
const ROUNDS: u64 = 25;

const YES: FsResult<Reply> = Ok(Reply::Bool(true));

#[test]
fn a_file_goes_from_home_to_home_and_its_blocks_stay_until_it_is_deleted() {
    let mut cluster = Cluster::new(1);
    let directories = cluster.directories(1);
    let [one, two, three] = &directories[..] else { panic!("a directory of each home") };
    let paths: Vec<String> = directories
        .iter()
        .flat_map(|directory| [format!("{directory}/f"), format!("{directory}/g")])
        .collect();
    let mut dice = Dice(1);
    cluster.write(&format!("{one}/f"), &[700, 300]).unwrap();
    let before = cluster.see(&format!("{one}/f")).unwrap();
    assert_eq!(cluster.rename(&format!("{one}/f"), &format!("{two}/g")), YES);
    assert_eq!(cluster.see(&format!("{one}/f")), None);
    assert_eq!(cluster.see(&format!("{two}/g")), Some(before.clone()));
    assert_eq!(cluster.exports(), 1);
    cluster.check(&paths);

    // It is written on in its new home, in that home's own pool, and goes on to a third one.
    cluster.append(&format!("{two}/g"), &[50]).unwrap();
    assert_eq!(cluster.rename(&format!("{two}/g"), &format!("{three}/f")), YES);
    assert_eq!(cluster.see(&format!("{three}/f")).unwrap().length, 1_050);
    assert_eq!(cluster.exports(), 2);
    let id = cluster.groups[&cluster.home(three)].ns.counts();
    assert_eq!(id.files, 1, "exports are no files");
    cluster.check(&paths);

    // Who asks for it by its id is told where it is, by the group that made it.
    let status = {
        let world = &cluster.groups[&cluster.home(three)];
        get_file_info::get(&world.ns, &world.context(None), &format!("{three}/f")).unwrap().unwrap().id
    };
    let first = &cluster.groups[&cluster.home(one)].ns;
    assert_eq!(first.decider_of_file(status), cluster.home(three));

    // The home of each group's blocks hears of another replication, and may be late.
    assert_eq!(cluster.set_replication(&format!("{three}/f"), 5), YES);
    let refused = cluster.rename(&format!("{three}/f"), &format!("{one}/f")).unwrap_err();
    assert!(matches!(refused, FsError::Retry(_)), "{refused}");
    cluster.deliver_all(&mut dice);
    cluster.check(&paths);

    // Back where it was made, it is a file like any other, but for the blocks that others have.
    assert_eq!(cluster.rename(&format!("{three}/f"), &format!("{one}/f")), YES);
    assert_eq!(cluster.exports(), 1);
    cluster.check(&paths);
    assert_eq!(cluster.delete(&format!("{one}/f")), YES);
    cluster.deliver_all(&mut dice);
    cluster.check(&paths);
    assert_eq!(cluster.exports(), 0);
    assert!(cluster.maps.values().all(BTreeMap::is_empty));
}

#[test]
fn a_file_that_cannot_move_is_refused_with_a_reason_and_stays() {
    let mut cluster = Cluster::new(2);
    let directories = cluster.directories(1);
    // From the root group's own home, and from another one.
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let (file, target) = (format!("{}/f", directories[from]), format!("{}/f", directories[to]));
        let home = cluster.home(&directories[from]);
        let request = cluster.world(home).create_request(&file, common::HOLDER);
        cluster.at(home, |ns, ctx| ops::create::plan(ns, ctx, &request)).unwrap();
        let refused = cluster.rename(&file, &target).unwrap_err().to_string();
        assert!(refused.contains("is being written"), "{refused}");
        assert!(cluster.see(&file).is_some() && cluster.see(&target).is_none());
        cluster.go_on(home, &file, None, &[10]).unwrap();
        cluster.write(&target, &[20]).unwrap();
        assert_eq!(cluster.rename(&file, &target), Ok(Reply::Bool(false)), "a file has the new name");
        let refused = cluster.rename2(&file, &target, false).unwrap_err();
        assert!(matches!(refused, FsError::AlreadyExists(_)), "{refused}");
        let missing = cluster.rename2(&format!("{}/none", directories[from]), &target, true).unwrap_err();
        assert!(matches!(missing, FsError::NotFound(_)), "{missing}");
        assert_eq!(cluster.rename2(&file, &target, true), Ok(Reply::Unit));
        assert_eq!(cluster.see(&target).unwrap().length, 10, "the file that had the name is replaced");
        cluster.delete(&target).unwrap();
    }
}

#[test]
fn everything_that_is_known_of_a_file_goes_with_it() {
    let mut cluster = Cluster::new(3);
    let directories = cluster.directories(1);
    let names: Vec<String> = directories.iter().map(|directory| format!("{directory}/f")).collect();
    cluster.write(&names[0], &[5, 6]).unwrap();
    let home = cluster.home(&directories[0]);
    let world = cluster.world(home);
    world.set_permission(&names[0], 0o1640).unwrap();
    world.set_owner(&names[0], Some("ann"), Some("staff")).unwrap();
    world.set_times(&names[0], 77, 88).unwrap();
    world.set_storage_policy(&names[0], Some("COLD")).unwrap();
    let xattr = ops::set_xattrs::Request {
        path: names[0].clone(),
        name: namespace::xattr::XattrName { space: namespace::xattr::Space::User, name: "x".into() },
        value: Some(b"value".to_vec()),
        flags: ops::set_xattrs::flag::CREATE,
    };
    world.run(|ns, ctx| xattr.plan(ns, ctx, &ALL_FINISHED)).unwrap();
    let bob = AclEntry { scope: Scope::Access, kind: Kind::User, name: Some("bob".into()), permission: 7 };
    let acl =
        ops::set_acl::Request { path: names[0].clone(), change: ops::set_acl::Change::Merge(vec![bob]) };
    world.run(|ns, ctx| acl.plan(ns, ctx, &ALL_FINISHED)).unwrap();
    let all = |cluster: &Cluster, at: usize| {
        let world = &cluster.groups[&cluster.home(&directories[at])];
        let context = world.context(None);
        let status = get_file_info::get(&world.ns, &context, &names[at]).unwrap().unwrap();
        let acl = namespace::reads::get_acl_status::get(&world.ns, &context, &names[at]).unwrap();
        let blocks = get_block_locations::by_id(&world.ns, status.id).unwrap();
        let xattrs = namespace::reads::get_xattrs::get(&world.ns, &context, &names[at], &[]).unwrap();
        format!("{status:?} {acl:?} {:?} {xattrs:?}", blocks.blocks)
    };
    let before = all(&cluster, 0);
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        assert_eq!(cluster.rename(&names[from], &names[to]), YES);
        assert_eq!(all(&cluster, to), before);
        for group in GROUPS {
            cluster.world(group).restart_from_image();
        }
        assert_eq!(all(&cluster, to), before, "after a restart");
    }
}

#[test]
fn joined_files_are_one_file_for_all_groups() {
    let mut cluster = Cluster::new(6);
    let directories = cluster.directories(1);
    let [one, two, three] = &directories[..] else { panic!("a directory of each home") };
    let names = ["f", "g", "h"];
    let paths: Vec<String> =
        directories.iter().flat_map(|directory| names.map(|name| format!("{directory}/{name}"))).collect();
    let mut dice = Dice(6);
    // Into the second home come a file of the first group, with a block of the third's pool, and one of the third group without blocks here.
    let [target, first, third] = names.map(|name| format!("{two}/{name}"));
    cluster.write(&target, &[10]).unwrap();
    cluster.write(&format!("{one}/g"), &[20]).unwrap();
    cluster.rename(&format!("{one}/g"), &format!("{three}/g")).unwrap();
    cluster.append(&format!("{three}/g"), &[30]).unwrap();
    cluster.rename(&format!("{three}/g"), &first).unwrap();
    cluster.write(&format!("{three}/h"), &[]).unwrap();
    cluster.rename(&format!("{three}/h"), &third).unwrap();
    cluster.append(&third, &[40]).unwrap();
    cluster.set_replication(&target, 2).unwrap();
    assert_eq!(cluster.exports(), 3);
    assert_eq!(cluster.concat(&target, &[first.clone(), third.clone()]), Ok(Reply::Unit));
    let seen = cluster.see(&target).unwrap();
    assert_eq!((seen.length, seen.blocks), (100, vec![10, 20, 30, 40]));
    assert!(cluster.see(&first).is_none() && cluster.see(&third).is_none());
    // Until the other groups have heard of it, the file stays.
    let refused = cluster.rename(&target, &format!("{one}/f")).unwrap_err();
    assert!(matches!(refused, FsError::Retry(_)), "{refused}");
    // Later orders come behind it.
    cluster.set_replication(&target, 4).unwrap();
    cluster.deliver_all(&mut dice);
    cluster.check(&paths);
    assert_eq!(cluster.exports(), 2, "of the target, in both groups that have blocks of it");
    for group in GROUPS {
        cluster.world(group).restart_from_image();
    }
    // It moves like any other file, and is joined with another one before the groups have heard of the first time.
    assert_eq!(cluster.rename(&target, &format!("{one}/f")), YES);
    cluster.write(&format!("{one}/g"), &[50]).unwrap();
    cluster.write(&format!("{one}/h"), &[60]).unwrap();
    assert_eq!(cluster.concat(&format!("{one}/g"), &[format!("{one}/f")]), Ok(Reply::Unit));
    assert_eq!(cluster.concat(&format!("{one}/h"), &[format!("{one}/g")]), Ok(Reply::Unit));
    assert_eq!(cluster.see(&format!("{one}/h")).unwrap().blocks, [60, 50, 10, 20, 30, 40]);
    cluster.deliver_all(&mut dice);
    cluster.check(&paths);
    assert_eq!(cluster.exports(), 2);
    assert_eq!(cluster.concat(&format!("{one}/h"), &[first]), {
        let text = format!("Source file {two}/g is not in the same directory with the target {one}/h");
        Err(FsError::InvalidArgument(text))
    });
    cluster.delete(&format!("{one}/h")).unwrap();
    cluster.deliver_all(&mut dice);
    cluster.check(&paths);
    assert_eq!(cluster.exports(), 0);
    assert!(cluster.maps.values().all(BTreeMap::is_empty));
}

/// Groups that do not agree about a file stop, rather than lose it.
#[test]
fn an_entry_or_a_message_that_does_not_fit_is_not_carried_out() {
    let mut cluster = Cluster::new(4);
    let directories = cluster.directories(1);
    let names: Vec<String> = directories.iter().map(|directory| format!("{directory}/f")).collect();
    cluster.write(&names[1], &[5]).unwrap();
    assert_eq!(cluster.rename(&names[1], &names[2]), YES);
    let (_, entries) = cluster.root().ns.directory_entries(Dix(0), usize::MAX).unwrap();
    let moved = Edit::decode(&entries.last().unwrap().payload).unwrap();
    for group in &GROUPS[1..] {
        let world = &cluster.groups[group];
        let point = Point { dix: world.ns.directory_log().dix.next(), ..Point::default() };
        let again = world.ns.follow(&world.context(None), &moved, point);
        assert_eq!(
            again.map(drop),
            Err(NotFollowed::NoDirectories(point.dix)),
            "the file is not there any more"
        );
    }
    let file = InodeId::of_group(1, 1);
    let second = &cluster.groups[&GroupId(2)];
    let home = second.ns.exported_to(file).unwrap();
    let message = |number: u64, dix: Dix, orders: &[Order]| Message {
        number,
        at: Default::default(),
        dix,
        orders: orders.to_vec(),
    };
    let plan = |of: GroupId, before: Option<u64>, message: &Message| {
        carry_out::plan(&second.ns, &second.context(None), of, message, before)
    };
    let dix = second.ns.directory_log().dix;
    let free = [Order::Free { file }];
    assert_eq!(
        plan(home, None, &message(1, dix.next(), &free)),
        carry_out::Plan::Behind(dix.next()),
        "the group has yet to hear of the file's move"
    );
    assert_eq!(
        plan(home, Some(1), &message(3, dix, &free)),
        carry_out::Plan::OutOfOrder { before: 1 },
        "no group leaves out a message"
    );
    let last = u64::MAX;
    assert_eq!(
        plan(home, Some(last), &message(3, dix, &free)),
        carry_out::Plan::OutOfOrder { before: last },
        "nothing comes behind the last number"
    );
    // The orders that are carried out, and the files of those that are not.
    let parts = |of: GroupId, orders: &[Order]| match plan(of, None, &message(1, dix, orders)) {
        carry_out::Plan::Edit { edit, unknown, is_gap: false } => (edit.body.orders, unknown),
        other => panic!("{other:?}"),
    };
    let stranger = GroupId(1);
    assert_ne!(home, stranger);
    assert_eq!(parts(home, &free), (free.to_vec(), vec![]));
    assert_eq!(parts(stranger, &free), (vec![], vec![file]), "the file does not live there");
    let other = InodeId::of_group(1, 7);
    assert_eq!(parts(home, &[Order::Free { file: other }]), (vec![], vec![other]));
    let twice = [free[0].clone(), Order::SetReplication { file, replication: 2 }];
    assert_eq!(parts(home, &twice), (free.to_vec(), vec![file]), "it is gone with the first order");
    let join = |file: InodeId, sources: &[InodeId]| {
        Order::Join(Join { file, sources: sources.to_vec(), replication: 3, storage_policy: 0 })
    };
    let joined = [join(other, &[file])];
    assert_eq!(parts(home, &joined), (joined.to_vec(), vec![]));
    assert_eq!(parts(stranger, &joined), (vec![], vec![file]));
    assert_eq!(parts(home, &[join(other, &[file, file])]), (joined.to_vec(), vec![file]));
    assert_eq!(parts(home, &[join(other, &[file, other])]), (joined.to_vec(), vec![other]));
    assert_eq!(parts(home, &[join(file, &[other])]), (vec![], vec![other]));
    assert_eq!(parts(home, &[join(InodeId::ROOT, &[file])]), (vec![], vec![InodeId::ROOT]), "it is here");
}

/// The bytes come from other servers.
#[test]
fn bytes_that_are_no_message_are_refused() {
    let file = InodeId::of_group(1, 1);
    let orders = vec![
        Order::Free { file },
        Order::FreeBlocks { file, blocks: vec![BlockId(7), BlockId(8)] },
        Order::SetReplication { file, replication: 3 },
    ];
    let message = Message { number: 9, at: Default::default(), dix: Dix(4), orders };
    let join = Order::Join(Join { file, sources: vec![file, file], replication: 3, storage_policy: 7 });
    let joined = Message { orders: vec![join.clone()], ..message.clone() };
    for message in [message.clone(), joined.clone()] {
        let good = message.to_bytes();
        assert_eq!(Message::from_bytes(&good), Ok(message));
        for at in 0..good.len() {
            assert!(Message::from_bytes(&good[..at]).is_err());
            for byte in [0, 4, 0x7f, 0x80, 0xff] {
                let mut other = good.clone();
                other[at] = byte;
                // An error, or another message; never a panic.
                let _ = Message::from_bytes(&other);
            }
        }
    }
    let both = Message { orders: [message.orders, joined.orders].concat(), ..message };
    assert!(Message::from_bytes(&both.to_bytes()).is_err(), "files are joined by an edit of its own");
}

/// An image whose exports and messages contradict each other is refused.
#[test]
fn an_image_with_exports_that_no_member_writes_is_refused() {
    let mut cluster = Cluster::new(5);
    let directories = cluster.directories(1);
    let names: Vec<String> = directories.iter().map(|directory| format!("{directory}/f")).collect();
    cluster.write(&names[1], &[5, 6, 7]).unwrap();
    assert_eq!(cluster.rename(&names[1], &names[2]), YES);
    cluster.set_replication(&names[2], 2).unwrap();
    for group in &GROUPS[1..] {
        let image = common::image_of(&cluster.groups[group].ns.freeze());
        let read = |bytes: &[u8]| Namespace::read_image(1, &mut &bytes[..], bytes.len() as u64);
        assert!(read(&image).is_ok());
        // The section stands at the end: every byte of it counts.
        for at in image.len() - 60..image.len() {
            for byte in [0, 1, 2, 3, 0x7f, 0xff] {
                let mut other = image.clone();
                other[at] = byte;
                assert!(other == image || read(&other).is_err(), "group {group}, byte {at}");
            }
        }
    }
}

/// Random files of two directories of each home. Every call has the same end as in a namespace of one group, and no block is lost or left behind.
#[test]
fn random_files_that_move_are_as_in_one_group() {
    let (mut moves, mut pending, mut joins) = (0u64, 0u64, 0u64);
    for seed in 0..ROUNDS {
        let mut dice = Dice(seed);
        let mut cluster = Cluster::new(seed);
        let directories = cluster.directories(2);
        let mut one = World::new(seed);
        directories.iter().for_each(|directory| drop(one.mkdirs(directory, true)));
        let paths: Vec<String> = directories
            .iter()
            .flat_map(|directory| ["f", "g", "h"].map(|name| format!("{directory}/{name}")))
            .collect();
        for _ in 0..400 {
            let path = paths[dice.below(paths.len() as u64) as usize].clone();
            let other = paths[dice.below(paths.len() as u64) as usize].clone();
            let lengths: Vec<u64> = (0..dice.below(4)).map(|_| 1 + dice.below(1_000)).collect();
            let kind = dice.below(15);
            let sources = some_sources(&cluster, &mut dice, &paths, &path);
            let (overwrite, replication) = (dice.below(2) == 0, 1 + dice.below(5) as u32);
            let found = match kind {
                0..=2 => cluster.write(&path, &lengths).map(|()| Reply::Unit),
                3..=5 => cluster.rename(&path, &other),
                6 | 7 => cluster.rename2(&path, &other, overwrite),
                8 => cluster.delete(&path),
                9 => cluster.set_replication(&path, replication),
                10 if cluster.see(&path).is_some() && !lengths.is_empty() => {
                    cluster.append(&path, &lengths).map(|()| Reply::Unit)
                }
                12..15 => cluster.concat(&path, &sources),
                _ => {
                    cluster.deliver(&mut dice);
                    if dice.below(12) == 0 {
                        cluster.deliver_all(&mut dice);
                        cluster.check(&paths);
                    }
                    if dice.below(10) == 0 {
                        let group = GROUPS[dice.below(3) as usize];
                        cluster.world(group).restart_from_image();
                    }
                    continue;
                }
            };
            if let Err(FsError::Retry(_)) = found {
                pending += 1;
                continue;
            }
            let expected = match kind {
                0..=2 => write_alone(&mut one, &path, &lengths).map(|()| Reply::Unit),
                3..=5 => one.rename(&path, &other).map(Reply::Bool),
                6 | 7 => one.rename2(&path, &other, overwrite),
                8 => one.delete(&path, true).map(Reply::Bool),
                9 => one.set_replication(&path, replication).map(Reply::Bool),
                12..15 => one.concat(&path, &sources),
                _ => append_alone(&mut one, &path, &lengths).map(|()| Reply::Unit),
            };
            let is_told = |world: &World| {
                let is_join = |message: &Message| matches!(message.orders[..], [Order::Join(_)]);
                GROUPS.iter().any(|group| world.ns.messages_to(*group).last().is_some_and(|it| is_join(it)))
            };
            joins += u64::from(kind >= 12 && found.is_ok() && cluster.groups.values().any(is_told));
            let is_far = |error: &FsError| error.to_string().contains("not in the same directory");
            match (&found, &expected) {
                // Only its home knows that a source is not there.
                (Err(found), Err(FsError::NotFound(_))) if kind >= 12 && is_far(found) => {}
                _ => assert_eq!(found, expected, "seed {seed}: {path} {other} {sources:?}"),
            }
            moves += u64::from(found == YES);
            let seen = if kind >= 12 { &path } else { &other };
            let (mut found, mut expected) = (cluster.see(seen), see(&one, seen));
            // Each group has its own clock here.
            found.iter_mut().chain(&mut expected).for_each(|seen| seen.modified = 0);
            assert_eq!(found, expected, "seed {seed}: {seen}");
        }
        cluster.deliver_all(&mut dice);
        cluster.check(&paths);
        for path in &paths {
            let (found, expected) = (cluster.see(path), see(&one, path));
            assert_eq!(found.map(|seen| seen.length), expected.map(|seen| seen.length), "{path}");
        }
        for directory in &directories {
            // A directory goes with all files of all homes in it.
            let request = ops::delete::Request { path: directory.clone(), recursive: true };
            assert_eq!(cluster.at_root(|ns, ctx| ops::delete::plan(ns, ctx, &request)), YES);
        }
        cluster.deliver_all(&mut dice);
        assert!(cluster.maps.values().all(BTreeMap::is_empty), "seed {seed}: {:?}", cluster.maps);
        assert_eq!(cluster.exports(), 0);
        for world in cluster.groups.values_mut() {
            world.ns.check_consistency().unwrap();
            world.restart_from_image();
        }
        cluster.groups[&GroupId::ROOT].check_replay();
    }
    assert!(moves > ROUNDS * 20 && pending > ROUNDS / 5, "{moves} {pending}");
    assert!(joins > ROUNDS * 3, "{joins}");
}

/// Mostly other files of the directory, which are there.
fn some_sources(cluster: &Cluster, dice: &mut Dice, paths: &[String], target: &str) -> Vec<String> {
    if dice.below(8) == 0 {
        let any = |_| paths[dice.below(paths.len() as u64) as usize].clone();
        return (0..3).map(any).collect();
    }
    let (directory, _) = target.rsplit_once('/').unwrap();
    let is_near = |path: &&String| {
        path.rsplit_once('/').unwrap().0 == directory && *path != target && cluster.see(path).is_some()
    };
    let mut sources: Vec<String> = paths.iter().filter(is_near).cloned().collect();
    if dice.below(2) == 0 {
        sources.reverse();
    }
    sources.truncate(1 + dice.below(2) as usize);
    sources
}

fn write_alone(one: &mut World, path: &str, lengths: &[u64]) -> FsResult<()> {
    let inode = one.create(path, false)?;
    finish_alone(one, path, inode, None, lengths);
    Ok(())
}

fn append_alone(one: &mut World, path: &str, lengths: &[u64]) -> FsResult<()> {
    let inode = one.append(path, true)?;
    let last = one.last_block(path);
    finish_alone(one, path, inode, last, lengths);
    Ok(())
}

fn finish_alone(one: &mut World, path: &str, inode: InodeId, last: Option<Block>, lengths: &[u64]) {
    let mut previous = last;
    for length in lengths {
        let block = one.add_block(path, inode, previous);
        previous = Some(Block { length: *length, ..block });
    }
    one.complete(path, inode, previous);
}
