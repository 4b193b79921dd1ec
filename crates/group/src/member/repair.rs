//! A coordinator that has lost history gets its view back from what the members' stores prove.

use super::{Cause, Member};
use crate::{Effects, Known};
use base::{GroupView, MemberId, MemberStore, Moment, TxId};
use std::collections::BTreeMap;

impl Member {
    /// Says what would be written, or asks the coordinator for it.
    pub(super) fn repair(
        &mut self,
        now: Moment,
        ticket: u64,
        without: &[MemberId],
        is_confirmed: bool,
        effects: &mut Effects,
    ) -> Result<(), String> {
        if self.pending.as_ref().is_some_and(|pending| !pending.is_in_doubt) {
            return Err("a change of the view is under way; try again in a moment".into());
        }
        let (next, base) = match self.evidence.older.clone().filter(|older| older.is_sure) {
            // Nothing newer was ever confirmed than what this member goes by: it stands again, at the version that is there now.
            Some(older) if self.leading.is_some() => {
                let view = self.view().expect("whoever leads has a view").clone();
                (view, Some((older.view, older.version)))
            }
            _ if self.leading.is_some() => {
                return Err(
                    "this member leads, and the coordinator agrees with it: there is nothing to repair"
                        .into(),
                );
            }
            older => {
                if now < self.following.granted_until && self.following.leader.is_some() {
                    return Err("an active was heard a moment ago: give the order to that one".into());
                }
                let base = older.map(|older| (older.view, older.version));
                let Some((view, _)) = base.as_ref().or(self.view.as_ref()) else {
                    return Err("the view could not be read yet".into());
                };
                let mut known = self.evidence.known().clone();
                known.insert(self.me.member, (self.me, self.own_known()));
                (proved_view(view, &known, self.me, without)?, base)
            }
        };
        let text = describe(&next);
        if !is_confirmed {
            effects.outgoing.answers.push((ticket, Ok(format!("the view would be: {text}"))));
            return Ok(());
        }
        self.pending = None;
        if let Some(base) = base {
            self.view = Some(base);
        }
        self.evidence.older = None;
        self.ask_for(now, Cause::Repair { ticket }, next, Vec::new(), effects);
        Ok(())
    }
}

/// The view that the stores prove: the longest log leads on, and every entry that any of them knows to have committed is in
/// it. It is marked unclean, for a member that was left out may hold more.
fn proved_view(
    view: &GroupView,
    known: &BTreeMap<MemberId, (MemberStore, Known)>,
    me: MemberStore,
    without: &[MemberId],
) -> Result<GroupView, String> {
    let silent: Vec<String> = view
        .members
        .iter()
        .filter(|member| !known.contains_key(member) && !without.contains(member))
        .map(|member| member.to_string())
        .collect();
    if !silent.is_empty() {
        return Err(format!(
            "not heard of yet: {}. Start them, or leave out those that are lost for good (what only they hold is lost then)",
            silent.join(", ")
        ));
    }
    let stores: Vec<_> = known
        .iter()
        .filter(|(member, _)| view.members.contains(member) && !without.contains(member))
        .map(|(_, of)| *of)
        .collect();
    let (longest, of_longest) = stores
        .iter()
        .max_by_key(|(store, known)| (known.end.id, *store == me))
        .copied()
        .ok_or("no member is left")?;
    if longest != me && of_longest.end != known[&me.member].1.end {
        return Err(format!(
            "member {} has the longest log, which ends at {}: give the order to that one",
            longest.member, of_longest.end
        ));
    }
    let committed =
        stores.iter().map(|(_, known)| known.committed).max_by_key(|point| point.id).unwrap_or_default();
    if committed.id > of_longest.end.id {
        return Err(format!("{committed} has committed, and the longest log ends at {}", of_longest.end));
    }
    let promised = stores.iter().map(|(_, known)| known.promised).max().unwrap_or_default();
    let mut in_sync: Vec<_> =
        stores.iter().filter(|(_, known)| known.end == of_longest.end).map(|(store, _)| *store).collect();
    in_sync.sort();
    let epoch = view.epoch.max(promised);
    Ok(GroupView {
        epoch,
        active: None,
        in_sync,
        exiles: Vec::new(),
        commit_hint: committed.id,
        unclean_epoch: base::Epoch(epoch.0 + 1),
        ..view.clone()
    })
}

fn describe(view: &GroupView) -> String {
    let names = |stores: &[MemberStore]| {
        stores.iter().map(|store| store.member.to_string()).collect::<Vec<_>>().join(", ")
    };
    let TxId { epoch, sn } = view.commit_hint;
    let active = view.active.map_or("nobody".to_owned(), |active| format!("member {active}"));
    format!(
        "epoch {}, {active} leads, in sync {}, minimum {}, committed up to {epoch}-{sn}",
        view.epoch,
        names(&view.in_sync),
        view.in_sync_min
    )
}
