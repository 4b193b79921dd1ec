//! The group as the member that is asked sees it, and as the others say themselves.

use crate::{core::Core, ended::Ended, partition::Partition, peers::Release};
use base::{GroupId, GroupView, LogPoint, MemberId, MemberStore, Sn, TxId};
use coord::{MemberRecord, Versioned};
use group::{Role, Status};
use proto::{
    clover::{admin as p, forward::ForwardResponseProto},
    protocol,
};
use rpc::{Call, Client, ClientOptions, Replier};
use serving::admission;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// How long the active may take to answer a member that asks for somebody else.
const ACTIVE_PATIENCE: Duration = Duration::from_millis(1_500);
/// How long each of the others may take to say what it is.
const OTHERS_PATIENCE: Duration = Duration::from_millis(400);

pub fn get_group(core: &Arc<Core>, call: Call, is_local: bool, reply: Replier) {
    let Some(runtime) = core.partition.forwarder.runtime().filter(|_| !is_local) else {
        return reply.ok(&of_this_member(&core.partition));
    };
    let core = core.clone();
    drop(runtime.spawn(async move {
        let mut answer = match of_the_active(&core.partition, &call).await {
            Ok(answer) => return reply.ok(&answer),
            Err(None) => of_this_member(&core.partition),
            Err(Some(reason)) => p::GetGroupResponseProto {
                active_unreachable: Some(reason),
                ..of_this_member(&core.partition)
            },
        };
        ask_the_others(&core.partition, &call, &mut answer).await;
        reply.ok(&answer);
    }));
}

/// The active's answer. `Err(None)` if this member is the active, or is asked in its stead.
async fn of_the_active(
    partition: &Partition,
    call: &Call,
) -> Result<p::GetGroupResponseProto, Option<String>> {
    if partition.member.is_serving() || call.is_forwarded {
        return Err(None);
    }
    let ForwardResponseProto { response, refusal, is_elsewhere, .. } =
        partition.forwarder.ask_active(call, ACTIVE_PATIENCE).await.map_err(Some)?;
    if is_elsewhere == Some(true) {
        return Err(Some("it does not serve (yet)".into()));
    }
    if let Some(refusal) = refusal {
        return Err(Some(refusal.message));
    }
    proto::decode(response.unwrap_or_default()).map_err(|error| Some(error.to_string()))
}

/// Each member knows itself best: its role, its log, the takeovers that it had nobody to tell of.
async fn ask_the_others(partition: &Arc<Partition>, call: &Call, answer: &mut p::GetGroupResponseProto) {
    let (me, user) = (partition.member.me().member, &call.caller.user);
    ask_each(me, partition.member.records().into_values(), user, answer, |theirs| {
        partition.chronicle.learn(theirs, partition.member.standing().epoch);
    })
    .await;
}

async fn ask_each(
    me: MemberId,
    records: impl Iterator<Item = MemberRecord>,
    user: &str,
    answer: &mut p::GetGroupResponseProto,
    mut learn: impl FnMut(&[p::TakeoverProto]),
) {
    let asked: Vec<_> = records
        .filter(|record| record.life.store.member != me && !record.rpc_address.is_empty())
        .map(|record| (record.life.store.member, tokio::spawn(ask(record.rpc_address, user.to_owned()))))
        .collect();
    // A member that is listed and has never told its address cannot be asked.
    answer.silent = answer.members.iter().map(|seen| seen.member).filter(|member| *member != me.0).collect();
    for (member, asked) in asked {
        let Some(theirs) = asked.await.ok().flatten() else { continue };
        answer.silent.retain(|silent| *silent != member.0);
        answer.unclean_elections =
            Some(answer.unclean_elections.unwrap_or(0) + theirs.unclean_elections.unwrap_or(0));
        learn(&theirs.takeovers);
        answer.takeovers.extend(theirs.takeovers);
        let Some(own) = theirs.members.into_iter().find(|one| one.member == member.0) else { continue };
        if let Some(seen) = answer.members.iter_mut().find(|one| one.member == member.0) {
            merge(seen, own, answer.committed);
        }
    }
    // An epoch has one active, so a second note of it is the same.
    answer.takeovers.sort_by_key(|takeover| takeover.epoch);
    answer.takeovers.dedup_by_key(|takeover| takeover.epoch);
}

/// The facts that a member knows while it waits to take part.
pub struct Standstill {
    pub member: MemberId,
    pub cluster_id: String,
    pub group: GroupId,
    pub view: Versioned,
    pub records: Vec<MemberRecord>,
    pub end: Option<LogPoint>,
    pub reason: String,
    pub disk_failed: bool,
}

impl Standstill {
    /// Only what this member knows.
    pub fn answer(&self) -> p::GetGroupResponseProto {
        let view = &self.view.view;
        let is_in = |stores: &[MemberStore], member| stores.iter().any(|store| store.member == member);
        let members = view.members.iter().map(|member| {
            let record = self.records.iter().find(|record| record.life.store.member == *member);
            let seen = p::MemberProto {
                is_in_sync: Some(is_in(&view.in_sync, *member)),
                is_eligible: Some(is_in(&view.in_sync, *member) || is_in(&view.exiles, *member)),
                ..blank(*member, p::RoleProto::Unknown, record)
            };
            if *member != self.member {
                return seen;
            }
            p::MemberProto {
                role: p::RoleProto::Stopped as i32,
                end: self.end.map(place),
                reason: Some(self.reason.clone()),
                disk_failed: self.disk_failed.then_some(true),
                ..with_release(&Release::ours(), seen)
            }
        });
        p::GetGroupResponseProto {
            group: self.group.0,
            cluster_id: self.cluster_id.clone(),
            answered_by: self.member.0,
            view: Some(view_proto(view, self.view.version.0)),
            members: members.collect(),
            is_writable: Some(false),
            ..p::GetGroupResponseProto::default()
        }
    }
}

/// The group as a member sees it that waits, and as the others say themselves.
pub async fn of_a_standstill(standstill: Standstill, user: &str) -> p::GetGroupResponseProto {
    let mut answer = standstill.answer();
    let records = standstill.records.into_iter();
    ask_each(standstill.member, records, user, &mut answer, |_| ()).await;
    answer
}

/// Replaces the answering member's view of another member by that member's own answer, except for facts that the
/// other cannot know.
fn merge(seen: &mut p::MemberProto, own: p::MemberProto, committed: Option<u64>) {
    let lag = committed.zip(own.end).map(|(committed, end)| committed.saturating_sub(end.sn));
    *seen = p::MemberProto {
        heard_ms_ago: seen.heard_ms_ago.or(Some(0)),
        is_connected: seen.is_connected,
        matched: seen.matched,
        is_in_sync: seen.is_in_sync,
        is_eligible: seen.is_eligible,
        // "in sync" and the like are the active's words, and the better ones while it leads.
        state: seen.state.take().or(own.state.clone()),
        lag,
        ..own
    };
}

/// A member's answer about itself; `None` if it does not answer soon.
pub async fn ask(address: String, user: String) -> Option<p::GetGroupResponseProto> {
    let options = ClientOptions {
        connect_timeout: OTHERS_PATIENCE,
        call_timeout: OTHERS_PATIENCE,
        ..ClientOptions::default()
    };
    let client = Client::connect(address, protocol::ADMIN, &user, options);
    client.call("getGroup", &p::GetGroupRequestProto { is_local: Some(true) }).await.ok()
}

/// Only what this member knows.
pub fn of_this_member(partition: &Partition) -> p::GetGroupResponseProto {
    partition.chronicle.look(&partition.member, partition.env.clock.timestamp());
    let status = partition.member.status();
    let records = partition.member.records();
    let me = partition.member.me();
    let view = status.view.as_ref().map(|(view, version)| view_proto(view, *version));
    let listed = status.view.as_ref().map(|(view, _)| view.members.clone()).unwrap_or_default();
    let releases = partition.member.releases();
    let others = listed.iter().filter(|member| **member != me.member);
    let members = others.map(|member| other(*member, &status, records.get(member), releases.get(member)));
    let level = partition.tree().namespace.group_level().clone();
    let is_raised = level.since != TxId::default();
    p::GetGroupResponseProto {
        group: partition.cluster.group.0,
        cluster_id: partition.cluster.cluster_id.clone(),
        answered_by: me.member.0,
        view,
        members: std::iter::once(myself(partition, &status, &records)).chain(members).collect(),
        takeovers: partition.chronicle.takeovers(),
        is_writable: Some(status.is_writable),
        committed: Some(status.committed.0),
        unclean_elections: Some(partition.chronicle.unclean_elections()),
        active_unreachable: None,
        silent: Vec::new(),
        coordinator_away_ms: partition.member.coordinator_away_ms(),
        safe_mode: safe_mode(partition),
        now_ms: Some(partition.env.clock.timestamp().ms),
        stale_after_ms: Some(partition.config.blocks.stale_interval_ms),
        level: Some(level.level.0.into()),
        level_since: is_raised
            .then_some(p::LogPlaceProto { epoch: level.since.epoch.0, sn: level.since.sn.0 }),
        level_at_ms: is_raised.then_some(level.at.ms),
        contested: contested(partition),
        leaving: leaving(partition),
        slow_servers: slow_servers(partition),
        slow_disks: slow_disks(partition),
    }
}

/// The data servers that blocks of this group still need, although they are to leave service.
fn leaving(partition: &Partition) -> Vec<p::LeavingServerProto> {
    let servers = partition.blocks.lock().servers(blocks::ServerFilter::All);
    let needed = servers.iter().filter(|server| server.blocks_in_need > 0);
    let told = |server: &std::sync::Arc<blocks::DataServer>| p::LeavingServerProto {
        uuid: server.uuid().to_string(),
        blocks_in_need: server.blocks_in_need,
    };
    needed.map(told).collect()
}

fn slow_servers(partition: &Partition) -> Vec<p::SlowServerProto> {
    let config = &partition.config.blocks;
    let told = |slow: blocks::SlowServer| p::SlowServerProto {
        uuid: slow.server.uuid().to_string(),
        reporters: slow.reporters as u32,
        latency_ms: slow.worst.latency_ms,
        median_ms: slow.worst.median_ms,
        limit_ms: slow.worst.limit_ms,
        is_excluded: slow.is_avoided && config.exclude_slow,
        is_read_last: slow.is_avoided && config.read_slow_last,
    };
    let slow = partition.blocks.lock().slow_servers(partition.moment());
    slow.into_iter().map(told).collect()
}

fn slow_disks(partition: &Partition) -> Vec<p::SlowDiskProto> {
    let told = |(server, disk): (std::sync::Arc<blocks::DataServer>, blocks::SlowDisk)| p::SlowDiskProto {
        uuid: server.uuid().to_string(),
        path: disk.path,
        metadata_ms: disk.metadata_ms,
        read_ms: disk.read_ms,
        write_ms: disk.write_ms,
    };
    let slow = partition.blocks.lock().slow_disks(partition.moment());
    slow.into_iter().map(told).collect()
}

fn contested(partition: &Partition) -> Vec<p::ContestedAddressProto> {
    let contests = partition.blocks.lock().contested(partition.moment());
    let told = |contest: blocks::Contest| p::ContestedAddressProto {
        address: contest.address,
        uuids: contest.uuids.iter().map(|uuid| uuid.to_string()).collect(),
    };
    contests.into_iter().map(told).collect()
}

/// Why this server is in safe mode, how much is lacking, and how long that may take.
pub fn safe_mode(partition: &Partition) -> Option<String> {
    let blocks = partition.blocks.lock();
    let now = partition.moment();
    blocks.in_safe_mode().then(|| {
        let outlook = blocks.safe_mode_outlook(now).map(|outlook| format!(" {outlook}"));
        blocks.safe_mode_message(now).replace('\n', " ") + &outlook.unwrap_or_default()
    })
}

/// The view as it is told.
pub fn view_proto(view: &GroupView, version: u64) -> p::ViewProto {
    p::ViewProto {
        version,
        epoch: view.epoch.0,
        active: view.active.map(|member| member.0),
        in_sync: view.in_sync.iter().map(store).collect(),
        exiles: view.exiles.iter().map(store).collect(),
        in_sync_min: view.in_sync_min,
        members: view.members.iter().map(|member| member.0).collect(),
        commit_hint: Some(p::LogPlaceProto { epoch: view.commit_hint.epoch.0, sn: view.commit_hint.sn.0 }),
        level: Some(view.level.0.into()),
    }
}

fn store(store: &MemberStore) -> p::StoreProto {
    p::StoreProto { member: store.member.0, generation: store.generation }
}

pub fn place(point: LogPoint) -> p::LogPlaceProto {
    p::LogPlaceProto { epoch: point.id.epoch.0, sn: point.id.sn.0 }
}

pub fn role(role: &Role, is_eligible: bool) -> p::RoleProto {
    match role {
        Role::Following if is_eligible => p::RoleProto::Standby,
        Role::Following => p::RoleProto::Junior,
        Role::Claiming => p::RoleProto::Claiming,
        Role::Starting { .. } => p::RoleProto::Starting,
        Role::Reading { .. } => p::RoleProto::Reading,
        Role::Serving { .. } => p::RoleProto::Active,
        Role::HandingOver { .. } => p::RoleProto::HandingOver,
        Role::Stopped { .. } => p::RoleProto::Stopped,
    }
}

pub fn blank(member: MemberId, role: p::RoleProto, record: Option<&MemberRecord>) -> p::MemberProto {
    let address = |of: fn(&MemberRecord) -> &String| record.map(of).filter(|it| !it.is_empty()).cloned();
    p::MemberProto {
        member: member.0,
        role: role as i32,
        generation: record.map(|record| record.life.store.generation),
        boot: record.map(|record| record.life.boot),
        peer_address: address(|record| &record.peer_address),
        rpc_address: address(|record| &record.rpc_address),
        http_address: address(|record| &record.http_address),
        ..p::MemberProto::default()
    }
}

fn myself(
    partition: &Partition,
    status: &Status,
    records: &BTreeMap<MemberId, MemberRecord>,
) -> p::MemberProto {
    let me = partition.member.me();
    let reason = match (&*partition.member.ended().borrow(), &status.role) {
        (Some(Ended::Failed(reason) | Ended::Restart(reason)), _) => Some(reason.clone()),
        (None, Role::Stopped { reason }) => Some(reason.clone()),
        (None, _) if partition.condition.is_removed() => {
            Some(admission::removed(partition.member.me().member))
        }
        (None, _) => status.trouble.clone(),
    };
    let fetching = partition.fetching.get();
    // A member is never behind its own log: how far the active is, only the active can say.
    p::MemberProto {
        image_bytes_done: fetching.map(|(done, _)| done),
        image_bytes_total: fetching.map(|(_, total)| total),
        end: Some(place(status.end)),
        committed: Some(partition.commit.committed().0),
        is_in_sync: Some(status.is_in_sync),
        is_eligible: Some(status.is_eligible),
        lag: matches!(status.role, Role::Serving { .. }).then_some(0),
        reason,
        data_servers: Some(partition.data_servers()),
        coordinator_away_ms: partition.member.coordinator_away_ms(),
        disk_free_bytes: Some(partition.condition.disk().0).filter(|bytes| *bytes > 0),
        is_disk_low: Some(partition.condition.disk().1),
        ..with_release(
            &Release::ours(),
            blank(me.member, role(&status.role, status.is_eligible), records.get(&me.member)),
        )
    }
}

fn other(
    member: MemberId,
    status: &Status,
    record: Option<&MemberRecord>,
    release: Option<&Release>,
) -> p::MemberProto {
    let view = status.view.as_ref().map(|(view, _)| view);
    let is_in = |stores: &[MemberStore]| stores.iter().any(|store| store.member == member);
    let is_in_sync = view.map(|view| is_in(&view.in_sync));
    let is_eligible = view.map(|view| is_in(&view.in_sync) || is_in(&view.exiles));
    let peer = status.peers.iter().find(|peer| peer.member == member);
    p::MemberProto {
        is_in_sync,
        is_eligible,
        end: peer.and_then(|peer| peer.end).map(place),
        lag: peer.and_then(|peer| peer.end).map(|end| behind(status.committed, end)),
        heard_ms_ago: peer.and_then(|peer| peer.heard_ms_ago),
        is_connected: peer.map(|peer| peer.is_connected),
        matched: peer.map(|peer| peer.matched.0),
        state: peer.map(|peer| peer.state.to_owned()),
        data_servers: peer.map(|peer| peer.data_servers),
        // The member itself may tell its present role.
        ..told_release(release, blank(member, p::RoleProto::Unknown, record))
    }
}

/// Adds the release that a member has named; nothing if it has not been heard since this process started.
fn told_release(release: Option<&Release>, member: p::MemberProto) -> p::MemberProto {
    match release {
        Some(release) => with_release(release, member),
        None => member,
    }
}

/// A release that knows of no levels has no name either.
pub fn with_release(release: &Release, member: p::MemberProto) -> p::MemberProto {
    p::MemberProto {
        release: Some(release.name.clone()).filter(|name| !name.is_empty()),
        oldest_level: Some(release.levels.oldest.0.into()),
        newest_level: Some(release.levels.newest.0.into()),
        ..member
    }
}

fn behind(committed: Sn, end: LogPoint) -> u64 {
    committed.0.saturating_sub(end.id.sn.0)
}
