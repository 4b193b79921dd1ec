//! Waits until data servers may be switched off, and tells how far they are.

use super::{
    groups::{Groups, Unanswered},
    source,
};
use anyhow::bail;
use proto::clover::admin::{
    DataServerWishProto as Wish, GetDataServerOrdersRequestProto, GetDataServerOrdersResponseProto as Orders,
    OrderedServerProto,
};
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(500);

/// How far a server is, of all groups together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    MayBeOff,
    /// Blocks of all groups that are known to need it.
    Needed(u64),
    /// No server has registered at this place.
    NotThere,
    /// The server is dead: what it alone may have is not copied.
    Dead,
    /// A server has registered there with other groups, and not with this one, which therefore has not agreed.
    UnknownTo(u32),
    /// A group has no order for it any more.
    NotOrdered(u32),
}

/// # Errors
/// A group refuses to tell, an order is taken back meanwhile, or a server is dead: then it is not known whether it has the last replica of a block.
pub async fn until_unneeded(groups: &Groups, places: Vec<String>, wish: Wish) -> anyhow::Result<()> {
    let mut waited: Vec<(String, Option<Stage>)> = places.into_iter().map(|place| (place, None)).collect();
    let mut dead = Vec::new();
    while !waited.is_empty() {
        let Some(told) = ask(groups).await? else {
            tokio::time::sleep(PERIOD).await;
            continue;
        };
        for (place, before) in &mut waited {
            let stage = stage(place, &told, wish);
            if before.as_ref() != Some(&stage) {
                println!("{}", text(place, &stage));
            }
            if let Stage::NotOrdered(group) = stage {
                bail!("the order for {place} was taken back in group {group}");
            }
            if stage == Stage::Dead {
                dead.push(place.clone());
            }
            *before = Some(stage);
        }
        waited.retain(|(_, stage)| !matches!(stage, Some(Stage::MayBeOff | Stage::NotThere | Stage::Dead)));
        if !waited.is_empty() {
            tokio::time::sleep(PERIOD).await;
        }
    }
    match dead.is_empty() {
        true => Ok(()),
        false => bail!("dead, so that it is not known what they have: {}", dead.join(", ")),
    }
}

/// The orders of all groups. `None`: one of them did not answer, and is asked again.
async fn ask(groups: &Groups) -> anyhow::Result<Option<Vec<Orders>>> {
    let mut told = Vec::new();
    for group in &groups.0 {
        match group.ask("getDataServerOrders", &GetDataServerOrdersRequestProto {}).await {
            Ok(orders) => told.push(orders),
            Err(Unanswered::Refused(why)) => bail!("group {}: {why}", group.number),
            Err(Unanswered::Silent(why)) => {
                eprintln!("still waiting for group {}: {why}", group.number);
                return Ok(None);
            }
        }
    }
    Ok(Some(told))
}

fn stage(place: &str, told: &[Orders], wish: Wish) -> Stage {
    let (mut known, mut unknown_to): (Vec<&OrderedServerProto>, _) = (Vec::new(), None);
    for orders in told {
        match orders.servers.iter().find(|server| server.address == place) {
            Some(server) if !source::words(server).is_empty() => {
                known.push(server);
                unknown_to = unknown_to.or(server.uuid.is_none().then_some(orders.group));
            }
            _ => return Stage::NotOrdered(orders.group),
        }
    }
    if known.iter().all(|server| server.uuid.is_none()) {
        return Stage::NotThere;
    }
    match unknown_to {
        Some(group) => Stage::UnknownTo(group),
        None if known.iter().all(|server| source::may_be_off(server, wish)) => Stage::MayBeOff,
        // Groups that hear it need it no more; to the others it is dead.
        None if known.iter().all(|server| source::is_dead(server) || source::may_be_off(server, wish)) => {
            Stage::Dead
        }
        None => Stage::Needed(known.iter().map(|server| server.blocks_in_need()).sum()),
    }
}

fn text(place: &str, stage: &Stage) -> String {
    match stage {
        Stage::MayBeOff => format!("{place} may be switched off: no block needs it."),
        Stage::Needed(0) => format!("{place}: its blocks are being looked at."),
        Stage::Needed(count) => format!("{place}: {count} blocks need it until others have them."),
        Stage::NotThere => {
            format!("{place} is not there, and is not waited for: it obeys when it registers.")
        }
        Stage::Dead => source::dead_text(place),
        Stage::UnknownTo(group) => {
            format!("{place}: group {group} has not heard of the server yet, and may have blocks there.")
        }
        Stage::NotOrdered(group) => format!("{place}: group {group} has no order for it."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "10.0.0.1:9866";

    fn orders(group: u32, state: Option<&str>, need: u64) -> Orders {
        let server = OrderedServerProto {
            address: PLACE.into(),
            journal: Some(Wish::Decommission.into()),
            uuid: state.map(|_| "u".into()),
            is_alive: state.map(|_| true),
            admin_state: state.map(str::to_owned),
            blocks_in_need: state.map(|_| need),
            ..OrderedServerProto::default()
        };
        Orders { group, servers: vec![server], ..Orders::default() }
    }

    fn of(told: &[Orders]) -> Stage {
        stage(PLACE, told, Wish::Decommission)
    }

    #[test]
    fn a_server_may_be_off_when_all_groups_say_so() {
        let (done, under_way) = (Some("DECOMMISSIONED"), Some("DECOMMISSION_INPROGRESS"));
        assert_eq!(of(&[orders(1, done, 0), orders(2, done, 0)]), Stage::MayBeOff);
        assert_eq!(of(&[orders(1, done, 0), orders(2, under_way, 5)]), Stage::Needed(5));
        // Where the order has just been taken the state may not have changed yet.
        assert_eq!(of(&[orders(1, Some("NORMAL"), 0)]), Stage::Needed(0));
        assert_eq!(of(&[orders(1, None, 0), orders(2, None, 0)]), Stage::NotThere);
        // A group that does not know it has not agreed.
        assert_eq!(of(&[orders(1, done, 0), orders(2, None, 0)]), Stage::UnknownTo(2));
    }

    #[test]
    fn of_a_dead_server_it_is_not_said_that_no_block_needs_it() {
        let mut dead = orders(1, Some("DECOMMISSIONED"), 0);
        dead.servers[0].is_alive = Some(false);
        assert_eq!(of(&[dead.clone()]), Stage::Dead);
        assert!(text(PLACE, &Stage::Dead).contains("keep its disks"));
        // One of two groups hears it.
        assert_eq!(of(&[dead.clone(), orders(2, Some("DECOMMISSION_INPROGRESS"), 3)]), Stage::Needed(3));
        assert_eq!(of(&[dead, orders(2, Some("DECOMMISSIONED"), 0)]), Stage::Dead, "it is not waited for");
    }

    #[test]
    fn an_order_that_is_gone_ends_the_waiting() {
        let gone = Orders { group: 2, ..Orders::default() };
        assert_eq!(of(&[orders(1, Some("DECOMMISSIONED"), 0), gone]), Stage::NotOrdered(2));
        let mut over = orders(1, Some("NORMAL"), 0);
        (over.servers[0].journal, over.servers[0].is_over) = (Some(Wish::Maintenance.into()), Some(true));
        assert_eq!(of(&[over]), Stage::NotOrdered(1));
    }
}
