//! The entries of the log about replicas of blocks that no file has.

mod common;

use base::{BlockId, Epoch, FsResult, Sn, TxId};
use common::{World, image_of};
use namespace::{BlockChange, Edit, Namespace, NewEpoch, Planned, UnknownReplicas, ops::allow_deletions};

const STEPS: NewEpoch = NewEpoch {
    inodes: 100,
    blocks: 1_000,
    generation_stamps: 10,
    keeps_skipped: true,
    holds_deletions: false,
};
const LOSS: NewEpoch = NewEpoch { holds_deletions: true, ..STEPS };

fn starts(world: &mut World, epoch: u64, new: NewEpoch) -> UnknownReplicas {
    let at = TxId { epoch: Epoch(epoch), sn: Sn(world.ns.applied().sn.0 + 1) };
    match world.ns.start_epoch(at, new) {
        BlockChange::UnknownReplicas(unknown) => unknown,
        other => panic!("{other:?}"),
    }
}

fn allows(world: &mut World, held_since: u64) -> FsResult<bool> {
    let planned = world.plan(|ns, ctx| {
        allow_deletions::plan(ns, ctx, &allow_deletions::Request { held_since: Epoch(held_since) })
    })?;
    let Planned::Edit(edit) = planned else { return Ok(false) };
    let applied = world.apply(edit);
    assert_eq!(applied.block_changes, [BlockChange::UnknownReplicas(world.ns.unknown_replicas().clone())]);
    Ok(true)
}

#[test]
fn ids_that_a_new_epoch_skips_are_told_from_ids_that_were_given_out() -> FsResult<()> {
    let mut world = World::new(1);
    world.mkdirs("/a", true)?;
    let before = world.ns.last_allocated().0;
    let told = starts(&mut world, 2, STEPS);
    let inode = world.create("/a/f", false)?;
    let block = world.add_block("/a/f", inode, None);
    assert_eq!(block.id, BlockId(before.0 + 1_001), "the first that is not skipped");
    starts(&mut world, 3, STEPS);

    let unknown = world.ns.unknown_replicas();
    assert_eq!(told.skipped(), &unknown.skipped()[..1], "the block map was told of it before that block");
    let is_skipped = |id: u64| unknown.is_skipped(BlockId(id));
    assert!(!is_skipped(before.0) && is_skipped(before.0 + 1) && is_skipped(before.0 + 1_000));
    assert!(!is_skipped(block.id.0) && is_skipped(block.id.0 + 1));
    assert_eq!(unknown.held_since(), None);
    world.restart_from_image();
    assert_eq!(world.ns.unknown_replicas().skipped().len(), 2);
    Ok(())
}

#[test]
fn after_a_loss_deletions_are_held_back_until_somebody_has_looked() -> FsResult<()> {
    let mut world = World::new(2);
    world.mkdirs("/a", true)?;
    assert_eq!(allows(&mut world, 1), Ok(false), "nothing is held back");
    starts(&mut world, 4, LOSS);
    starts(&mut world, 5, STEPS);
    assert_eq!(world.ns.unknown_replicas().held_since(), Some(Epoch(4)), "a takeover does not end it");
    world.restart_from_image();
    assert_eq!(world.ns.unknown_replicas().held_since(), Some(Epoch(4)), "nor does a start from an image");

    // Somebody looks; before the order comes another loss holds back more.
    starts(&mut world, 6, LOSS);
    let refusal = allows(&mut world, 4).expect_err("nobody has seen what epoch 6 would delete");
    assert!(refusal.to_string().contains("epoch 6"), "{refusal}");
    let skipped = world.ns.unknown_replicas().skipped().to_vec();
    assert_eq!(allows(&mut world, 6), Ok(true));
    assert_eq!(world.ns.unknown_replicas().held_since(), None);
    assert_eq!(world.ns.unknown_replicas().skipped(), skipped, "these are never deleted for being unknown");
    world.restart_from_image();
    assert_eq!(world.ns.unknown_replicas().held_since(), None);
    Ok(())
}

/// Members that replay such an entry, and members that start from an image that an earlier program made behind it, must
/// come to the same state.
#[test]
fn the_first_entry_of_an_earlier_program_leaves_nothing_behind() {
    let mut world = World::new(3);
    let told = starts(&mut world, 2, NewEpoch { keeps_skipped: false, ..STEPS });
    assert_eq!((told.skipped().len(), told.held_since()), (0, None));
    let bytes = image_of(&world.ns.freeze());
    let section_10_is_left_out = bytes.len();
    starts(&mut world, 3, STEPS);
    assert!(image_of(&world.ns.freeze()).len() > section_10_is_left_out + 3);
}

#[test]
fn members_differ_when_they_hold_back_different_things() {
    let digest = |new: NewEpoch| {
        let mut world = World::new(4);
        starts(&mut world, 2, new);
        world.ns.digest()
    };
    assert_eq!(digest(STEPS), digest(STEPS));
    assert_ne!(digest(STEPS), digest(LOSS));
    assert_ne!(digest(STEPS), digest(NewEpoch { keeps_skipped: false, ..STEPS }));
}

#[test]
fn an_image_with_ranges_that_no_member_writes_is_refused() {
    let mut world = World::new(5);
    starts(&mut world, 2, LOSS);
    let bytes = image_of(&world.ns.freeze());
    let read = |bytes: &[u8]| Namespace::read_image(9, &mut &bytes[..], bytes.len() as u64);
    assert!(read(&bytes).is_ok());
    // Section, version, epoch, one range; then the end with its digest.
    let at = bytes.windows(4).rposition(|window| window == [10, 1, 2, 1]).expect("the section is there");
    // Another version; more ranges than there may be; a range that begins above its end.
    for (offset, byte) in [(1, 2), (3, 0x7f), (4, 0)] {
        let mut bytes = bytes.clone();
        bytes[at + offset] = byte;
        let error = read(&bytes).err().expect("refused").to_string();
        assert!(error.contains("unknown replicas"), "{error}");
    }
}

#[test]
fn the_order_reads_back_from_its_bytes() {
    let bytes = {
        let mut world = World::new(6);
        starts(&mut world, 300, LOSS);
        assert_eq!(allows(&mut world, 300), Ok(true));
        world.journal.pop().expect("one edit")
    };
    for length in 0..bytes.len() {
        assert!(Edit::decode(&bytes[..length]).is_err(), "cut to {length}");
    }
}
