//! The user behind a call, and the machine that the call came from.

use crate::{CallId, ClientId};
use std::{fmt, net::IpAddr, sync::Arc};

/// How a caller proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// The name was believed.
    Simple,
    Kerberos,
    Token,
}

/// The user on whose behalf an operation runs. Groups are looked up before an operation is planned:
/// no look-up happens on the thread that serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub user: Arc<str>,
    /// The user who authenticated, where `user` is one that it acts for.
    pub real_user: Option<Arc<str>>,
    pub authentication: Authentication,
    pub groups: Arc<[Arc<str>]>,
}

impl Caller {
    pub fn simple(user: &str, groups: &[&str]) -> Self {
        Self {
            user: user.into(),
            real_user: None,
            authentication: Authentication::Simple,
            groups: groups.iter().map(|group| Arc::from(*group)).collect(),
        }
    }

    pub fn is_member_of(&self, group: &str) -> bool {
        self.groups.iter().any(|mine| &**mine == group)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.real_user {
            Some(real) => write!(f, "{} via {real}", self.user),
            None => f.write_str(&self.user),
        }
    }
}

/// Identifies a call: the key of the retry cache, and the address that the call came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOrigin {
    pub client_id: ClientId,
    pub call_id: CallId,
    /// How often the client has already sent this very call: 0 for the first time, -1 when unknown.
    pub retry_count: i32,
    /// How often members of the group had sent on, or begun, this copy before, and its fate was unknown.
    pub repeats: u32,
    pub address: Option<IpAddr>,
}

impl CallOrigin {
    /// The place of this copy among all copies of its call. `None`: the client does not count.
    pub fn copy(&self) -> Option<CopyOfCall> {
        let retry_count = u32::try_from(self.retry_count).ok()?;
        Some(CopyOfCall { retry_count, repeats: self.repeats })
    }
}

/// One of the copies of a call, in the order in which they were sent. A client that has sent a later copy hears no answer to an
/// earlier one any more, however often members of the group have repeated that: so the client's own count comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopyOfCall {
    /// [`CallOrigin::retry_count`], where the client counts.
    pub retry_count: u32,
    /// [`CallOrigin::repeats`].
    pub repeats: u32,
}

impl CopyOfCall {
    /// Whether another copy of the call was sent before this one. It may still be somewhere.
    pub fn has_older(self) -> bool {
        self != Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_client_is_later_than_all_that_members_made_of_an_earlier_one() {
        let copy = |retry_count, repeats| {
            let client_id = ClientId([1; 16]);
            CallOrigin { client_id, call_id: CallId(1), retry_count, repeats, address: None }.copy()
        };
        assert!(copy(0, 0) < copy(0, 1) && copy(0, 7) < copy(1, 0) && copy(1, 0) < copy(1, 1));
        assert!([copy(0, 1), copy(1, 0)].into_iter().flatten().all(CopyOfCall::has_older));
        assert!(!copy(0, 0).unwrap().has_older());
        assert_eq!(copy(-1, 3), None);
    }
}
