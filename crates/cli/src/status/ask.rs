//! The facts of a cluster, from all its metadata servers at the same time.

use crate::admin::servers::{Servers, reason};
use jiff::Timestamp;
use proto::clover::admin::{
    GetFactsRequestProto, GetFactsResponseProto, GetGroupRequestProto, NamespaceGroupProto,
};
use rpc::CallError;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};
use verdict::{Clock, Facts, Group, Member, Presence, Unanswered, told};

/// A server answers from memory.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answer of a server, with its clock; or why there is none.
type Answer = Result<(GetFactsResponseProto, Option<Clock>), String>;

/// Asks the servers that the configuration names, and those that they know of.
pub async fn everybody(servers: &Servers) -> Facts {
    let named: BTreeSet<String> = servers.addresses().iter().cloned().collect();
    let (mut answers, groups) = tokio::join!(each(servers.user(), named), servers.groups());
    let groups = groups.map(|known| known.groups).unwrap_or_default();
    // A member may be known by another name than the one it was asked by.
    let answered: BTreeSet<(u32, u32)> =
        answers.values().flatten().map(|(facts, _)| (facts.group.group, facts.group.answered_by)).collect();
    let seen = answers.values().flatten().flat_map(|(facts, _)| {
        facts.group.members.iter().map(|member| (facts.group.group, member.member, &member.rpc_address))
    });
    let listed = groups.iter().flat_map(|group| {
        group.members.iter().map(|member| (group.group, member.member, &member.rpc_address))
    });
    let further: BTreeSet<String> = seen
        .chain(listed)
        .filter(|(group, member, _)| !answered.contains(&(*group, *member)))
        .filter_map(|(_, _, address)| address.clone().filter(|address| !address.is_empty()))
        .filter(|address| !answers.contains_key(address))
        .collect();
    answers.extend(each(servers.user(), further).await);
    facts(&answers, &groups)
}

async fn each(user: &str, addresses: BTreeSet<String>) -> BTreeMap<String, Answer> {
    let asked: Vec<_> = addresses
        .into_iter()
        .map(|address| {
            let user = user.to_owned();
            tokio::spawn(async move { (address.clone(), ask(user, &address).await) })
        })
        .collect();
    let mut answers = BTreeMap::new();
    for one in asked {
        let (address, answer) = one.await.expect("a question does not panic");
        answers.insert(address, answer);
    }
    answers
}

async fn ask(user: String, address: &str) -> Answer {
    let one = Servers::of(user, Vec::new());
    let begun = Instant::now();
    let facts: Result<GetFactsResponseProto, CallError> =
        one.ask(address, "getFacts", &GetFactsRequestProto {}, PATIENCE).await;
    match facts {
        Ok(facts) => {
            let ours_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
            let call_ms = begun.elapsed().as_millis() as u64;
            let clock = facts.group.now_ms.map(|now_ms| Clock::read_during(call_ms, now_ms, ours_ms));
            Ok((facts, clock))
        }
        // A server that waits for a person, and one of an older release, tell of the group only.
        Err(CallError::Remote { .. }) => {
            let request = GetGroupRequestProto { is_local: Some(true) };
            match one.ask(address, "getGroup", &request, PATIENCE).await {
                Ok(group) => Ok((GetFactsResponseProto { group, ..GetFactsResponseProto::default() }, None)),
                Err(error) => Err(reason(&error)),
            }
        }
        Err(error) => Err(reason(&error)),
    }
}

fn facts(answers: &BTreeMap<String, Answer>, listed: &[NamespaceGroupProto]) -> Facts {
    let silent: Vec<(String, String)> = answers
        .iter()
        .filter_map(|(address, answer)| Some((address.clone(), answer.as_ref().err()?.clone())))
        .collect();
    let mut of_groups: BTreeMap<u32, Vec<told::Answer<'_>>> = BTreeMap::new();
    for (facts, clock) in answers.values().flatten() {
        let answer = told::Answer { facts, clock: *clock };
        of_groups.entry(facts.group.group).or_default().push(answer);
    }
    let mut groups: Vec<Group> =
        of_groups.values().filter_map(|answers| told::group(answers, &silent)).collect();
    let away = listed.iter().filter(|group| group.is_made && !of_groups.contains_key(&group.group));
    groups.extend(away.map(|group| a_silent_group(group, &silent)));
    groups.sort_by_key(|group| group.number);
    let unanswered = silent.into_iter().map(|(address, reason)| Unanswered { address, reason }).collect();
    Facts { unanswered, groups }
}

/// A group that others know, and of which no member answers.
fn a_silent_group(group: &NamespaceGroupProto, silent: &[(String, String)]) -> Group {
    let member = |known: &proto::clover::admin::NamespaceGroupMemberProto| {
        let reason = silent.iter().find(|(address, _)| Some(address) == known.rpc_address.as_ref());
        Member {
            number: known.member,
            address: known.rpc_address.clone(),
            presence: reason.map_or(Presence::Unknown, |(_, reason)| Presence::Silent(Some(reason.clone()))),
            is_in_sync: known.is_in_sync(),
            ..Member::default()
        }
    };
    Group { number: group.group, members: group.members.iter().map(member).collect(), ..Group::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::clover::admin::NamespaceGroupMemberProto;
    use verdict::{Code, Severity, judge};

    #[test]
    fn a_group_of_which_nobody_answers_has_no_active() {
        let member = NamespaceGroupMemberProto {
            member: 4,
            rpc_address: Some("m4:8020".into()),
            is_in_sync: Some(true),
        };
        let listed = NamespaceGroupProto {
            group: 2,
            is_made: true,
            members: vec![member],
            ..NamespaceGroupProto::default()
        };
        let mut answers: BTreeMap<String, Answer> =
            [("m4:8020".to_owned(), Err("connection refused".to_owned()))].into();
        // Where no server of any group answers, that is all there is to say.
        let judged = judge(&facts(&answers, std::slice::from_ref(&listed)));
        assert!(judged.has(Code::NoAnswer, Severity::Error) && judged.conditions.len() == 1, "{judged:?}");

        let mut root = GetFactsResponseProto::default();
        root.group.group = 1;
        root.group.answered_by = 1;
        root.group.members = vec![proto::clover::admin::MemberProto {
            member: 1,
            rpc_address: Some("m1:8020".into()),
            role: proto::clover::admin::RoleProto::Active as i32,
            ..Default::default()
        }];
        answers.insert("m1:8020".into(), Ok((root, None)));
        let judged = judge(&facts(&answers, &[listed]));
        let told: Vec<_> = judged.conditions.iter().map(|one| (one.code, &one.groups[..])).collect();
        assert!(told.contains(&(Code::NoActive, &[2][..])), "{told:?}");
        assert!(told.contains(&(Code::GroupMemberAway, &[2][..])), "{told:?}");
    }
}
