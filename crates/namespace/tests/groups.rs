//! The trees of several groups give out ids that never meet.

mod common;

use base::{Block, BlockId, Epoch, FsError, FsResult, GroupId, InodeId, InodeOrigin, Sn, TxId};
use common::{World, image_of};
use namespace::{Namespace, NewEpoch};

fn skips(world: &mut World, inodes: u64, blocks: u64) {
    let at = TxId { epoch: Epoch(2), sn: Sn(world.ns.applied().sn.0 + 1) };
    let new = NewEpoch { inodes, blocks, keeps_skipped: true, ..NewEpoch::default() };
    let _ = world.ns.start_epoch(at, new);
}

#[test]
fn files_and_blocks_name_the_group_that_made_them() -> FsResult<()> {
    for (group, number) in [(GroupId::ROOT, 0), (GroupId(2), 1), (GroupId::LAST, 127)] {
        let mut world = World::of_group(1, group);
        let file = world.create("/f", false)?;
        let block = world.add_block("/f", file, None);
        assert!(matches!(file.origin(), InodeOrigin::Group { number: of, .. } if of == number));
        assert_eq!(block.id.pool_number(), u16::from(number));
        world.complete("/f", file, Some(Block { length: 700, ..block }));
        world.truncate("/f", 0)?;
        world.check_replay();
        world.restart_from_image();
        assert_eq!(world.ns.group(), group, "the image says whose it is");
        assert!(world.create("/g", false)? > file);
    }
    Ok(())
}

#[test]
fn the_root_groups_ids_are_those_of_a_cluster_with_one_group() -> FsResult<()> {
    let mut world = World::new(1);
    let file = world.create("/f", false)?;
    assert_eq!(file, InodeId(InodeId::ROOT.0 + 1));
    assert_eq!(world.add_block("/f", file, None).id, BlockId(BlockId::LAST_RESERVED.0 + 1));
    Ok(())
}

#[test]
fn a_group_whose_ids_are_used_up_refuses_and_takes_none_of_the_next_group() -> FsResult<()> {
    let mut world = World::of_group(1, GroupId(3));
    world.create("/f", false)?;
    skips(&mut world, InodeId::GROUP_COUNT_LIMIT, BlockId::POOL_COUNT_LIMIT);
    skips(&mut world, 1 << 40, 1 << 60);
    let said = |refused: FsResult<()>| match refused {
        Err(FsError::Io(text)) => text.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(said(world.create("/g", false).map(drop)), "There are no inode ids left");
    assert_eq!(said(world.try_add_block("/f", None).map(drop)), "There are no block ids left");
    world.restart_from_image();
    assert_eq!((world.ns.group(), world.ns.last_allocated().0.pool_number()), (GroupId(3), 2));
    Ok(())
}

#[test]
fn an_image_whose_counters_no_group_has_is_refused() {
    // The counters stand in the image as numbers: those of two groups differ in the same bytes.
    let (second, third) = (World::of_group(1, GroupId(2)), World::of_group(1, GroupId(3)));
    let (second, third) = (image_of(&second.ns.freeze()), image_of(&third.ns.freeze()));
    let differs: Vec<usize> =
        (0..second.len().min(third.len())).filter(|at| second[*at] != third[*at]).collect();
    let (first, last) = (differs[0], *differs.last().expect("they differ"));
    assert!(first < last, "both counters");
    let mut mixed = second.clone();
    mixed[first] = third[first];
    let refused = Namespace::read_image(1, &mut &mixed[..], mixed.len() as u64);
    let text = refused.err().expect("one counter is of group 3").to_string();
    assert!(text.contains("counters that no group has"), "{text}");
}
