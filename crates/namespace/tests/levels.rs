//! The level that a group is at: raised by an edit, kept in images, never lowered, and refused where it is not known.

mod common;

use base::{FsResult, Level, TxId};
use common::{World, bytes_of, image_of, read_image};
use namespace::{Edit, ImageError, Planned, ops::raise_level};

fn raise(world: &mut World, level: Level) -> FsResult<Option<Edit>> {
    let planned = world.plan(|ns, ctx| raise_level::plan(ns, ctx, level))?;
    let Planned::Edit(edit) = planned else { return Ok(None) };
    let edit: Edit = edit.into();
    world.apply(edit.clone());
    Ok(Some(edit))
}

#[test]
fn a_level_is_raised_once_and_is_the_same_after_a_start_from_an_image() -> FsResult<()> {
    let mut world = World::new(1);
    world.mkdirs("/a", true)?;
    let (digest, image) = (world.ns.digest(), image_of(&world.ns.freeze()));
    assert_eq!(world.ns.group_level().level, Level::FIRST);
    let Some(edit) = raise(&mut world, Level::NEWEST)? else { panic!("it is raised") };
    let raised = world.ns.group_level().clone();
    assert_eq!((raised.level, raised.since), (Level::NEWEST, world.ns.applied()));
    assert_eq!((Some(&*raised.release), raised.at), (Level::NEWEST.release(), edit.time));
    assert_ne!(world.ns.digest(), digest, "members that differ in it are found out");
    assert_eq!(Edit::decode(&bytes_of(&edit)), Ok(edit));

    assert_eq!(raise(&mut world, Level::NEWEST)?, None, "it is so already");
    assert_eq!(raise(&mut world, Level::FIRST)?, None, "levels never fall");
    assert!(raise(&mut world, Level(Level::NEWEST.0 + 1)).is_err(), "this release does not know it");

    world.restart_from_image();
    assert_eq!(world.ns.group_level(), &raised);
    let at_first = read_image(&image).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(at_first.group_level().level, Level::FIRST, "an image of before says nothing of levels");
    Ok(())
}

#[test]
fn a_group_may_begin_at_a_level() {
    let world = World::new(2);
    let first = image_of(&world.ns.freeze());
    let born = world.ns.beginning_at(Level::NEWEST);
    let image = image_of(&born.freeze());
    let ns = read_image(&image).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((ns.group_level().level, ns.group_level().since), (Level::NEWEST, TxId::default()));
    assert_eq!(ns.digest(), born.digest());
    assert!(image.len() > first.len());
}

#[test]
fn a_level_of_a_later_release_is_refused_with_that_release() {
    let world = World::new(3);
    let image = image_of(&world.ns.beginning_at(Level::NEWEST).freeze());
    let section = [&[11, 1, Level::NEWEST.0 as u8, 5][..], b"0.2.0"].concat();
    let at = image.windows(section.len()).position(|window| window == section);
    let at = at.unwrap_or_else(|| panic!("the section is there"));
    let mut later = image.clone();
    later[at + 2] = 77;
    later[at + 4..at + 9].copy_from_slice(b"8.1.0");
    match read_image(&later).map(drop) {
        Err(ImageError::Level(unknown)) => {
            assert_eq!((unknown.level, &*unknown.release), (Level(77), "8.1.0"));
        }
        other => panic!("{other:?}"),
    }
    for (offset, byte) in [(1, 2), (2, 1), (3, 33), (4, b'\n')] {
        let mut bad = image.clone();
        bad[at + offset] = byte;
        assert!(matches!(read_image(&bad).map(drop), Err(ImageError::Malformed { .. })), "byte {offset}");
    }
}

#[test]
fn an_edit_of_a_later_release_reads_so_that_its_level_can_be_named() -> FsResult<()> {
    let mut world = World::new(4);
    let Some(edit) = raise(&mut world, Level::NEWEST)? else { panic!("it is raised") };
    let mut bytes = bytes_of(&edit);
    let at = bytes.len() - "0.2.0".len() - 2;
    bytes[at] = 9;
    assert!(Edit::decode(&bytes).is_ok());
    bytes[at] = 1;
    assert!(Edit::decode(&bytes).is_err(), "nobody raises anything to the first level");
    Ok(())
}
