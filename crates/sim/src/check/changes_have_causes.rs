//! The view is changed because something has happened: nobody asks again at once for what was refused, and no change is
//! undone and made again while nobody has heard any news.

use crate::truth::Broken;
use base::{GroupView, MemberId, MemberLife};
use group::ViewChange;
use std::collections::{BTreeMap, VecDeque};

/// Half of what members wait before they ask again, and less than any silence that they judge by.
const AT_ONCE_NS: u64 = 50_000_000;
const KEPT: usize = 32;

/// The changes that were asked of the coordinator, and made, of late.
#[derive(Default)]
pub struct Changes {
    asked: BTreeMap<MemberLife, VecDeque<(u64, ViewChange)>>,
    made: VecDeque<Made>,
}

struct Made {
    at_ns: u64,
    view: GroupView,
    author: MemberLife,
    /// News that its author had heard.
    news: u64,
}

/// Equal but for what differs from try to try.
fn is_same(one: &GroupView, other: &GroupView) -> bool {
    let bare = |view: &GroupView| GroupView { change_id: 0, commit_hint: Default::default(), ..view.clone() };
    bare(one) == bare(other)
}

impl Changes {
    /// This member asks for this.
    ///
    /// # Errors
    /// The member asks for the same change on the same view again at once, without a cause.
    pub fn asked(&mut self, now_ns: u64, author: MemberLife, change: &ViewChange) -> Result<(), Broken> {
        let asked = self.asked.entry(author).or_default();
        asked.retain(|(at_ns, _)| now_ns - at_ns < AT_ONCE_NS);
        let again = asked.iter().find(|(_, before)| {
            // A coordinator that was put back comes to the same version again.
            (before.expected_version, before.expected_id) == (change.expected_version, change.expected_id)
                && before.requires == change.requires
                && is_same(&before.view, &change.view)
        });
        if let Some((at_ns, _)) = again {
            return Err(format!(
                "changes have causes: member {} asks again after {} us for {:?} at version {}",
                author.store.member,
                (now_ns - at_ns) / 1_000,
                change.view.in_sync,
                change.expected_version
            ));
        }
        if asked.len() >= KEPT {
            asked.pop_front();
        }
        asked.push_back((now_ns, change.clone()));
        Ok(())
    }

    /// An operator has told this member what to do, which is a cause: it may ask again for what it has just asked for.
    pub fn ordered(&mut self, author: MemberLife) {
        self.asked.remove(&author);
    }

    /// It was made; its author has heard that much news of others until now.
    ///
    /// # Errors
    /// The same author made the same view shortly before, and has heard nothing of others since.
    pub fn made(
        &mut self,
        now_ns: u64,
        author: MemberLife,
        news: u64,
        view: &GroupView,
    ) -> Result<(), Broken> {
        if self.made.back().is_some_and(|made| is_same(&made.view, view)) {
            return Ok(()); // The view has learnt what has committed, and nothing else.
        }
        let before = self
            .made
            .iter()
            .filter(|made| now_ns - made.at_ns < AT_ONCE_NS)
            .find(|made| made.author == author && made.news == news && is_same(&made.view, view));
        if let Some(before) = before {
            let in_sync: Vec<MemberId> = view.in_sync.iter().map(|store| store.member).collect();
            return Err(format!(
                "changes have causes: {in_sync:?} are in sync again {} us after they were, and member {} has heard nothing",
                (now_ns - before.at_ns) / 1_000,
                author.store.member
            ));
        }
        if self.made.len() >= KEPT {
            self.made.pop_front();
        }
        self.made.push_back(Made { at_ns: now_ns, view: view.clone(), author, news });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::MemberStore;

    fn life(member: u32) -> MemberLife {
        MemberLife { store: MemberStore { member: MemberId(member), generation: 0 }, boot: 1 }
    }

    fn view(in_sync: &[u32]) -> GroupView {
        GroupView::new(&in_sync.iter().map(|member| life(*member).store).collect::<Vec<_>>(), 2)
    }

    #[test]
    fn what_was_refused_is_not_asked_for_at_once() {
        let change = |version, in_sync: &[u32]| ViewChange {
            expected_version: version,
            expected_id: 0,
            view: view(in_sync),
            requires: Vec::new(),
        };
        let mut changes = Changes::default();
        changes.asked(0, life(1), &change(1, &[1, 2])).unwrap();
        changes.asked(1_000, life(1), &change(2, &[1, 2])).unwrap();
        changes.asked(2_000, life(1), &change(2, &[1, 2, 3])).unwrap();
        changes.asked(3_000, life(2), &change(2, &[1, 2])).unwrap();
        assert!(changes.asked(4_000, life(1), &change(2, &[1, 2])).is_err());
        changes.asked(60_000_000, life(1), &change(2, &[1, 2])).unwrap();
        assert!(changes.asked(60_001_000, life(1), &change(2, &[1, 2])).is_err());
        changes.ordered(life(1));
        changes.asked(60_002_000, life(1), &change(2, &[1, 2])).unwrap();
    }

    #[test]
    fn what_is_undone_without_news_is_found() {
        let mut changes = Changes::default();
        changes.made(0, life(1), 7, &view(&[1, 2])).unwrap();
        changes.made(1_000, life(1), 7, &view(&[1, 2, 3])).unwrap();
        changes.made(2_000, life(1), 8, &view(&[1, 2])).unwrap();
        changes.made(3_000, life(1), 8, &view(&[1, 2])).expect("only what has committed was learnt");
        changes.made(4_000, life(1), 8, &view(&[1, 2, 3])).unwrap();
        assert!(changes.made(5_000, life(1), 8, &view(&[1, 2])).is_err());
    }
}
