//! Decides about a damaged store whose holes no copy fills, from the others' answers about their stores.
//!
//! A damaged store keeps its generation and its place among the complete ones, and takes no part: it grants, acknowledges,
//! claims and discards nothing. Its holes are filled with any member's copy that fits, which needs no decision. This is about
//! the rest, and each way on rests on somebody who is complete and says so:
//!
//! - *Continue*: the hole is where this log and that of a complete member part, or where its end was. The entries
//!   that stood there had not committed, for a complete member does not have them.
//! - *Give up*: an active serves, which has the entries that this store knows to have committed, and the missing
//!   entries are purged there. It renews this one.
//! - *Wait*: for those who are silent; and if none is, for an operator's unclean election.

use base::{Epoch, GroupView, LogPoint, MemberId, MemberStore, Sn};
use std::{collections::BTreeMap, fmt};

/// A member's answer about its store, to a member whose store is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub store: MemberStore,
    pub promised: Epoch,
    /// Its log holds the entries behind this one.
    pub begins_after: Sn,
    /// The last durable entry of its log.
    pub end: LogPoint,
    /// The end of that log is whole: nothing was torn off, and nothing has rotted there.
    pub is_end_certain: bool,
    /// It is being repaired itself.
    pub is_damaged: bool,
    /// Entries were written there up to here at least, whether or not they can be read.
    pub written: Sn,
    /// The epoch in which that member leads, if the epoch's first entry has committed and the leader's lease holds.
    pub serves: Option<Epoch>,
    /// Its entry in the place of the last one that the asking store knows to have committed.
    pub at_commit: Option<LogPoint>,
}

/// The store that is being repaired, and the first of its holes that hinders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    pub me: MemberId,
    pub promised: Epoch,
    /// The last entry that the member knows to have committed.
    pub committed: Sn,
    /// The entry at that place, where it can be read.
    pub commit_point: Option<LogPoint>,
    /// The last entry before the hole.
    pub hole_after: Sn,
    /// Intact entries follow behind the hole.
    pub is_bounded: bool,
    /// Something was written up to here at least.
    pub written: Sn,
}

/// The way on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The log ends before the hole and goes on with what this member has behind that. After an unclean election what is given
    /// up may have committed.
    Continue {
        with: MemberId,
        may_lose: bool,
    },
    /// The store is of no use to anybody any more: this active renews it.
    GiveUp {
        to: MemberId,
        epoch: Epoch,
    },
    Wait {
        silent: Vec<MemberId>,
        why: Reason,
    },
}

/// The reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Members that are silent may have the entries, or may say that they are not needed.
    Silence,
    /// All have answered, and nobody has them: they are lost unless a disk comes back.
    Lost,
    /// A complete member has something else where this store knows of committed entries.
    Contradiction(MemberId),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence => f.write_str("nobody who answers has them"),
            Self::Lost => f.write_str("no member has them, and all have answered"),
            Self::Contradiction(member) => {
                write!(
                    f,
                    "member {member} leads or is complete by the view, and lacks what has committed here"
                )
            }
        }
    }
}

/// Decides from the answers of the others, each of whom was asked for the missing entries first and has answered that too. The
/// view must be the same before the first question and after the last answer: who is complete by it was so meanwhile.
pub fn judge(view: &GroupView, own: &Damaged, answers: &BTreeMap<MemberId, Standing>) -> Verdict {
    let others = || view.members.iter().filter(|member| **member != own.me);
    let silent: Vec<MemberId> = others().filter(|member| !answers.contains_key(member)).copied().collect();
    // An operator has given up what this store may have had.
    let was_given_up = view.unclean_epoch > own.promised;
    let mut contradiction = None;

    if !was_given_up {
        let complete = answers.values().filter(|it| !it.is_damaged && view.is_eligible(it.store));
        for standing in complete.clone().filter(|it| it.is_end_certain) {
            if contradicts(own, standing) {
                contradiction = Some(standing.store.member);
            } else if standing.begins_after <= own.hole_after {
                return Verdict::Continue { with: standing.store.member, may_lose: false };
            }
        }
        let eligible = view.in_sync.iter().chain(&view.exiles).filter(|store| store.member != own.me);
        let mut stores: Vec<MemberStore> = eligible.copied().collect();
        stores.dedup();
        let all_answer =
            stores.iter().all(|store| answers.get(&store.member).is_some_and(|it| it.store == *store));
        if all_answer && !own.is_bounded {
            // None is certain of its end: the greatest that there is, if it reaches as far as anything was ever written.
            let written = answers.values().map(|it| it.written).max().unwrap_or_default().max(own.written);
            let longest = complete.clone().max_by_key(|it| it.end.id);
            if let Some(longest) = longest.filter(|it| {
                it.end.id.sn >= written && it.begins_after <= own.hole_after && !contradicts(own, it)
            }) {
                return Verdict::Continue { with: longest.store.member, may_lose: false };
            }
        }
    }
    // Its first entry says that something was given up; it may need this very member before that can commit.
    let elected = view.active.and_then(|active| answers.get(&active)).filter(|_| was_given_up);
    if let Some(elected) = elected
        && !elected.is_damaged
        && elected.promised >= view.epoch
        && elected.begins_after <= own.hole_after
    {
        return Verdict::Continue { with: elected.store.member, may_lose: true };
    }
    for standing in answers.values() {
        let Some(epoch) = standing.serves.filter(|epoch| *epoch >= own.promised && *epoch == view.epoch)
        else {
            continue;
        };
        let leads = view.active == Some(standing.store.member);
        if !leads {
            continue;
        }
        if may_be_given_up(own, standing) || was_given_up {
            return Verdict::GiveUp { to: standing.store.member, epoch };
        }
        contradiction = Some(standing.store.member);
    }
    let why = match contradiction {
        Some(member) => Reason::Contradiction(member),
        None if silent.is_empty() => Reason::Lost,
        None => Reason::Silence,
    };
    Verdict::Wait { silent, why }
}

/// Whether an active that serves holds what this store knows to have committed. Where that is purged there, its image contains
/// it: an active has nothing that has not committed in an image.
pub fn may_be_given_up(own: &Damaged, active: &Standing) -> bool {
    let holds = match (own.commit_point, active.at_commit) {
        (Some(here), Some(there)) => here == there,
        (_, None) => active.begins_after >= own.committed && active.end.id.sn > own.committed,
        (None, Some(_)) => own.committed == Sn(0),
    };
    active.serves.is_some() && holds
}

/// Its log is another one where this store knows of a commit.
fn contradicts(own: &Damaged, standing: &Standing) -> bool {
    let differs = own.commit_point.zip(standing.at_commit).is_some_and(|(here, there)| here != there);
    differs || standing.end.id.sn < own.committed
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Chain, TxId};

    fn point(epoch: u64, sn: u64) -> LogPoint {
        LogPoint { id: TxId { epoch: Epoch(epoch), sn: Sn(sn) }, chain: Chain(1_000 * epoch + sn) }
    }

    fn store(member: u32) -> MemberStore {
        MemberStore { member: MemberId(member), generation: 0 }
    }

    fn view() -> GroupView {
        GroupView { epoch: Epoch(3), ..GroupView::new(&[store(1), store(2), store(3)], 2) }
    }

    /// Member 1 lacks entry 8 of 20, and knows that 5 have committed.
    fn own() -> Damaged {
        Damaged {
            me: MemberId(1),
            promised: Epoch(3),
            committed: Sn(5),
            commit_point: Some(point(1, 5)),
            hole_after: Sn(7),
            is_bounded: true,
            written: Sn(20),
        }
    }

    /// A follower with the same history that ends with this entry.
    fn sound(member: u32, end: u64) -> Standing {
        Standing {
            store: store(member),
            promised: Epoch(3),
            begins_after: Sn(0),
            end: point(2, end),
            is_end_certain: true,
            is_damaged: false,
            written: Sn(end),
            serves: None,
            at_commit: Some(point(1, 5)),
        }
    }

    fn ask(view: &GroupView, own: &Damaged, answers: &[Standing]) -> Verdict {
        judge(view, own, &answers.iter().map(|it| (it.store.member, *it)).collect())
    }

    fn waits(verdict: &Verdict) -> Reason {
        match verdict {
            Verdict::Wait { why, .. } => *why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_complete_member_does_not_have_had_not_committed() {
        let with = MemberId(2);
        assert_eq!(ask(&view(), &own(), &[sound(2, 7)]), Verdict::Continue { with, may_lose: false });
        assert_eq!(
            ask(&view(), &own(), &[sound(2, 40)]),
            Verdict::Continue { with, may_lose: false },
            "another history"
        );
        // Its word counts while it is complete, in this life of its store.
        let mut outside = view();
        outside.in_sync.retain(|it| it.member != with);
        assert_eq!(waits(&ask(&outside, &own(), &[sound(2, 7)])), Reason::Silence);
        let later = Standing { store: MemberStore { generation: 1, ..store(2) }, ..sound(2, 7) };
        assert_eq!(waits(&ask(&view(), &own(), &[later])), Reason::Silence);
    }

    #[test]
    fn who_is_damaged_or_unsure_of_its_own_end_says_nothing_about_this_one() {
        let damaged = Standing { is_damaged: true, ..sound(2, 7) };
        let torn = Standing { is_end_certain: false, ..sound(3, 7) };
        assert_eq!(waits(&ask(&view(), &own(), &[damaged])), Reason::Silence);
        assert_eq!(waits(&ask(&view(), &own(), &[damaged, torn])), Reason::Lost);
    }

    #[test]
    fn what_is_known_to_have_committed_is_not_cut_off_by_anybodys_word() {
        assert_eq!(waits(&ask(&view(), &own(), &[sound(2, 4)])), Reason::Contradiction(MemberId(2)));
        let other = Standing { at_commit: Some(point(2, 5)), ..sound(2, 9) };
        assert_eq!(waits(&ask(&view(), &own(), &[other])), Reason::Contradiction(MemberId(2)));
        let leads = Standing { serves: Some(Epoch(3)), ..other };
        let led = GroupView { active: Some(MemberId(2)), ..view() };
        assert_eq!(waits(&ask(&led, &own(), &[leads])), Reason::Contradiction(MemberId(2)));
    }

    #[test]
    fn where_no_end_is_certain_the_greatest_counts_if_it_reaches_as_far_as_anything_did() {
        let open = Damaged { is_bounded: false, hole_after: Sn(9), written: Sn(10), ..own() };
        let torn = |member, end| Standing { is_end_certain: false, ..sound(member, end) };
        assert_eq!(
            ask(&view(), &open, &[torn(2, 12), torn(3, 10)]),
            Verdict::Continue { with: MemberId(2), may_lose: false }
        );
        assert_eq!(waits(&ask(&view(), &open, &[torn(2, 12)])), Reason::Silence, "member 3 may have more");
        assert_eq!(
            waits(&ask(&view(), &open, &[torn(2, 9), torn(3, 9)])),
            Reason::Lost,
            "entry 10 was written"
        );
        let rotten = Standing { is_damaged: true, written: Sn(13), ..torn(3, 11) };
        assert_eq!(waits(&ask(&view(), &open, &[torn(2, 12), rotten])), Reason::Lost, "so was entry 13");
    }

    #[test]
    fn a_store_is_given_up_only_to_an_active_that_serves_and_has_what_has_committed() {
        let led = GroupView { active: Some(MemberId(2)), ..view() };
        let purged = Standing { begins_after: Sn(30), at_commit: None, end: point(3, 50), ..sound(2, 50) };
        let serving = Standing { serves: Some(Epoch(3)), ..purged };
        let given_up = Verdict::GiveUp { to: MemberId(2), epoch: Epoch(3) };
        assert_eq!(ask(&led, &own(), &[serving]), given_up);
        assert_eq!(waits(&ask(&led, &own(), &[purged])), Reason::Silence, "it follows");
        assert_eq!(waits(&ask(&view(), &own(), &[serving])), Reason::Silence, "the view knows no active");
        let old = Standing { serves: Some(Epoch(2)), ..purged };
        assert_eq!(
            waits(&ask(&led, &own(), &[old])),
            Reason::Silence,
            "this store has promised a later epoch"
        );
        let behind = Damaged { hole_after: Sn(40), ..own() };
        assert_eq!(
            ask(&led, &behind, &[serving]),
            Verdict::Continue { with: MemberId(2), may_lose: false },
            "it has what is missing"
        );
    }

    #[test]
    fn after_an_unclean_election_the_active_may_lack_what_has_committed() {
        let led = GroupView { active: Some(MemberId(2)), epoch: Epoch(6), unclean_epoch: Epoch(6), ..view() };
        let with = MemberId(2);
        let elected = Standing { promised: Epoch(6), end: point(6, 4), at_commit: None, ..sound(2, 4) };
        assert_eq!(ask(&led, &own(), &[elected]), Verdict::Continue { with, may_lose: true });
        let purged = Standing { begins_after: Sn(30), serves: Some(Epoch(6)), end: point(6, 50), ..elected };
        assert_eq!(ask(&led, &own(), &[purged]), Verdict::GiveUp { to: with, epoch: Epoch(6) });
        let has_not_promised = Standing { promised: Epoch(5), ..elected };
        assert_eq!(waits(&ask(&led, &own(), &[has_not_promised])), Reason::Silence);
        let earlier = GroupView { unclean_epoch: Epoch(3), epoch: Epoch(6), ..led };
        assert_eq!(
            waits(&ask(&earlier, &own(), &[elected])),
            Reason::Contradiction(with),
            "this store was there then"
        );
    }
}
