//! Checks of the cluster: who answers, by which names, with which clocks and releases, and the verdict.

use super::{
    check::{Check, Outcome},
    page,
};
use crate::{admin::servers::Servers, status::ask};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::{net::lookup_host, time::timeout};
use verdict::{Apart, CLOCKS_APART_MS, Clock, Facts, Judged, Presence, Severity, Verdict, furthest, judge};

/// The clocks of at most so many data servers are read.
const CLOCKS_MAX: usize = 200;
const NAME_PATIENCE: Duration = Duration::from_secs(5);

/// The facts about a cluster, the verdict on them, and the checks made from both.
pub struct Seen {
    pub facts: Facts,
    pub judged: Judged,
    pub checks: Vec<Check>,
}

pub async fn look(servers: &Servers) -> Seen {
    let facts = ask::everybody(servers).await;
    let judged = judge(&facts);
    let mut checks = names(servers.addresses()).await;
    checks.push(answers(&facts));
    checks.extend(clocks(&facts).await);
    checks.extend(releases(&facts));
    checks.push(verdict(&judged));
    Seen { facts, judged, checks }
}

/// The HTTP addresses of all servers that are known, metadata servers first, each once.
pub fn pages(facts: &Facts) -> Vec<String> {
    let members = facts.groups.iter().flat_map(|group| &group.members);
    let members: Vec<String> = members.filter_map(|member| member.http_address.clone()).collect();
    let mut data: Vec<String> = facts
        .groups
        .iter()
        .flat_map(|group| &group.data)
        .flat_map(|data| &data.servers)
        .filter(|server| server.is_alive)
        .filter_map(|server| server.http_address.clone())
        .collect();
    data.sort();
    data.dedup();
    members.into_iter().chain(data).collect()
}

async fn names(addresses: &[String]) -> Vec<Check> {
    let mut checks = Vec::new();
    for address in addresses {
        let found = match timeout(NAME_PATIENCE, lookup_host(address)).await {
            Ok(Ok(mut all)) => all.next().map(|one| one.ip().to_string()).ok_or("no address".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s", NAME_PATIENCE.as_secs())),
        };
        let is_good = found.is_ok();
        checks.push(
            Check::new(format!("name {address}"), "leads to an address", found.unwrap_or_else(|why| why))
                .unless(
                    is_good,
                    Outcome::Failed,
                    "Name it in DNS or in /etc/hosts, or correct the configuration of this client.",
                ),
        );
    }
    checks
}

fn answers(facts: &Facts) -> Check {
    let members: Vec<_> = facts.groups.iter().flat_map(|group| &group.members).collect();
    let there = members.iter().filter(|member| member.presence == Presence::Answers).count();
    let silent: Vec<String> =
        facts.unanswered.iter().map(|one| format!("{} ({})", one.address, one.reason)).collect();
    let mut found = format!("{there} of {}", members.len().max(facts.unanswered.len()));
    if !silent.is_empty() {
        found += &format!("; not {}", silent.join(", "));
    }
    let outcome = if there == 0 { Outcome::Failed } else { Outcome::Warning };
    Check::new("metadata servers", "all answer", found).unless(
        there == members.len() && there > 0,
        outcome,
        "Start them; if they run, look at the firewall, and at `rpc_address` of their files.",
    )
}

/// Of the metadata servers by their protocol, of the data servers by their pages.
async fn clocks(facts: &Facts) -> Option<Check> {
    let mut clocks: Vec<(String, Clock)> = Vec::new();
    for group in &facts.groups {
        let told = group
            .members
            .iter()
            .filter_map(|member| Some((format!("member {}", member.number), member.clock?)));
        clocks.extend(told);
    }
    let members: Vec<String> = facts
        .groups
        .iter()
        .flat_map(|group| group.members.iter().filter_map(|member| member.http_address.clone()))
        .collect();
    let data = pages(facts).into_iter().filter(|address| !members.contains(address)).take(CLOCKS_MAX);
    let asked: Vec<_> = data
        .map(|address| {
            tokio::spawn(async move {
                let page = page::ask(&address, "/health").await.ok()?;
                Some((address, page.clock?))
            })
        })
        .collect();
    for one in asked {
        clocks.extend(one.await.expect("a question does not panic"));
    }
    clock_check(clocks)
}

fn clock_check(clocks: Vec<(String, Clock)>) -> Option<Check> {
    let Apart { behind, ahead, apart_ms, surely_ms } = furthest(&clocks)?;
    let found = match surely_ms {
        0 => format!("{} clocks, no difference that could be measured", clocks.len()),
        _ => format!("{ahead} is {apart_ms} ms ahead of {behind}"),
    };
    let check = Check::new("clocks of the servers", format!("{CLOCKS_APART_MS} ms apart or less"), found);
    Some(check.unless(
        surely_ms <= CLOCKS_APART_MS,
        Outcome::Warning,
        "Have chrony or another NTP client keep the clocks of all servers.",
    ))
}

fn releases(facts: &Facts) -> Option<Check> {
    // Each group tells of all data servers.
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for group in &facts.groups {
        let members = group.members.iter().filter_map(|member| {
            Some((member.release.as_deref()?, member.address.as_deref().unwrap_or_default()))
        });
        let data = group.data.iter().flat_map(|data| &data.servers).filter(|server| server.is_alive);
        seen.extend(members);
        seen.extend(data.filter_map(|server| Some((server.release.as_deref()?, &*server.address))));
    }
    let mut releases: BTreeMap<&str, usize> = BTreeMap::new();
    seen.into_iter().for_each(|(release, _)| *releases.entry(release).or_default() += 1);
    let told: Vec<String> = releases.iter().map(|(release, count)| format!("{release} on {count}")).collect();
    let check = Check::new("releases", "one", told.join(", "));
    (!told.is_empty()).then(|| {
        check.unless(
            told.len() == 1,
            Outcome::Warning,
            "Bring the upgrade to its end: `clover admin upgrade`.",
        )
    })
}

fn verdict(judged: &Judged) -> Check {
    let mut codes: Vec<&str> = judged.conditions.iter().map(|one| one.code.as_str()).collect();
    codes.dedup();
    let found = match codes.is_empty() {
        true => "healthy".to_owned(),
        false => format!("{}: {}", judged.verdict, codes.join(", ")),
    };
    let is_error = judged.conditions.iter().any(|one| one.severity == Severity::Error);
    let outcome = if is_error { Outcome::Failed } else { Outcome::Warning };
    Check::new("verdict on the cluster", "healthy", found).unless(
        judged.verdict == Verdict::Healthy,
        outcome,
        "`clover status` says what each means and what to do.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_with_each_other_and_with_their_errors() {
        let clock = |ahead_ms, uncertain_ms| Clock { ahead_ms, uncertain_ms };
        let check = |one, other| clock_check(vec![("a".into(), one), ("b".into(), other)]).unwrap();
        assert_eq!(check(clock(60_000, 1), clock(60_300, 600)).outcome, Outcome::Good);
        let apart = check(clock(0, 10), clock(5_000, 500));
        assert_eq!((apart.outcome, &*apart.found), (Outcome::Warning, "b is 5000 ms ahead of a"));
        assert!(clock_check(Vec::new()).is_none());
    }
}
