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
    pub address: Option<IpAddr>,
}
