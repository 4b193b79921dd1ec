//! Batched listings of directories that have different homes: each home lists its own, and the answers become the one that a single group would give.
//!
//! A part is an ordinary batched listing of fewer paths. So it goes by all rules for such a call: its home may be the wrong one by now, or may find that the
//! part is to be taken apart further.

use super::{
    decide::Looked,
    gather::{Gathering, Merging},
    lists::Parts,
};
use crate::{
    client_protocol::batch::{batch_of, cookie_of, place_of},
    core::Core,
};
use base::GroupId;
use bytes::Bytes;
use namespace::{homes::Intent, reads::get_listing};
use prost::Message;
use proto::hdfs as p;
use rpc::{Answer, Call, Replier, RpcError};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Asks the homes of all paths, if they are several. Gives the call back otherwise.
pub fn take_apart(core: &Arc<Core>, looked: &Looked, call: Call, reply: Replier) -> Option<(Call, Replier)> {
    if !looked.home_call.is_batch || looked.home_call.paths.len() < 2 {
        return Some((call, reply));
    }
    let limits = &core.config.limits;
    let batch = match read(&call, limits) {
        Ok(batch) => batch,
        Err(refused) => {
            reply.error(refused);
            return None;
        }
    };
    let homes: Vec<GroupId> = {
        let tree = core.partition.tree();
        batch.directories.iter().map(|path| tree.namespace.decider(path, Intent::Look)).collect()
    };
    if homes.windows(2).all(|two| two[0] == two[1]) {
        return Some((call, reply));
    }
    let parts = Part::of(&homes, &batch);
    let merged = Merged { homes, first: batch.start.0 as usize, entries_max: limits.listing_max };
    let merge: Merging = Box::new(move |answers| merged.merge(answers));
    if parts.is_empty() {
        // The client has come behind the last path.
        Gathering::answer_with(merge, Parts::new(), reply);
        return None;
    }
    let gathering = Gathering::new(parts.len(), merge, reply);
    for (home, part) in parts {
        let gathering = gathering.clone();
        let take = move |answer: Answer| gathering.lock().take(home, answer);
        let part = Call { request: part.request(&batch), is_forwarded: false, ..call.clone() };
        (core.answer)(core, part, Replier::captured(take));
    }
    None
}

/// What one group would refuse before it looks at any path is refused here.
fn read(call: &Call, limits: &namespace::Limits) -> Result<get_listing::Batch, RpcError> {
    let batch = batch_of(call)?;
    get_listing::check_count(batch.directories.len(), limits).map_err(|error| RpcError::from(&error))?;
    Ok(batch)
}

/// What one home is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    /// Which of the paths.
    paths: Vec<usize>,
    /// The name behind which the first of them goes on.
    start_after: Bytes,
}

impl Part {
    /// The parts of a batch, by home. What has been listed before is in none.
    fn of(homes: &[GroupId], batch: &get_listing::Batch) -> BTreeMap<GroupId, Self> {
        let (first, name) = &batch.start;
        let first = *first as usize;
        let mut parts = BTreeMap::new();
        for (index, home) in homes.iter().enumerate().skip(first) {
            let start_after = if index == first { name.clone() } else { Bytes::new() };
            let part = parts.entry(*home).or_insert(Self { paths: Vec::new(), start_after });
            part.paths.push(index);
        }
        parts
    }

    fn request(&self, batch: &get_listing::Batch) -> Bytes {
        let message = p::GetBatchedListingRequestProto {
            paths: self.paths.iter().map(|index| batch.directories[*index].clone()).collect(),
            start_after: match self.start_after.is_empty() {
                true => Bytes::new(),
                false => cookie_of(0, &self.start_after).into(),
            },
            need_location: batch.need_location,
        };
        message.encode_to_vec().into()
    }
}

/// Puts the parts of a batch together.
struct Merged {
    /// Of each path.
    homes: Vec<GroupId>,
    /// The path at which the batch begins.
    first: usize,
    /// So many entries end an answer.
    entries_max: usize,
}

/// What one home has told.
struct Told {
    listings: VecDeque<p::BatchedDirectoryListingProto>,
    /// How many of its paths are in the answer already.
    taken: usize,
    /// Where its listing goes on: the path, counted among its own, and the name.
    next: Option<(usize, Bytes)>,
}

impl Told {
    fn read(answer: Bytes) -> Result<Self, String> {
        let answer = p::GetBatchedListingResponseProto::decode(answer).map_err(|error| error.to_string())?;
        let next = match answer.has_more {
            false => None,
            true => {
                let (index, name) = place_of(answer.start_after).ok_or("its cookie is too short")?;
                Some((index as usize, name))
            }
        };
        Ok(Self { listings: answer.listings.into(), taken: 0, next })
    }

    /// The listing of the group's next path, and where that goes on if it is not whole.
    fn take(&mut self) -> Option<(p::BatchedDirectoryListingProto, Option<Bytes>)> {
        let listing = self.listings.pop_front()?;
        let goes_on = self.next.take_if(|(index, _)| *index == self.taken).map(|(_, name)| name);
        self.taken += 1;
        Some((listing, goes_on))
    }
}

impl Merged {
    /// The answer of one group that has all paths. A home stops where it has told as many entries as an answer may have, and with those of other homes
    /// that is reached no later.
    fn merge(self, answers: Parts) -> Result<Bytes, String> {
        let mut told = BTreeMap::new();
        for (group, answer) in answers {
            let read = Told::read(answer).map_err(|why| format!("group {group}: {why}"))?;
            told.insert(group, read);
        }
        let mut all = p::GetBatchedListingResponseProto::default();
        let mut next = None;
        let mut entries = 0;
        for (index, home) in self.homes.iter().enumerate().skip(self.first) {
            let told = told.get_mut(home).ok_or_else(|| format!("group {home} has not been asked"))?;
            let Some((mut listing, goes_on)) = told.take() else {
                if told.next.is_none() {
                    return Err(format!("group {home} has left paths out"));
                }
                // It tells less in one answer than this group does.
                next = Some((index, Bytes::new()));
                break;
            };
            listing.parent_idx = index as u32;
            entries += listing.partial_listing.len();
            all.listings.push(listing);
            if let Some(name) = goes_on {
                next = Some((index, name));
                break;
            }
            if entries >= self.entries_max && index + 1 < self.homes.len() {
                next = Some((index + 1, Bytes::new()));
                break;
            }
        }
        all.has_more = next.is_some();
        let (index, name) = next.unwrap_or_default();
        all.start_after = cookie_of(index as u32, &name).into();
        Ok(all.encode_to_vec().into())
    }
}

#[cfg(test)]
mod tests;
