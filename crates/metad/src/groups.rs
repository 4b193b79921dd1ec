//! Which groups a user is in, as the operating system says.
//!
//! Hadoop's default mapping asks the system's name service; the `id` command asks the very same one, LDAP
//! and SSSD included. Answers are kept for a while, and a look-up happens when a connection is made, never
//! while an operation is served.

use base::{Caller, Moment, caller::Authentication};
use parking_lot::Mutex;
use std::{collections::HashMap, process::Command, sync::Arc};

/// `hadoop.security.groups.cache.secs` has the same default.
const KEPT_MS: u64 = 300_000;

/// Users remembered at most: names come from the network.
const USER_COUNT_MAX: usize = 10_000;

type Groups = Arc<[Arc<str>]>;

#[derive(Default)]
pub struct GroupMapping {
    known: Mutex<HashMap<Arc<str>, (Groups, Moment)>>,
}

impl GroupMapping {
    /// The groups of `user`, the primary one first; none for a user that the system does not know.
    /// May run a command: not for a thread that others wait for.
    pub fn groups(&self, user: &str, now: Moment) -> Groups {
        if let Some(groups) = self.known_groups(user, now) {
            return groups;
        }
        let groups: Groups = ask_system(user).into();
        let mut known = self.known.lock();
        if known.len() >= USER_COUNT_MAX {
            known.clear();
        }
        known.insert(user.into(), (groups.clone(), now));
        groups
    }

    fn known_groups(&self, user: &str, now: Moment) -> Option<Groups> {
        let known = self.known.lock();
        let (groups, since) = known.get(user)?;
        (now.ms_since(*since) < KEPT_MS).then(|| groups.clone())
    }

    /// The same as [`GroupMapping::caller`] without running anything: `None` where that would be needed.
    pub fn known_caller(&self, user: &str, real_user: Option<&str>, now: Moment) -> Option<Arc<Caller>> {
        Some(caller_in(user, real_user, self.known_groups(user, now)?))
    }

    pub fn caller(&self, user: &str, real_user: Option<&str>, now: Moment) -> Arc<Caller> {
        caller_in(user, real_user, self.groups(user, now))
    }

    /// Forgets all answers (`-refreshUserToGroupsMappings`).
    pub fn refresh(&self) {
        self.known.lock().clear();
    }
}

fn caller_in(user: &str, real_user: Option<&str>, groups: Groups) -> Arc<Caller> {
    Arc::new(Caller {
        user: user.into(),
        real_user: real_user.map(Arc::from),
        authentication: Authentication::Simple,
        groups,
    })
}

fn ask_system(user: &str) -> Vec<Arc<str>> {
    // `id` would take a leading dash for an option, and other bytes have no business in a user's name.
    let plain = !user.is_empty()
        && !user.starts_with('-')
        && user.chars().all(|c| c.is_alphanumeric() || "._-@$+\\".contains(c));
    if !plain {
        return Vec::new();
    }
    // Primary group first, as `id -gn` and `id -Gn` print it.
    match Command::new("id").args(["-Gn", "--", user]).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(Arc::from).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_in_its_own_group_and_a_stranger_in_none() {
        let mapping = GroupMapping::default();
        assert_eq!(mapping.groups("root", Moment::default()).first().map(|g| &**g), Some("root"));
        assert!(mapping.groups("no-such-user-at-all", Moment::default()).is_empty());
        assert!(mapping.groups("--help", Moment::default()).is_empty());
    }
}
