//! Views and members' records as JSON, the same in the embedded coordinator's file and in ZooKeeper.

use crate::MemberRecord;
use base::{Epoch, GroupView, MemberId, MemberLife, MemberStore, Sn, TxId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupText {
    epoch: u64,
    active: Option<u32>,
    /// Pairs of member and generation.
    in_sync: Vec<(u32, u64)>,
    exiles: Vec<(u32, u64)>,
    in_sync_min: u32,
    members: Vec<u32>,
    change_id: u64,
    /// Epoch and sn.
    commit_hint: (u64, u64),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemberText {
    member: u32,
    generation: u64,
    boot: u64,
    peer_address: String,
    rpc_address: String,
    http_address: String,
}

fn pairs(stores: &[MemberStore]) -> Vec<(u32, u64)> {
    stores.iter().map(|store| (store.member.0, store.generation)).collect()
}

fn stores(pairs: Vec<(u32, u64)>) -> Vec<MemberStore> {
    pairs
        .into_iter()
        .map(|(member, generation)| MemberStore { member: MemberId(member), generation })
        .collect()
}

impl From<&GroupView> for GroupText {
    fn from(view: &GroupView) -> Self {
        Self {
            epoch: view.epoch.0,
            active: view.active.map(|member| member.0),
            in_sync: pairs(&view.in_sync),
            exiles: pairs(&view.exiles),
            in_sync_min: view.in_sync_min,
            members: view.members.iter().map(|member| member.0).collect(),
            change_id: view.change_id,
            commit_hint: (view.commit_hint.epoch.0, view.commit_hint.sn.0),
        }
    }
}

impl From<GroupText> for GroupView {
    fn from(text: GroupText) -> Self {
        Self {
            epoch: Epoch(text.epoch),
            active: text.active.map(MemberId),
            in_sync: stores(text.in_sync),
            exiles: stores(text.exiles),
            in_sync_min: text.in_sync_min,
            members: text.members.into_iter().map(MemberId).collect(),
            change_id: text.change_id,
            commit_hint: TxId { epoch: Epoch(text.commit_hint.0), sn: Sn(text.commit_hint.1) },
        }
    }
}

impl From<&MemberRecord> for MemberText {
    fn from(record: &MemberRecord) -> Self {
        Self {
            member: record.life.store.member.0,
            generation: record.life.store.generation,
            boot: record.life.boot,
            peer_address: record.peer_address.clone(),
            rpc_address: record.rpc_address.clone(),
            http_address: record.http_address.clone(),
        }
    }
}

impl From<MemberText> for MemberRecord {
    fn from(text: MemberText) -> Self {
        let store = MemberStore { member: MemberId(text.member), generation: text.generation };
        Self {
            life: MemberLife { store, boot: text.boot },
            peer_address: text.peer_address,
            rpc_address: text.rpc_address,
            http_address: text.http_address,
        }
    }
}
