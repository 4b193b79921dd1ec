//! Views and members' records as JSON, the same in the embedded coordinator's file and in ZooKeeper
//! ([docs/format](../../../docs/format/coordinator.md)).

use crate::MemberRecord;
use base::{
    Epoch, GroupView, Level, MemberId, MemberLife, MemberStore, Sn, TxId, UnknownLevel,
    level::RELEASE_BYTES_MAX,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

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
    /// Left out while it is 0, as it was always before the field was known.
    #[serde(default, skip_serializing_if = "is_zero")]
    unclean_epoch: u64,
    /// Likewise.
    #[serde(default, skip_serializing_if = "is_zero")]
    lease_ms: u64,
    /// Left out at the first level, at which the text has an earlier format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<u16>,
    /// The release that came with that level, for those that do not know the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    release: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
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

/// The most bytes of any value. A view of a hundred members takes 4 KiB. The length is checked before anything is
/// parsed.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

/// The text that names a cluster.
pub fn cluster(bytes: Vec<u8>) -> Result<String, String> {
    match String::from_utf8(bytes) {
        Ok(text) if (1..=VALUE_BYTES_MAX).contains(&text.len()) => Ok(text),
        Ok(text) => Err(format!("the cluster's text has {} bytes", text.len())),
        Err(_) => Err("the cluster's text is not UTF-8".into()),
    }
}

/// Checks the rules that every view keeps. A view that breaks one is refused where it is read and where it is
/// written; the text says which rule.
pub fn check(view: &GroupView) -> Result<(), String> {
    let rises = |members: &[MemberStore]| members.windows(2).all(|pair| pair[0].member < pair[1].member);
    if view.unclean_epoch > view.epoch {
        return Err(format!("an unclean election began epoch {}, which is to come", view.unclean_epoch));
    }
    if !rises(&view.in_sync) || !rises(&view.exiles) {
        return Err("the in-sync members or the exiles are not sorted, or one is named twice".into());
    }
    if !view.members.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err("the members are not sorted, or one is named twice".into());
    }
    if view.members.is_empty() || view.in_sync_min == 0 {
        return Err("it has no members, or needs none in sync".into());
    }
    if view.in_sync.is_empty() && view.exiles.is_empty() {
        return Err("no member is complete".into());
    }
    if let Some(both) = view.exiles.iter().find(|exile| view.in_sync.iter().any(|s| s.member == exile.member))
    {
        return Err(format!("member {} is in sync and an exile", both.member));
    }
    if !view.exiles.is_empty() && view.in_sync.len() >= view.in_sync_min as usize {
        return Err(format!("it has exiles although {} members are in sync", view.in_sync.len()));
    }
    Ok(())
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

impl GroupText {
    /// The view, if this release knows the level that its group is at.
    pub fn into_view(self) -> Result<GroupView, NoView> {
        let level = Level(self.level.unwrap_or(Level::FIRST.0));
        if !level.is_known() {
            let release = self.release.unwrap_or_else(|| "of a later date".into());
            let release = release.chars().filter(|c| !c.is_control()).take(RELEASE_BYTES_MAX).collect();
            return Err(NoView::Level(UnknownLevel { level, release }));
        }
        let view = GroupView { level, ..self.into() };
        check(&view).map_err(NoView::Broken)?;
        Ok(view)
    }
}

/// Why a text is no view.
#[derive(Debug, Error)]
pub enum NoView {
    /// A later release has written it.
    #[error(transparent)]
    Level(UnknownLevel),
    /// The text breaks a rule of its format.
    #[error("{0}")]
    Broken(String),
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
            unclean_epoch: view.unclean_epoch.0,
            lease_ms: view.lease_ms,
            level: (view.level > Level::FIRST).then_some(view.level.0),
            release: view.level.release().filter(|_| view.level > Level::FIRST).map(str::to_owned),
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
            unclean_epoch: Epoch(text.unclean_epoch),
            lease_ms: text.lease_ms,
            level: Level::FIRST,
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
