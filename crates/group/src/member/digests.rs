//! Members compare what their state machines have made of the same entries.
//!
//! Chains prove that the members' logs are the same; they say nothing of what each has made of them. A bit that flips in one member's
//! memory, or a fault of the program that one of them meets, would be found when that member leads, by clients. So at each
//! checkpoint, which is an entry of the log and so the same place for all, each member digests its state and tells the others.
//!
//! - *A majority of all members agrees, and this one differs*: its state is wrong as far as anybody can tell. It stops, puts its
//!   store aside and is renewed, if a member of that majority is in sync: that one has all that has committed. If none is, this
//!   store may be the only one that has, so it stays and says so.
//! - *It differs once more after that*: being renewed did not help, so the cause is not its memory. It stops for a person.
//! - *No majority*, as in a group of two: nobody knows who is right. Nobody stops, both say so, and neither makes images nor takes those of
//!   others, until they agree again: an image would carry what is wrong into the next start, which would be sound without it.

use super::Member;
use crate::{Effects, Message, StateDigest};
use base::{MemberId, MemberStore, TxId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The digests of this member's state, and those that the other members have told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Digests {
    /// The digests of this member's state, the oldest first.
    own: VecDeque<StateDigest>,
    /// The digests that each of the others has told last, and the store and boot that told them.
    told: BTreeMap<MemberId, (MemberStore, u64, Vec<StateDigest>)>,
    /// Members whose processes have ended: nobody takes an image from them.
    gone: BTreeSet<MemberId>,
    /// This store was renewed before because it differed.
    has_differed: bool,
}

/// How this member's state compares with that of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// All who were asked have the same, or there is nothing to compare yet.
    Agrees,
    /// Members in sync have not told yet what theirs is at the last checkpoint.
    Waits,
    /// Others differ, and a majority has the same as this member. The sentence says who differs, and where.
    Prevails(String),
    /// The state of this member may be the wrong one.
    Differs(String),
}

/// Members of an earlier release tell no digests, so the wait for them ends.
const TELLING_MS: u64 = 3_000;

/// The fate of an image that was made at the last checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageFate {
    /// A start may go by it.
    Counts,
    /// The members have not compared their states there yet.
    Waits,
    /// It shows a state that others have not, as the sentence says.
    Refused(String),
}

impl Agreement {
    /// Whether this member may make images. An image would carry what is wrong into the next start, which would be sound
    /// without it.
    pub fn may_make_images(&self) -> bool {
        !matches!(self, Self::Differs(_))
    }

    /// The fate of an image whose checkpoint committed so long ago. A member that has made one tells the others what its state was
    /// there, a moment after the checkpoint has committed. Of this member's own image it is enough that a majority has made
    /// the same.
    pub fn of_image(&self, is_own: bool, waited_ms: u64) -> ImageFate {
        match self {
            Self::Agrees => ImageFate::Counts,
            Self::Prevails(_) if is_own => ImageFate::Counts,
            Self::Prevails(reason) | Self::Differs(reason) => ImageFate::Refused(reason.clone()),
            Self::Waits if waited_ms >= TELLING_MS => ImageFate::Counts,
            Self::Waits => ImageFate::Waits,
        }
    }
}

/// The digests of the other members at one entry.
struct Comparison {
    own: StateDigest,
    /// Members by what they have.
    others: BTreeMap<u64, Vec<MemberId>>,
}

impl Comparison {
    /// How many have what this member has, itself among them.
    fn who_agree(&self) -> usize {
        1 + self.others.get(&self.own.digest).map_or(0, Vec::len)
    }

    fn who_differ(&self) -> impl Iterator<Item = &MemberId> {
        self.others.iter().filter(|(digest, _)| **digest != self.own.digest).flat_map(|(_, members)| members)
    }
}

impl Digests {
    /// Places that are remembered: a member that is behind by so many checkpoints is compared at the next one.
    pub const KEPT: usize = Message::DIGESTS_MAX;

    pub fn new(mut own: Vec<StateDigest>, has_differed: bool) -> Self {
        let extra = own.len().saturating_sub(Self::KEPT);
        own.drain(..extra);
        Self { own: own.into(), told: BTreeMap::new(), gone: BTreeSet::new(), has_differed }
    }

    /// Compares the digests at the last entry that this member and another one have passed.
    fn compare(&self, is_member: impl Fn(&MemberId) -> bool) -> Option<Comparison> {
        self.own.iter().rev().find_map(|own| {
            let mut others: BTreeMap<u64, Vec<MemberId>> = BTreeMap::new();
            for (member, (_, _, told)) in self.told.iter().filter(|(member, _)| is_member(member)) {
                let same = |theirs: &&StateDigest| (theirs.at, theirs.form) == (own.at, own.form);
                if let Some(theirs) = told.iter().find(same) {
                    others.entry(theirs.digest).or_default().push(*member);
                }
            }
            (!others.is_empty()).then_some(Comparison { own: *own, others })
        })
    }

    fn last(&self) -> Option<StateDigest> {
        self.own.back().copied()
    }

    fn has_told(&self, member: MemberId, at: TxId) -> bool {
        self.told.get(&member).is_some_and(|(_, _, told)| told.iter().any(|theirs| theirs.at == at))
    }
}

impl Member {
    /// The state machine has come to a checkpoint that has committed.
    pub(super) fn on_digest(&mut self, digest: StateDigest, effects: &mut Effects) {
        if self.digests.last().is_some_and(|last| last.at >= digest.at) {
            return;
        }
        self.digests.own.push_back(digest);
        if self.digests.own.len() > Digests::KEPT {
            self.digests.own.pop_front();
        }
        let others: Vec<MemberId> = self.view().map(|view| view.members.clone()).unwrap_or_default();
        for member in others.into_iter().filter(|member| *member != self.me.member) {
            self.tell_digests(member, effects);
        }
        self.judge_digests(effects);
    }

    pub(super) fn tell_digests(&self, to: MemberId, effects: &mut Effects) {
        if !self.digests.own.is_empty() {
            let digests = self.digests.own.iter().copied().collect();
            effects.messages.push((to, Message::Digests { digests }));
        }
    }

    pub(super) fn on_digests(
        &mut self,
        from: MemberStore,
        boot: u64,
        digests: Vec<StateDigest>,
        effects: &mut Effects,
    ) {
        if let Some((store, known_boot, before)) = self.digests.told.get(&from.member) {
            let order = (from.generation, boot).cmp(&(store.generation, *known_boot));
            let newest = |digests: &[StateDigest]| digests.iter().map(|digest| digest.at).max();
            if order.is_lt() || order.is_eq() && newest(&digests) < newest(before) {
                return; // It was overtaken.
            }
        }
        self.digests.gone.remove(&from.member);
        self.digests.told.insert(from.member, (from, boot, digests));
        self.judge_digests(effects);
    }

    pub(super) fn digests_are_gone(&mut self, member: MemberId) {
        self.digests.gone.insert(member);
    }

    pub(super) fn digests_are_back(&mut self, member: MemberId) {
        self.digests.gone.remove(&member);
    }

    fn compare_digests(&self) -> Option<Comparison> {
        self.digests.compare(|member| *member != self.me.member && self.is_member(*member))
    }

    /// How this member's state compares with that of the others.
    pub fn agreement(&self) -> Agreement {
        if let (Some(sentence), Some(comparison)) = (self.difference(), self.compare_digests()) {
            if !self.is_majority(comparison.who_agree()) {
                return Agreement::Differs(sentence);
            }
            if !comparison.who_differ().all(|member| self.digests.gone.contains(member)) {
                return Agreement::Prevails(sentence);
            }
        }
        let (Some(last), Some(view)) = (self.digests.last(), self.view()) else { return Agreement::Agrees };
        let waits = view
            .in_sync
            .iter()
            .any(|store| store.member != self.me.member && !self.digests.has_told(store.member, last.at));
        if waits { Agreement::Waits } else { Agreement::Agrees }
    }

    /// A sentence for people while the members differ; `None` while they do not.
    pub(super) fn difference(&self) -> Option<String> {
        let comparison = self.compare_digests()?;
        let sentence = self.sentence_of(&comparison)?;
        let remedy = match self.outvoted_by(&comparison) {
            _ if self.is_majority(comparison.who_agree()) => {
                "A majority agrees with this member. Each member that differs puts its store aside and is renewed"
            }
            Some(_) => {
                "A majority differs from this member, and no member of it is in sync: this one may be the only one that has all \
                 that was acknowledged. Bring another member into sync"
            }
            None => {
                "No majority tells who is right, so nobody stops, and no images are made. Restart the standby: its memory is built \
                 anew from its disk. If they differ still, hand over to it, restart the other one, and compare what \
                 `clover fs` shows on both before one of them is renewed with `clover meta format --join --replace`"
            }
        };
        Some(format!("{sentence}. {remedy}"))
    }

    /// A sentence about which member has which state; `None` if all have an equal one.
    fn sentence_of(&self, comparison: &Comparison) -> Option<String> {
        let Comparison { own, others } = comparison;
        let others: Vec<String> = others
            .iter()
            .filter(|(digest, _)| **digest != own.digest)
            .map(|(digest, members)| {
                let names: Vec<String> = members.iter().map(ToString::to_string).collect();
                format!("{digest:016x} on member {}", names.join(", "))
            })
            .collect();
        (!others.is_empty()).then(|| {
            format!(
                "{}: at entry {} the digest is {:016x} on member {}, and {}",
                StateDigest::DIFFERENCE,
                own.at,
                own.digest,
                self.me.member,
                others.join(", and ")
            )
        })
    }

    fn is_majority(&self, count: usize) -> bool {
        self.view().is_some_and(|view| 2 * count > view.members.len())
    }

    /// The majority of all members that has another state than this one.
    fn outvoted_by<'a>(&self, comparison: &'a Comparison) -> Option<&'a [MemberId]> {
        let others = comparison.others.iter().filter(|(digest, _)| **digest != comparison.own.digest);
        others.map(|(_, members)| members.as_slice()).find(|members| self.is_majority(members.len()))
    }

    fn judge_digests(&mut self, effects: &mut Effects) {
        let Some(comparison) = self.compare_digests() else { return };
        let Some(majority) = self.outvoted_by(&comparison) else { return };
        let Some(view) = self.view() else { return };
        let is_safe = view.in_sync.iter().any(|store| majority.contains(&store.member));
        let Some(sentence) = self.sentence_of(&comparison).filter(|_| is_safe) else { return };
        if self.digests.has_differed {
            return self.stop(&format!(
                "{sentence}. This store was put aside and renewed for such a difference before (`clover meta aside list`), and \
                 differs again: its memory, its configuration (the superuser's group is the same on all members?) or the images of \
                 the group are wrong, and a person must find out which. Nothing was given up this time. `clover meta aside drop` of that \
                 one lets this store be renewed once more"
            ));
        }
        self.stop(&sentence);
        effects.outgoing.differs = Some(sentence);
    }
}
