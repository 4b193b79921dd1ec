//! Sentences about a group, as commands and pages show them.

use crate::clover::admin::{GetGroupResponseProto, MemberProto, RoleProto, StoreProto};

/// How a member stands to the changes that are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncState {
    /// A change waits for it.
    InSync,
    /// It has all that was committed, and nothing waits for it.
    Exile,
    Out,
}

impl SyncState {
    /// The word for people and scripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::InSync => "yes",
            Self::Exile => "exile",
            Self::Out => "no",
        }
    }
}

impl GetGroupResponseProto {
    /// Which member leads, in a sentence that begins with a small letter.
    pub fn headline(&self) -> String {
        let Some(view) = &self.view else {
            return format!("member {} has not reached the coordinator yet.", self.answered_by);
        };
        let Some(active) = view.active else {
            return format!("no member is active; the last epoch was {}.", view.epoch);
        };
        let epoch = view.epoch;
        match self.members.iter().find(|member| member.member == active).map(MemberProto::role) {
            Some(RoleProto::Active) => format!("member {active} is active in epoch {epoch}."),
            Some(RoleProto::Reading) => format!(
                "member {active} has epoch {epoch} and answers only reads that no change in doubt has touched."
            ),
            Some(RoleProto::Unknown) | None => {
                format!("no member serves; member {active} had epoch {epoch}, and is not heard of.")
            }
            Some(doing) => {
                format!("no member serves; member {active} has epoch {epoch}: {}.", doing.word())
            }
        }
    }

    /// How many members have what was acknowledged, in a sentence. `None` while the view is not known.
    pub fn sync_sentence(&self) -> Option<String> {
        let view = self.view.as_ref()?;
        Some(format!(
            "{} of {} members in sync; a change is acknowledged when {} or more have it.",
            view.in_sync.len(),
            view.members.len(),
            view.in_sync_min
        ))
    }

    /// Whether changes wait for the member of this number.
    pub fn sync_of(&self, member: u32) -> SyncState {
        let holds = |stores: &[StoreProto]| stores.iter().any(|store| store.member == member);
        match &self.view {
            Some(view) if holds(&view.in_sync) => SyncState::InSync,
            Some(view) if holds(&view.exiles) => SyncState::Exile,
            _ => SyncState::Out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clover::admin::ViewProto;

    fn group(active: Option<u32>, role: Option<RoleProto>) -> GetGroupResponseProto {
        let store = |member| StoreProto { member, generation: 0 };
        let view = ViewProto {
            epoch: 3,
            active,
            in_sync: vec![store(1)],
            exiles: vec![store(2)],
            in_sync_min: 1,
            members: vec![1, 2, 3],
            ..ViewProto::default()
        };
        let member = |role: RoleProto| MemberProto { member: 1, role: role as i32, ..MemberProto::default() };
        GetGroupResponseProto {
            answered_by: 2,
            view: Some(view),
            members: role.map(member).into_iter().collect(),
            ..GetGroupResponseProto::default()
        }
    }

    #[test]
    fn a_headline_says_which_member_leads_and_what_it_does() {
        for (active, role, wanted) in [
            (Some(1), Some(RoleProto::Active), "member 1 is active in epoch 3."),
            (
                Some(1),
                Some(RoleProto::Reading),
                "member 1 has epoch 3 and answers only reads that no change in doubt has touched.",
            ),
            (Some(1), Some(RoleProto::Stopped), "no member serves; member 1 has epoch 3: stopped."),
            (
                Some(1),
                Some(RoleProto::Unknown),
                "no member serves; member 1 had epoch 3, and is not heard of.",
            ),
            (Some(4), None, "no member serves; member 4 had epoch 3, and is not heard of."),
            (None, Some(RoleProto::Standby), "no member is active; the last epoch was 3."),
        ] {
            assert_eq!(group(active, role).headline(), wanted);
        }
        let unknown = GetGroupResponseProto { answered_by: 2, ..GetGroupResponseProto::default() };
        assert_eq!(unknown.headline(), "member 2 has not reached the coordinator yet.");
        assert_eq!((unknown.sync_sentence(), unknown.sync_of(1)), (None, SyncState::Out));
    }

    #[test]
    fn a_member_is_in_sync_or_an_exile_or_neither() {
        let group = group(Some(1), None);
        assert_eq!([1, 2, 3].map(|member| group.sync_of(member).word()), ["yes", "exile", "no"]);
        let wanted = "1 of 3 members in sync; a change is acknowledged when 1 or more have it.";
        assert_eq!(group.sync_sentence().as_deref(), Some(wanted));
    }
}
