//! Gives an order to all groups, after a look at what it means.

use super::{
    groups::{Groups, Unanswered},
    source, time,
};
use anyhow::bail;
use proto::clover::admin::{
    DataServerWishProto as Wish, OrderDataServerRequestProto as Request,
    OrderDataServerResponseProto as Answer,
};

#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub wish: Wish,
    pub for_ms: Option<u64>,
    pub until_ms: Option<u64>,
    pub force: bool,
}

impl Order {
    fn request(self, server: &str, is_expected: bool) -> Request {
        Request {
            server: server.to_owned(),
            wish: self.wish.into(),
            for_ms: self.for_ms,
            until_ms: self.until_ms,
            is_expected: Some(is_expected),
            ..Request::default()
        }
    }
}

/// A data server that is meant, with what each group says of it.
struct Seen<'a> {
    named: &'a str,
    place: String,
    by: Vec<(u32, Result<Answer, Unanswered>)>,
}

/// Gives the order for each of these servers. Returns their places.
///
/// # Errors
/// Nothing was ordered, or a group has not taken the order. The text says which.
pub async fn give(
    groups: &Groups,
    named: &[String],
    is_expected: bool,
    order: Order,
) -> anyhow::Result<Vec<String>> {
    let mut seen = Vec::new();
    for name in named {
        match look(groups, name, is_expected, order).await {
            Ok(found) => seen.push(found),
            Err(error) => bail!("{error}. Nothing was done"),
        }
    }
    if let Some(obstacle) = obstacle(&seen, order) {
        bail!("{obstacle} Nothing was done; `--force` gives the order all the same");
    }
    let mut lacking = Vec::new();
    for server in &seen {
        println!("{}", what_it_is(server));
        lacking.extend(carry_out(groups, server, order).await);
    }
    if let Some(left) = seen.iter().filter_map(others_in_service).min() {
        let replicas = seen.iter().flat_map(answers).map(Answer::default_replication).max().unwrap_or(0);
        let chosen =
            seen.iter().filter(|server| counts_as_in_service(server)).count().saturating_sub(1) as u32;
        if order.wish != Wish::InService {
            println!(
                "{} data servers stay in service. A block has {replicas} replicas where nothing else is wanted.",
                left.saturating_sub(chosen)
            );
        }
    }
    if !lacking.is_empty() {
        bail!("{}. Give the command again once they answer: it completes the order", lacking.join("; "));
    }
    Ok(seen.into_iter().map(|server| server.place).collect())
}

/// Finds the server, and asks each group how it stands there. The first group that knows the server tells the others its place.
async fn look<'a>(
    groups: &Groups,
    named: &'a str,
    is_expected: bool,
    order: Order,
) -> anyhow::Result<Seen<'a>> {
    let mut place = None;
    let (mut refusals, mut silent) = (Vec::new(), Vec::new());
    for is_expected in [false, true].into_iter().take(1 + usize::from(is_expected)) {
        refusals.clear();
        silent.clear();
        for group in &groups.0 {
            match group.ask::<_, Answer>("orderDataServer", &order.request(named, is_expected)).await {
                Ok(answer) => {
                    place = Some(answer.server.address);
                    break;
                }
                Err(Unanswered::Refused(why)) => refusals.push(why),
                Err(Unanswered::Silent(why)) => silent.push(why),
            }
        }
        if place.is_some() {
            break;
        }
    }
    let Some(place) = place else {
        refusals.extend(silent);
        bail!("{}", refusals.join("; "));
    };
    let mut by = Vec::new();
    for group in &groups.0 {
        let request = Request { place: Some(place.clone()), ..order.request(named, true) };
        match group.ask("orderDataServer", &request).await {
            // A group that will not take the order should say so before another one has.
            Err(Unanswered::Refused(why)) => bail!("group {}: {why}", group.number),
            told => by.push((group.number, told)),
        }
    }
    Ok(Seen { named, place, by })
}

fn answers<'a>(server: &'a Seen<'_>) -> impl Iterator<Item = &'a Answer> {
    server.by.iter().filter_map(|(_, told)| told.as_ref().ok())
}

/// The fewest that a group sees in service beside this one.
fn others_in_service(server: &Seen<'_>) -> Option<u32> {
    answers(server).map(Answer::others_in_service).min()
}

fn counts_as_in_service(server: &Seen<'_>) -> bool {
    answers(server).any(|answer| answer.server.is_alive() && answer.server.admin_state() == "NORMAL")
}

/// Why the servers could not leave for a long time, or ever.
fn obstacle(seen: &[Seen<'_>], order: Order) -> Option<String> {
    if order.force || order.wish == Wish::InService {
        return None;
    }
    let leaving = seen.iter().filter(|server| counts_as_in_service(server));
    // A group's count leaves out the server that it was asked about, unless that server is out of service already.
    let left = leaving
        .clone()
        .filter_map(others_in_service)
        .min()
        .map(|others| others.saturating_sub((leaving.count() as u32).saturating_sub(1)))?;
    let wanted = seen.iter().flat_map(answers).map(|answer| match order.wish {
        Wish::Decommission => answer.default_replication(),
        _ => answer.maintenance_replication(),
    });
    let wanted = wanted.max().unwrap_or(0);
    (left < wanted).then(|| {
        format!(
            "{left} data servers would stay in service, and blocks want {wanted} replicas there: the servers would be needed until others are added."
        )
    })
}

/// The server as the groups know it before the order, in a line.
fn what_it_is(server: &Seen<'_>) -> String {
    let known: Vec<_> = answers(server).filter(|answer| answer.server.uuid.is_some()).collect();
    let Some(first) = known.first() else {
        return format!("{}: no data server has registered there yet.", server.place);
    };
    let blocks: u64 = known.iter().map(|answer| answer.server.blocks()).sum();
    let life = if known.iter().any(|answer| answer.server.is_alive()) { "live" } else { "dead" };
    format!(
        "{} ({}): {life}, {}, has {blocks} blocks.",
        server.place,
        first.server.host_name(),
        source::state(&first.server)
    )
}

/// Gives the order to each group. Returns why groups have not taken it.
async fn carry_out(groups: &Groups, server: &Seen<'_>, order: Order) -> Vec<String> {
    let (mut lacking, mut done) = (Vec::new(), Vec::new());
    for group in &groups.0 {
        let request = Request {
            place: Some(server.place.clone()),
            is_confirmed: Some(true),
            ..order.request(server.named, true)
        };
        match group.ask::<_, Answer>("orderDataServer", &request).await {
            Ok(answer) => done.push(answer),
            Err(Unanswered::Refused(why) | Unanswered::Silent(why)) => {
                lacking.push(format!(
                    "group {} has not taken the order for {}: {why}",
                    group.number, server.place
                ));
            }
        }
    }
    if !done.is_empty() {
        println!("  {}", what_was_done(&done, order.wish));
    }
    for answer in done.iter().filter(|answer| answer.server.files.is_some()) {
        println!(
            "  The files of group {}'s active order it out of service as well ({}): see data_servers_file and excluded_data_servers_file.",
            answer.group,
            source::word(answer.server.files())
        );
    }
    lacking
}

fn what_was_done(done: &[Answer], wish: Wish) -> String {
    let is_changed = done.iter().any(Answer::is_changed);
    let is_dead = !done.iter().any(|answer| answer.server.is_alive());
    let until = done.iter().filter_map(|answer| answer.server.until_ms).max();
    let until = until
        .map_or("`clover admin recommission` ends it".to_owned(), |ms| format!("until {}", time::shown(ms)));
    match (wish, is_changed) {
        (Wish::InService, true) => "The order is taken back: it is in service again, and is given new blocks.".to_owned(),
        (Wish::InService, false) => "Nothing was ordered for it; nothing has changed.".to_owned(),
        (Wish::Decommission, false) => "It was ordered out of service for good before; nothing has changed.".to_owned(),
        (Wish::Maintenance, false) => format!("It was ordered into maintenance before ({until}); nothing has changed."),
        (Wish::Decommission, true) if is_dead => {
            "It is ordered out of service for good. It is not there: its blocks are copied from others that have them.".to_owned()
        }
        (Wish::Decommission, true) => {
            "It is ordered out of service for good. Its blocks are copied to others: leave it on until `clover admin orders` says that it may be \
             switched off."
                .to_owned()
        }
        (Wish::Maintenance, true) => format!(
            "It is ordered into maintenance ({until}). Leave it on until `clover admin orders` says that it may be switched off."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::clover::admin::OrderedServerProto;

    fn answer(group: u32, state: &str, others: u32) -> Answer {
        Answer {
            group,
            server: OrderedServerProto {
                address: "10.0.0.1:9866".into(),
                uuid: Some("u".into()),
                host_name: Some("worker1".into()),
                is_alive: Some(true),
                admin_state: Some(state.into()),
                blocks: Some(7),
                ..OrderedServerProto::default()
            },
            others_in_service: Some(others),
            default_replication: Some(3),
            maintenance_replication: Some(1),
            ..Answer::default()
        }
    }

    fn seen(by: Vec<Answer>) -> Seen<'static> {
        let by = by.into_iter().map(|answer| (answer.group, Ok(answer))).collect();
        Seen { named: "worker1", place: "10.0.0.1:9866".into(), by }
    }

    fn order(wish: Wish) -> Order {
        Order { wish, for_ms: None, until_ms: None, force: false }
    }

    #[test]
    fn too_few_servers_that_stay_are_an_obstacle() {
        let one = |others| vec![seen(vec![answer(1, "NORMAL", others)])];
        assert_eq!(obstacle(&one(3), order(Wish::Decommission)), None);
        let said = obstacle(&one(2), order(Wish::Decommission)).unwrap();
        assert!(said.contains("2 data servers would stay") && said.contains("3 replicas"), "{said}");
        assert_eq!(obstacle(&one(1), order(Wish::Maintenance)), None);
        assert!(obstacle(&one(0), order(Wish::Maintenance)).is_some());
        assert_eq!(obstacle(&one(0), order(Wish::InService)), None);
        assert_eq!(obstacle(&one(0), Order { force: true, ..order(Wish::Decommission) }), None);
    }

    #[test]
    fn servers_that_leave_together_do_not_count_for_each_other() {
        let two = || vec![seen(vec![answer(1, "NORMAL", 4)]), seen(vec![answer(1, "NORMAL", 4)])];
        assert_eq!(obstacle(&two(), order(Wish::Decommission)), None);
        let mut three = two();
        three.push(seen(vec![answer(1, "NORMAL", 4)]));
        assert!(obstacle(&three, order(Wish::Decommission)).is_some());
        // One that is out of service already takes nothing away.
        three[2] = seen(vec![answer(1, "DECOMMISSIONED", 4)]);
        assert_eq!(obstacle(&three, order(Wish::Decommission)), None);
    }

    #[test]
    fn what_a_server_has_is_told_of_all_groups() {
        let server = seen(vec![answer(1, "NORMAL", 3), answer(2, "NORMAL", 3)]);
        assert_eq!(what_it_is(&server), "10.0.0.1:9866 (worker1): live, in service, has 14 blocks.");
        assert!(what_it_is(&seen(Vec::new())).contains("no data server has registered there yet"));
    }
}
