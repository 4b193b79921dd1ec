//! The paths of the nodes in ZooKeeper, and the form of their bytes.

use crate::{
    MemberRecord,
    text::{self, GroupText, MemberText, VALUE_BYTES_MAX},
};
use base::{Epoch, GroupId, GroupView, Level, MemberId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The format of all values, except a view that names a level.
const FORMAT: u32 = 1;
/// The format of a view that names the level of its group. Releases that know of no levels refuse it.
const FORMAT_WITH_LEVEL: u32 = 2;

/// The paths of all nodes. `root` has no slash at its end.
#[derive(Clone, Debug)]
pub struct Nodes {
    pub root: String,
}

impl Nodes {
    pub fn cluster(&self) -> String {
        format!("{}/cluster", self.root)
    }

    /// All that stands between the root and the nodes of a group, parents first.
    pub fn directories(&self, group: GroupId) -> [String; 4] {
        let groups = self.groups();
        let group = format!("{groups}/{}", group.0);
        let (members, heartbeats) = (format!("{group}/m"), format!("{group}/h"));
        [groups, group, members, heartbeats]
    }

    /// The parent of all groups' nodes.
    pub fn groups(&self) -> String {
        format!("{}/g", self.root)
    }

    pub fn state(&self, group: GroupId) -> String {
        format!("{}/g/{}/state", self.root, group.0)
    }

    /// The parent of the members' records. It is written with each of them, so that one watch tells of all.
    pub fn members(&self, group: GroupId) -> String {
        format!("{}/g/{}/m", self.root, group.0)
    }

    pub fn member(&self, group: GroupId, member: MemberId) -> String {
        format!("{}/g/{}/m/{}", self.root, group.0, member.0)
    }

    pub fn heartbeat(&self, group: GroupId, member: MemberId) -> String {
        format!("{}/g/{}/h/{}", self.root, group.0, member.0)
    }

    pub fn lock(&self, group: GroupId) -> String {
        format!("{}/g/{}/lock", self.root, group.0)
    }
}

#[derive(Serialize, Deserialize)]
struct Value<T> {
    format: u32,
    #[serde(flatten)]
    text: T,
}

#[derive(Deserialize)]
struct OnlyFormat {
    format: u32,
}

#[derive(Serialize)]
struct LockText {
    member: u32,
    epoch: u64,
}

fn encode<T: Serialize>(format: u32, text: T) -> Vec<u8> {
    serde_json::to_vec(&Value { format, text }).expect("numbers and strings are JSON")
}

fn decode<T: DeserializeOwned>(bytes: &[u8], newest: u32) -> Result<T, String> {
    if bytes.is_empty() {
        return Err("it is empty".into());
    }
    if bytes.len() > VALUE_BYTES_MAX {
        return Err(format!("its {} bytes are over the limit of {VALUE_BYTES_MAX}", bytes.len()));
    }
    let OnlyFormat { format } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if !(FORMAT..=newest).contains(&format) {
        return Err(format!(
            "it has format {format}, and this program knows up to {newest}: a later release has written it"
        ));
    }
    let value: Value<T> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(value.text)
}

/// The error says what is wrong with the view.
///
/// # Errors
/// The view breaks a rule that every view keeps: it has no members, names one twice, or has exiles while enough
/// members are in sync, for example. The text says which.
pub fn encode_view(view: &GroupView) -> Result<Vec<u8>, String> {
    text::check(view)?;
    let format = if view.level > Level::FIRST { FORMAT_WITH_LEVEL } else { FORMAT };
    Ok(encode(format, GroupText::from(view)))
}

/// Foreign bytes: the error says what is wrong with them.
///
/// # Errors
/// The bytes are none, too many, or not JSON of a format that this release knows; or the view breaks a rule, or is at
/// a level that this release does not know. The text says what is wrong.
pub fn decode_view(bytes: &[u8]) -> Result<GroupView, String> {
    decode::<GroupText>(bytes, FORMAT_WITH_LEVEL)?.into_view().map_err(|error| error.to_string())
}

pub fn encode_member(record: &MemberRecord) -> Vec<u8> {
    encode(FORMAT, MemberText::from(record))
}

/// Foreign bytes: the error says what is wrong with them.
///
/// # Errors
/// The bytes are none, too many, or not JSON of the known format; or the record is another member's. The text says
/// what is wrong.
pub fn decode_member(bytes: &[u8], member: MemberId) -> Result<MemberRecord, String> {
    let record = MemberRecord::from(decode::<MemberText>(bytes, FORMAT)?);
    if record.life.store.member != member {
        return Err(format!("it is the record of member {}", record.life.store.member));
    }
    Ok(record)
}

pub fn encode_lock(member: MemberId, epoch: Epoch) -> Vec<u8> {
    encode(FORMAT, LockText { member: member.0, epoch: epoch.0 })
}

#[cfg(test)]
mod tests;
