//! Checks that a backup holds the group's own history. Only the word of the serving active counts.
//!
//! After an unclean election another member may still have the line of the log that was given up, with higher numbers
//! than the active, and answer. If its word counted, a backup of that line would pass for one of the group's.

use super::{BackupError, Told};
use base::{Epoch, LogPoint, Sn};

/// The state of confirming the entry with which the backup ends.
#[derive(Debug, Default)]
pub struct History {
    /// An active that served in this epoch had this very entry.
    confirmed: Option<(Epoch, LogPoint)>,
}

/// The next step before the backup may be called complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is to be done: the active has the end of the backup.
    Confirmed,
    /// No member serves, or the active does not know yet that this entry has committed.
    Waits,
    /// The active is asked for the entry of this number.
    Asks(Epoch, Sn),
}

impl History {
    pub fn next(&self, active: Option<&Told>, end: LogPoint) -> Next {
        let Some((active, epoch)) = active.and_then(|it| Some((it, it.serves?))) else { return Next::Waits };
        if end.id.sn == Sn(0) || self.confirmed == Some((epoch, end)) {
            Next::Confirmed
        } else if active.committed < end.id.sn || active.begins_after > end.id.sn {
            Next::Waits
        } else {
            Next::Asks(epoch, end.id.sn)
        }
    }

    /// The active of this epoch has `found` where the backup ends with `end`.
    pub fn heard(&mut self, epoch: Epoch, end: LogPoint, found: LogPoint) -> Result<(), BackupError> {
        if found != end {
            return Err(BackupError::OtherHistory { at: end.id.sn });
        }
        self.confirmed = Some((epoch, end));
        Ok(())
    }
}

/// How far entries of `it` may be taken: no further than the active knows the log to have committed.
pub fn reach(it: &Told, active: Option<&Told>) -> Sn {
    active.map_or(it.committed, |active| it.committed.min(active.committed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GroupId, Level, MemberId, TxId};
    use journal::archive::Whose;

    fn point(epoch: u64, sn: u64, chain: u64) -> LogPoint {
        LogPoint { id: TxId { epoch: Epoch(epoch), sn: Sn(sn) }, chain: base::Chain(chain) }
    }

    fn told(member: u32, committed: u64, serves: Option<u64>) -> Told {
        Told {
            member: MemberId(member),
            whose: Whose {
                cluster_id: "CID-1".into(),
                namespace_id: 1,
                block_pool: "BP-1".into(),
                created_ms: 1,
                root_owner: "o".into(),
                root_group: "g".into(),
                group: GroupId(0),
                first_level: Level(1),
            },
            now_ms: 1,
            committed: Sn(committed),
            end: Sn(committed),
            epoch: Epoch(9),
            begins_after: Sn(0),
            serves: serves.map(Epoch),
        }
    }

    #[test]
    fn a_member_with_the_line_that_was_given_up_confirms_nothing() {
        let mut history = History::default();
        let end = point(3, 50, 0xbad);
        // Member 3 has kept the line that an unclean election gave up, up to entry 70. It answers, and does not serve.
        let behind = told(3, 70, None);
        assert_eq!(history.next(None, end), Next::Waits);
        assert_eq!(history.next(Some(&behind), end), Next::Waits);
        // The active, of epoch 9, has come to entry 60: it is asked, and has another entry 50.
        let active = told(1, 60, Some(9));
        assert_eq!(history.next(Some(&active), end), Next::Asks(Epoch(9), Sn(50)));
        let refused = history.heard(Epoch(9), end, point(9, 50, 0x600d));
        assert!(matches!(refused, Err(BackupError::OtherHistory { at: Sn(50) })));
        assert_eq!(history.next(Some(&active), end), Next::Asks(Epoch(9), Sn(50)), "nothing was confirmed");
        // Nor is more taken from member 3 than the active knows to have committed.
        assert_eq!(reach(&behind, Some(&active)), Sn(60));
        assert_eq!(reach(&behind, None), Sn(70));
    }

    #[test]
    fn each_new_end_and_each_new_active_is_asked_for_once() {
        let mut history = History::default();
        let (end, active) = (point(3, 50, 5), told(1, 60, Some(3)));
        history.heard(Epoch(3), end, end).unwrap();
        assert_eq!(history.next(Some(&active), end), Next::Confirmed);
        assert_eq!(history.next(Some(&active), point(3, 51, 6)), Next::Asks(Epoch(3), Sn(51)));
        assert_eq!(history.next(Some(&told(2, 60, Some(4))), end), Next::Asks(Epoch(4), Sn(50)));
        // An active that has just begun does not know yet that the entry has committed.
        assert_eq!(history.next(Some(&told(2, 49, Some(4))), end), Next::Waits);
        assert_eq!(
            history.next(Some(&active), point(0, 0, 0)),
            Next::Confirmed,
            "an empty backup is nobody's"
        );
    }
}
