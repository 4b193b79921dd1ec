//! Checks, before an order takes the lead from the active, that another member could go on.
//!
//! The next active claims its epoch at the coordinator. So that must answer now, to this member, and the one that is to go on
//! must be in sync, heard of, and must not say that the coordinator is out of its reach.

use super::show;
use crate::partition::Partition;
use base::MemberId;
use group::PeerStatus;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout_at};

/// How long the coordinator may take to answer a question.
const COORDINATOR_PATIENCE: Duration = Duration::from_millis(1_500);
/// A change of the view that is just being made is over then.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The member that could go on.
pub struct Successor {
    /// The member that the order had better name.
    pub to: Option<MemberId>,
    /// A sentence about what clients will notice of the change; `None` if they will notice nothing.
    pub warning: Option<String>,
}

/// A member that could go on, by what it says itself.
struct Candidate {
    member: MemberId,
    data_servers: u32,
    coordinator_away_ms: Option<u64>,
}

/// Looks for a member that could go on: `to`, or any member if none is named. The error says why none could, and that
/// nothing was done.
pub async fn look(partition: &Arc<Partition>, user: &str, to: Option<MemberId>) -> Result<Successor, String> {
    if let Err(reason) = coordinator_answers(partition).await {
        return Err(format!(
            "nobody could follow member {}: the coordinator does not answer it ({reason}). Bring ZooKeeper back first; \
             nothing was done",
            partition.member.me().member
        ));
    }
    let candidates = ask(partition, user, in_sync(partition, to)?).await;
    let able: Vec<&Candidate> = candidates.iter().filter(|one| one.coordinator_away_ms.is_none()).collect();
    // The group itself chooses among several, unless one of them could not claim.
    let Some(best) = able.iter().max_by_key(|one| one.data_servers) else {
        let reasons: Vec<String> = candidates
            .iter()
            .map(|one| {
                let seconds = one.coordinator_away_ms.unwrap_or(0).div_ceil(1_000);
                format!("member {} has not reached the coordinator for {seconds} s", one.member)
            })
            .collect();
        return Err(format!("nobody could follow: {}; nothing was done", reasons.join(", ")));
    };
    let named = to.or((able.len() < candidates.len()).then_some(best.member));
    Ok(Successor { to: named, warning: fewer_data_servers(partition, best) })
}

/// Asks whether the view is still the one in which this member leads.
async fn coordinator_answers(partition: &Arc<Partition>) -> Result<(), String> {
    let deadline = Instant::now() + COORDINATOR_PATIENCE;
    loop {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        partition.member.confirm(move |answer| drop(sender.send(answer)));
        let reason = match timeout_at(deadline, receiver).await {
            Ok(Ok(Ok(()))) => return Ok(()),
            Ok(Ok(Err(reason))) => reason,
            Ok(Err(_)) => "no answer".into(),
            Err(_) => return Err(format!("no answer within {} ms", COORDINATOR_PATIENCE.as_millis())),
        };
        if Instant::now() + AGAIN_AFTER >= deadline {
            return Err(reason);
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// The complete members that are heard of.
fn in_sync(partition: &Partition, to: Option<MemberId>) -> Result<Vec<PeerStatus>, String> {
    let status = partition.member.status();
    let is_there = |peer: &&PeerStatus| peer.is_connected && peer.state == "in sync";
    let wanted = |peer: &&PeerStatus| to.is_none_or(|to| to == peer.member);
    let found: Vec<_> = status.peers.iter().filter(is_there).filter(wanted).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let others: Vec<String> =
        status.peers.iter().map(|peer| format!("member {} is {}", peer.member, how(peer))).collect();
    let who = to.map_or("nobody else is".to_owned(), |to| format!("member {to} is not"));
    let others = if others.is_empty() { "there is no other member".to_owned() } else { others.join(", ") };
    Err(format!("{who} in sync and answering ({others}): nobody could go on; nothing was done"))
}

fn how(peer: &PeerStatus) -> &'static str {
    if peer.is_connected { peer.state } else { "not running" }
}

/// The members' answers about themselves. A member that does not answer on its port for clients counts all the same,
/// if it is heard by the group.
async fn ask(partition: &Arc<Partition>, user: &str, peers: Vec<PeerStatus>) -> Vec<Candidate> {
    let records = partition.member.records();
    let asked: Vec<_> = peers
        .into_iter()
        .map(|peer| {
            let address = records.get(&peer.member).map(|record| record.rpc_address.clone());
            let user = user.to_owned();
            tokio::spawn(async move {
                let answer = match address.filter(|address| !address.is_empty()) {
                    Some(address) => show::ask(address, user).await,
                    None => None,
                };
                Candidate {
                    member: peer.member,
                    data_servers: peer.data_servers,
                    coordinator_away_ms: answer.and_then(|answer| answer.coordinator_away_ms),
                }
            })
        })
        .collect();
    let mut candidates = Vec::new();
    for one in asked {
        candidates.extend(one.await.ok());
    }
    candidates
}

fn fewer_data_servers(partition: &Partition, to: &Candidate) -> Option<String> {
    let mine = partition.data_servers();
    (to.data_servers < mine).then(|| {
        format!(
            "member {} is reached by {} of the {mine} data servers that reach member {}: what only the others hold cannot be \
             read there before they reach it",
            to.member,
            to.data_servers,
            partition.member.me().member
        )
    })
}
