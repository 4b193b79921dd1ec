//! The commit rule.

use base::{GroupView, MemberStore, Sn};

/// The last entry that has committed: durable on every member of the confirmed in-sync set and of the set
/// that a pending change would make. `None` when too few are in sync, for the rule in force or the one to
/// come, or when one has proved nothing yet.
pub fn commit_point(
    confirmed: &GroupView,
    pending: Option<&GroupView>,
    durable: impl Fn(MemberStore) -> Option<Sn>,
) -> Option<Sn> {
    let in_sync_min = confirmed.in_sync_min.max(pending.map_or(0, |view| view.in_sync_min));
    if (confirmed.in_sync.len() as u32) < in_sync_min {
        return None;
    }
    let wanted = pending.map_or(&[][..], |view| &view.in_sync);
    confirmed
        .in_sync
        .iter()
        .chain(wanted)
        .map(|store| durable(*store))
        .min()
        .flatten()
        .filter(|sn| *sn > Sn(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::MemberId;

    fn store(member: u32) -> MemberStore {
        MemberStore { member: MemberId(member), generation: 0 }
    }

    fn view(in_sync: &[u32], in_sync_min: u32) -> GroupView {
        let members: Vec<_> = in_sync.iter().map(|member| store(*member)).collect();
        GroupView::new(&members, in_sync_min)
    }

    fn durable(of: &[(u32, u64)]) -> impl Fn(MemberStore) -> Option<Sn> {
        let of: Vec<_> = of.iter().map(|(member, sn)| (store(*member), Sn(*sn))).collect();
        move |store| of.iter().find(|(other, _)| *other == store).map(|(_, sn)| *sn)
    }

    #[test]
    fn an_entry_commits_when_the_slowest_member_in_sync_has_it() {
        assert_eq!(commit_point(&view(&[1, 2], 2), None, durable(&[(1, 9), (2, 4)])), Some(Sn(4)));
        assert_eq!(commit_point(&view(&[1, 2], 2), None, durable(&[(1, 9)])), None);
        assert_eq!(commit_point(&view(&[1], 1), None, durable(&[(1, 9)])), Some(Sn(9)));
    }

    #[test]
    fn a_set_that_is_being_changed_to_is_required_as_well() {
        let pending = view(&[1, 2, 3], 2);
        let durable = durable(&[(1, 9), (2, 8), (3, 2)]);
        assert_eq!(commit_point(&view(&[1, 2], 2), Some(&pending), durable), Some(Sn(2)));
    }

    #[test]
    fn the_confirmed_set_alone_is_counted_against_the_minimum() {
        let pending = view(&[1, 2], 2);
        assert_eq!(commit_point(&view(&[1], 2), Some(&pending), durable(&[(1, 9), (2, 9)])), None);
    }
}
