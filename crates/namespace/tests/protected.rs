//! `fs.protected.directories`: what nobody deletes or renames while there is anything in it.

mod common;

use base::{FsError, FsResult};
use common::World;
use namespace::ProtectedDirectories;

fn world(paths: &str, below_too: bool) -> FsResult<World> {
    let mut world = World::new(0);
    world.limits.protected = ProtectedDirectories::parse(paths, below_too).expect("paths");
    world.mkdirs("/data/kept/part", true)?;
    world.mkdirs("/data/keptnot", true)?;
    world.create("/data/kept/f", false)?;
    world.create("/data/keptnot/f", false)?;
    Ok(world)
}

fn denied(message: &str) -> FsError {
    FsError::AccessDenied(format!("Cannot delete/rename {message}"))
}

#[test]
fn the_superuser_cannot_delete_or_rename_one_that_holds_something() -> FsResult<()> {
    let mut world = world("/data/kept", false)?;
    let itself = denied("non-empty protected directory /data/kept");
    assert_eq!(world.delete("/data/kept", true), Err(itself.clone()));
    assert_eq!(world.rename("/data/kept", "/elsewhere"), Err(itself.clone()));
    assert_eq!(world.rename2("/data/kept", "/elsewhere", false), Err(itself));
    // Nor what holds it.
    let below = denied("non-empty protected subdirectory /data/kept");
    assert_eq!(world.delete("/data", true), Err(below.clone()));
    assert_eq!(world.rename("/data", "/elsewhere"), Err(below.clone()));
    assert_eq!(world.rename2("/data", "/elsewhere", false), Err(below));
    // A name that only begins in the same way is another one.
    assert_eq!(world.delete("/data/keptnot", true), Ok(true));
    world.check_replay();
    Ok(())
}

#[test]
fn an_empty_one_and_what_is_in_one_may_go() -> FsResult<()> {
    let mut world = world("/data/kept,/none/such", false)?;
    assert_eq!(world.rename("/data/kept/part", "/data/part"), Ok(true));
    assert_eq!(world.delete("/data/kept/f", false), Ok(true));
    assert_eq!(world.rename("/data", "/moved"), Ok(true));
    assert_eq!(world.delete("/moved/kept", false), Ok(true));
    world.check_replay();
    Ok(())
}

#[test]
fn directories_below_are_protected_as_well_if_that_is_wanted() -> FsResult<()> {
    let mut world = world("/data", true)?;
    let under = denied("subdirectory under protected subdirectory /data");
    assert_eq!(world.delete("/data/kept", true), Err(under.clone()));
    assert_eq!(world.rename2("/data/kept", "/elsewhere", false), Err(under));
    // Empty ones and files are not.
    assert_eq!(world.delete("/data/kept/part", true), Ok(true));
    assert_eq!(world.delete("/data/kept/f", false), Ok(true));
    world.check_replay();
    Ok(())
}

#[test]
fn a_delete_that_is_not_recursive_says_first_that_there_is_something() -> FsResult<()> {
    let mut world = world("/data/kept", false)?;
    assert!(matches!(world.delete("/data/kept", false), Err(FsError::NotEmpty(_))));
    Ok(())
}
