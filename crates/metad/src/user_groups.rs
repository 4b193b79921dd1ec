//! The groups of a user, by the configuration or else by the operating system.
//!
//! Hadoop's default mapping asks the system's name service; the `id` command asks the very same one, LDAP
//! and SSSD included. Answers are kept for a while, and a look-up happens when a connection is made, never
//! while an operation is served.

use base::{Caller, Moment, caller::Authentication};
use env::{program, users};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The system's answer is waited for so long. A directory service may be slow, or away.
const ID_LIMIT: Duration = Duration::from_secs(30);
const ID_BYTES_MAX: u64 = 1 << 20;
/// Users remembered at most: names come from the network.
const USER_COUNT_MAX: usize = 10_000;

type Groups = Arc<[Arc<str>]>;

/// The configuration of the mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserGroupsConfig {
    /// Users whose groups are not asked for; `hadoop.user.group.static.mapping.overrides`.
    pub overrides: Vec<(String, Vec<String>)>,
    /// How long an answer of the system is kept; `hadoop.security.groups.cache.secs`.
    pub kept_ms: u64,
}

impl Default for UserGroupsConfig {
    /// Hadoop's: the user of its web pages is in no group.
    fn default() -> Self {
        Self { overrides: vec![("dr.who".into(), Vec::new())], kept_ms: 300_000 }
    }
}

impl UserGroupsConfig {
    /// Reads `user=group,group;user=;…`. `None` for a text that means nothing.
    pub fn parse_overrides(text: &str) -> Option<Vec<(String, Vec<String>)>> {
        let one = |part: &str| {
            let mut sides = part.split('=').filter(|side| !side.is_empty());
            let user = sides.next()?.trim().to_owned();
            let groups = sides.next().unwrap_or_default().split(',').map(str::trim);
            let groups = groups.filter(|group| !group.is_empty()).map(str::to_owned).collect();
            (sides.next().is_none() && !user.is_empty()).then_some((user, groups))
        };
        text.split(';').map(str::trim).filter(|part| !part.is_empty()).map(one).collect()
    }
}

pub struct UserGroups {
    overrides: HashMap<String, Groups>,
    kept_ms: u64,
    /// A refresh was ordered once: what a connection was given when it was made may be out of date.
    is_refreshed: AtomicBool,
    known: Mutex<HashMap<Arc<str>, (Groups, Moment)>>,
}

impl UserGroups {
    pub fn new(config: &UserGroupsConfig) -> Self {
        let groups = |names: &[String]| names.iter().map(|name| Arc::from(&**name)).collect();
        let overrides = config.overrides.iter().map(|(user, names)| (user.clone(), groups(names))).collect();
        Self {
            overrides,
            kept_ms: config.kept_ms,
            is_refreshed: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

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
        if let Some(groups) = self.overrides.get(user) {
            return Some(groups.clone());
        }
        let known = self.known.lock();
        let (groups, since) = known.get(user)?;
        (now.ms_since(*since) < self.kept_ms).then(|| groups.clone())
    }

    /// The caller like [`UserGroups::caller`], but without running a command: `None` if a command would be needed.
    pub fn known_caller(&self, user: &str, real_user: Option<&str>, now: Moment) -> Option<Arc<Caller>> {
        Some(caller_in(user, real_user, self.known_groups(user, now)?))
    }

    pub fn caller(&self, user: &str, real_user: Option<&str>, now: Moment) -> Arc<Caller> {
        caller_in(user, real_user, self.groups(user, now))
    }

    /// The caller of a call, with the groups of today: those of the connection, until a refresh was ordered. May
    /// run a command then, once for a user and a while.
    pub fn renewed(&self, caller: Arc<Caller>, now: impl FnOnce() -> Moment) -> Arc<Caller> {
        if !self.is_refreshed.load(Ordering::Acquire) {
            return caller;
        }
        let now = now();
        let (user, real) = (&caller.user, caller.real_user.as_deref());
        match self.known_groups(user, now) {
            Some(groups) if groups == caller.groups => caller,
            Some(groups) => caller_in(user, real, groups),
            None => tokio::task::block_in_place(|| self.caller(user, real, now)),
        }
    }

    /// Forgets all answers (`-refreshUserToGroupsMappings`).
    pub fn refresh(&self) {
        self.known.lock().clear();
        self.is_refreshed.store(true, Ordering::Release);
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
    let args = ["-Gn", "--", user].map(str::to_owned);
    match program::ask("id", &args, ID_LIMIT, ID_BYTES_MAX) {
        Ok(answer) if answer.has_succeeded => {
            String::from_utf8_lossy(&answer.output).split_whitespace().map(Arc::from).collect()
        }
        Ok(_) => Vec::new(),
        // A container may have no such program. The same databases are asked here then, without a bound on the time.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            users::groups_of(user).into_iter().map(Arc::from).collect()
        }
        Err(error) => {
            tracing::error!(user, %error, "the system was asked for the groups of a user, and did not answer");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_in_its_own_group_and_a_stranger_in_none() {
        let mapping = UserGroups::new(&UserGroupsConfig::default());
        assert_eq!(mapping.groups("root", Moment::default()).first().map(|g| &**g), Some("root"));
        assert!(mapping.groups("no-such-user-at-all", Moment::default()).is_empty());
        assert!(mapping.groups("--help", Moment::default()).is_empty());
    }

    /// `hadoop.user.group.static.mapping.overrides`: "user1=group1,group2;user2=;user3=group2".
    #[test]
    fn the_configuration_has_the_first_word() {
        let overrides = UserGroupsConfig::parse_overrides("user1=group1, group2;root=;user3=group2;");
        let config =
            UserGroupsConfig { overrides: overrides.unwrap_or_default(), ..UserGroupsConfig::default() };
        let mapping = UserGroups::new(&config);
        let groups = |user: &str| {
            mapping.groups(user, Moment::default()).iter().map(|group| group.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(groups("user1"), ["group1", "group2"]);
        assert!(groups("root").is_empty());
        assert_eq!(groups("user3"), ["group2"]);
        mapping.refresh();
        assert_eq!(groups("user3"), ["group2"]);
        // A connection keeps what it was given, until it is told better.
        let given = Arc::new(Caller::simple("user3", &["group7"]));
        let fresh = UserGroups::new(&config);
        assert_eq!(fresh.renewed(given.clone(), Moment::default), given);
        assert!(mapping.renewed(given, Moment::default).is_member_of("group2"));
        for nonsense in ["=a", "a=b=c", "x=y;="] {
            assert_eq!(UserGroupsConfig::parse_overrides(nonsense).is_none(), nonsense != "=a", "{nonsense}");
        }
        assert_eq!(UserGroupsConfig::parse_overrides(""), Some(Vec::new()));
    }
}
