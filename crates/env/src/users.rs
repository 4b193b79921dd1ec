//! The system's users and groups, by number and by name. They are asked of the system's databases, so those of a directory service
//! are known as well. No program is run: a container may have none.

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use std::ffi::CString;
use thiserror::Error;

/// The environment variable that names the user of a process where names are believed: a client's, and a server's.
pub const VARIABLE: &str = "HADOOP_USER_NAME";

/// The user of this process has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "user id {0} has no name on this machine: give it one in the system's user database (/etc/passwd), or set {VARIABLE}"
)]
pub struct Nameless(pub u32);

/// The name of the user of this process: what [`VARIABLE`] says, or else [`of_system`].
///
/// # Errors
/// [`Nameless`] if neither the variable nor the system names the user.
pub fn of_process() -> Result<String, Nameless> {
    set(VARIABLE).map_or_else(of_system, Ok)
}

/// The system's name for the user of this process. If it has none, as with the numbers that containers are given, the
/// variable `USER` may name one.
///
/// # Errors
/// [`Nameless`] if neither does.
pub fn of_system() -> Result<String, Nameless> {
    named(own_id(), set("USER"))
}

/// The number of the user of this process.
pub fn own_id() -> u32 {
    Uid::effective().as_raw()
}

fn named(id: u32, otherwise: Option<String>) -> Result<String, Nameless> {
    user_name(id).or(otherwise).ok_or(Nameless(id))
}

fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|name| !name.is_empty())
}

/// The name of a user; `None` if the system knows no such user, or cannot be asked.
pub fn user_name(id: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(id)).ok()?.map(|user| user.name)
}

/// The number of a user; `None` as for [`user_name`].
pub fn user_id(name: &str) -> Option<u32> {
    User::from_name(name).ok()?.map(|user| user.uid.as_raw())
}

/// The name of a group; `None` as for [`user_name`].
pub fn group_name(id: u32) -> Option<String> {
    Group::from_gid(Gid::from_raw(id)).ok()?.map(|group| group.name)
}

/// The number of a group; `None` as for [`user_name`].
pub fn group_id(name: &str) -> Option<u32> {
    Group::from_name(name).ok()?.map(|group| group.gid.as_raw())
}

/// The names of a user's groups, the first group first. None if the system does not know the user. A group without a name is left
/// out. This waits for as long as the system's databases take.
pub fn groups_of(user: &str) -> Vec<String> {
    let Some(own) = User::from_name(user).ok().flatten() else { return Vec::new() };
    let Ok(name) = CString::new(user) else { return Vec::new() };
    let all = getgrouplist(&name, own.gid).unwrap_or_default();
    let others = all.into_iter().filter(|group| *group != own.gid);
    std::iter::once(own.gid).chain(others).filter_map(|group| group_name(group.as_raw())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far above the numbers that systems and their containers give to anybody.
    const STRANGER: u32 = 4_123_456_789;

    #[test]
    fn users_and_groups_are_known_by_number_and_by_name() {
        assert_eq!((user_name(0).as_deref(), user_id("root")), (Some("root"), Some(0)));
        assert_eq!((group_name(0).as_deref(), group_id("root")), (Some("root"), Some(0)));
        assert_eq!(groups_of("root").first().map(String::as_str), Some("root"));
        assert_eq!((user_name(STRANGER), user_id("no-such-user-at-all")), (None, None));
        assert_eq!((group_name(STRANGER), group_id("no-such-group-at-all")), (None, None));
        assert!(groups_of("no-such-user-at-all").is_empty() && groups_of("a\0b").is_empty());
    }

    #[test]
    fn who_has_no_name_is_told_what_to_do() {
        assert_eq!(named(0, Some("other".into())).as_deref(), Ok("root"), "the system has the first word");
        assert_eq!(named(STRANGER, Some("other".into())).as_deref(), Ok("other"));
        let error = named(STRANGER, None).unwrap_err().to_string();
        assert!(error.contains("user id 4123456789 has no name"), "{error}");
        assert!(error.contains("/etc/passwd") && error.contains("set HADOOP_USER_NAME"), "{error}");
    }
}
