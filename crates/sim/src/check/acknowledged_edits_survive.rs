//! No acknowledged edit is ever lost.

use crate::history::History;
use base::LogPoint;

/// `end` is where a recovered log ends.
pub fn check(history: &History, end: LogPoint) {
    assert!(
        end.id.sn >= history.acknowledged,
        "acknowledged edits survive: entry {} was acknowledged, the log ends at {}",
        history.acknowledged,
        end.id
    );
}
