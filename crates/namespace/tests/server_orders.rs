//! Orders that take data servers out of service: an edit keeps them, images have them, and all members have them alike.

mod common;

use base::{Caller, FsError, FsResult, GroupId, Level, Timestamp};
use common::{Dice, World, bytes_of, image_of, read_image};
use namespace::{
    Edit, ImageError, Planned,
    ops::{
        order_server::{self, Request},
        raise_level,
    },
    server_orders::{Leave, ORDERS_MAX, ServerOrders, place},
};
use std::net::SocketAddr;

fn world() -> World {
    let mut world = World::new(1);
    world.run(|ns, ctx| raise_level::plan(ns, ctx, Level::SERVER_ORDERS)).unwrap();
    world
}

fn server(number: u16) -> SocketAddr {
    place([10, 0, (number >> 8) as u8, number as u8].into(), 9866)
}

fn request(number: u16, leave: Option<Leave>) -> Request {
    Request { server: server(number), named: format!("worker-{number}").into(), leave }
}

/// `None`: nothing is changed.
fn order(world: &mut World, number: u16, leave: Option<Leave>) -> FsResult<Option<Edit>> {
    let planned = world.plan(|ns, ctx| order_server::plan(ns, ctx, &request(number, leave)))?;
    let Planned::Edit(edit) = planned else { return Ok(None) };
    let edit: Edit = edit.into();
    world.apply(edit.clone());
    Ok(Some(edit))
}

fn until(ms: u64) -> Option<Leave> {
    Some(Leave::Maintenance { until: Some(Timestamp::from_ms(ms)) })
}

fn leave_of(orders: &ServerOrders, number: u16) -> Option<Leave> {
    orders.get(server(number)).map(|order| order.leave)
}

#[test]
fn an_order_is_kept_until_another_one_comes_and_outlives_a_start() -> FsResult<()> {
    let mut world = world();
    let before = world.ns.digest();
    world.caller = Caller::simple("admin", &[]);
    let edit = order(&mut world, 1, Some(Leave::Decommission))?.expect("it is new");
    assert_eq!(Edit::decode(&bytes_of(&edit)), Ok(edit.clone()));
    assert_ne!(world.ns.digest(), before, "members that differ in it are found out");
    let kept = world.ns.server_orders();
    let known = kept.get(server(1)).expect("it is kept").clone();
    assert_eq!((&*known.named, &*known.by, known.at), ("worker-1", "admin", edit.time));
    assert_eq!(order(&mut world, 1, Some(Leave::Decommission))?, None, "it is so already");

    let end = world.now.ms + 60_000;
    order(&mut world, 2, until(end))?.expect("it is new");
    order(&mut world, 2, Some(Leave::Maintenance { until: None }))?.expect("another end is another order");
    order(&mut world, 1, until(end))?.expect("one order takes the place of another");
    assert_eq!(leave_of(&kept, 1), Some(Leave::Decommission), "a copy stays as it was");
    world.restart_from_image();
    let kept = world.ns.server_orders();
    assert_eq!((kept.len(), leave_of(&kept, 1)), (2, until(end)));
    assert_eq!(leave_of(&kept, 2), Some(Leave::Maintenance { until: None }));

    order(&mut world, 1, None)?.expect("it is taken back");
    assert_eq!(order(&mut world, 1, None)?, None, "nothing is ordered for it");
    order(&mut world, 2, None)?.expect("it is taken back");
    assert!(world.ns.server_orders().is_empty());
    let image = image_of(&world.ns.freeze());
    world.restart_from_image();
    assert_eq!(image_of(&world.ns.freeze()), image);
    Ok(())
}

#[test]
fn members_that_do_not_know_of_orders_get_none() {
    let mut world = World::new(2);
    let before = Level(Level::SERVER_ORDERS.0 - 1);
    world.run(|ns, ctx| raise_level::plan(ns, ctx, before)).unwrap();
    for leave in [Some(Leave::Decommission), None] {
        match order(&mut world, 1, leave) {
            Err(FsError::Unsupported(text)) => {
                assert!(
                    text.contains("level 4") && text.contains("level 5") && text.contains("upgrade finalize"),
                    "{text}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    world.run(|ns, ctx| raise_level::plan(ns, ctx, Level::SERVER_ORDERS)).unwrap();
    assert!(order(&mut world, 1, Some(Leave::Decommission)).unwrap().is_some());
}

#[test]
fn what_cannot_hold_is_refused() {
    let mut world = world();
    let now = world.now.ms;
    assert!(
        matches!(order(&mut world, 1, until(now)), Err(FsError::InvalidArgument(_))),
        "it is over already"
    );
    assert!(matches!(order(&mut world, 1, until(u64::MAX)), Err(FsError::InvalidArgument(_))));
    for named in ["", "a\nb", &"n".repeat(256)] {
        let request = Request { named: named.into(), ..request(1, Some(Leave::Decommission)) };
        let planned = world.plan(|ns, ctx| order_server::plan(ns, ctx, &request));
        assert!(matches!(planned, Err(FsError::InvalidArgument(_))), "{named:?}");
    }
    assert!(world.ns.server_orders().is_empty());
}

#[test]
fn the_number_of_orders_is_bounded() -> FsResult<()> {
    let mut world = world();
    for number in 0..=u16::MAX {
        order(&mut world, number, Some(Leave::Decommission))?.expect("it is new");
    }
    assert_eq!(world.ns.server_orders().len(), ORDERS_MAX);
    let further = Request { server: place([10, 9, 9, 9].into(), 1), ..request(1, Some(Leave::Decommission)) };
    let planned = world.plan(|ns, ctx| order_server::plan(ns, ctx, &further));
    assert!(matches!(planned, Err(FsError::InvalidArgument(_))), "{planned:?}");
    let known = order(&mut world, 7, Some(Leave::Maintenance { until: None }))?;
    assert!(known.is_some(), "a server with an order may get another one");
    let bytes = image_of(&world.ns.freeze());
    assert_eq!(read_image(&bytes).unwrap().digest(), world.ns.digest());
    Ok(())
}

#[test]
fn an_image_with_orders_that_no_member_writes_is_refused() -> FsResult<()> {
    let mut world = world();
    order(&mut world, 1, Some(Leave::Decommission))?;
    let image = image_of(&world.ns.freeze());
    // Section, its version, one order, its length, the address.
    let section = |image: &[u8]| image.windows(4).position(|window| window == [10, 0, 0, 1]).unwrap() - 5;
    let at = section(&image);
    assert_eq!(image[at..at + 3], [15, 1, 1]);
    for (offset, byte) in [(1, 2), (2, 0), (2, 2), (3, 200), (4, 5), (9, 0), (11, 9)] {
        let mut bad = image.clone();
        bad[at + offset] = byte;
        assert!(
            matches!(read_image(&bad).map(drop), Err(ImageError::Malformed { .. } | ImageError::Read(_))),
            "byte {offset}"
        );
    }
    Ok(())
}

#[test]
fn a_group_that_joins_has_the_orders_of_the_root_group() -> FsResult<()> {
    let mut world = world();
    order(&mut world, 1, Some(Leave::Decommission))?;
    let joined = world.ns.for_joining(7, GroupId(2)).expect("nothing stands in the way");
    assert_eq!(joined.server_orders(), world.ns.server_orders());
    Ok(())
}

/// Any sequence of orders leaves what the last one for each server said, on a member that applied the journal and on one that began with an image.
#[test]
fn random_orders_hold_alike_after_replay_and_images() {
    for seed in 0..20 {
        let (mut dice, mut world) = (Dice(seed), world());
        let mut model = std::collections::BTreeMap::new();
        for _ in 0..200 {
            let number = dice.below(12) as u16;
            let leave = match dice.below(4) {
                0 => None,
                1 => Some(Leave::Decommission),
                2 => Some(Leave::Maintenance { until: None }),
                _ => until(world.now.ms + 1 + dice.below(3)),
            };
            let before = model.get(&server(number)).copied();
            let edit = order(&mut world, number, leave).unwrap();
            assert_eq!(edit.is_some(), before != leave, "seed {seed}");
            match leave {
                Some(leave) => _ = model.insert(server(number), leave),
                None => _ = model.remove(&server(number)),
            }
            if dice.below(20) == 0 {
                world.restart_from_image();
            }
            let kept = world.ns.server_orders();
            assert!(
                kept.iter().map(|(server, order)| (server, order.leave)).eq(model.clone()),
                "seed {seed}"
            );
        }
        world.ns.check_consistency().unwrap();
    }
}
