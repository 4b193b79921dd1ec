//! Looks for what a left-out rule breaks.

use super::{Bounds, Counterexample, shorten, wander_many};
use group::{Broken, Order, Settings};

/// Bounds within which leaving out this rule shows, as far as a world without clocks can show it.
pub fn bounds_for(rule: Broken) -> Bounds {
    let settings = Settings { broken: Some(rule), ..Bounds::small_settings() };
    let wide = Bounds {
        settings,
        operations: 2,
        crashes: 3,
        wakes: 8,
        beats: 6,
        resets: 1,
        disorders: 1,
        unknowns: 0,
        alarms: 2,
        slow_disk: true,
        late_views: true,
        epochs: 6,
        log: 12,
        depth: 200,
        ..Bounds::default()
    };
    match rule {
        // Broken before anything else can happen.
        Broken::CommitBeforeReplication | Broken::ServesBeforeFirstCommit => {
            Bounds { starts_served: false, ..wide }
        }
        Broken::PromiseNotKept => Bounds { forgets_promises: true, ..wide },
        // A member has to come back into the in-sync set, for which it must answer a beacon.
        Broken::UnknownTakenAsLost => {
            Bounds { unknowns: 3, crashes: 0, beats: 12, resets: 0, disorders: 0, alarms: 3, ..wide }
        }
        Broken::LoweredMinimumKeepsExiles => Bounds {
            orders: vec![Order::Reconfigure {
                members: (1..=3).map(base::MemberId).collect(),
                in_sync_min: 1,
            }],
            operations: 3,
            ..wide
        },
        // A member that runs on with entries of before: one that begins anew has them taken over.
        Broken::AckOfOwnEnd => Bounds { crashes: 0, resets: 0, beats: 12, ..wide },
        // The new active and its follower have begun anew and know of no commit; a member that lacks it answers.
        Broken::ExpandAtLocalCommit => {
            Bounds { operations: 1, crashes: 4, resets: 0, disorders: 0, alarms: 0, ..wide }
        }
        Broken::AnyAnswerTaken => Bounds { late_answers: 3, beats: 12, crashes: 2, ..wide },
        _ => wide,
    }
}

/// The shortest story found in so many random ones.
pub fn hunt(rule: Broken, walks: u64) -> (Bounds, Option<Counterexample>) {
    let bounds = bounds_for(rule);
    let found = wander_many(0, walks, &bounds).found.map(|found| shorten(found, &bounds));
    (bounds, found)
}
