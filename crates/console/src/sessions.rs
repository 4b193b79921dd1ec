//! The users who have come in by a login link.

use crate::login::{LASTS_MS, Link};
use axum::http::HeaderMap;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// Checks the proof of a link: the signed bytes and the proof.
pub type Verify = Arc<dyn Fn(&[u8], &[u8]) -> bool + Send + Sync>;

/// Sessions at once; the one that ends first makes room.
const SESSIONS_MAX: usize = 64;
/// Used links that are remembered. They are forgotten when they are too old to be used; further ones are refused until then.
const USED_MAX: usize = 1_024;
/// How long a session lasts, in milliseconds.
pub const SESSION_MS: u64 = 12 * 3_600_000;
/// How far the clock of the machine where a link is made may be ahead, in milliseconds.
const AHEAD_MS: u64 = 60_000;

/// The knowledge with which a member takes links. Without it no user comes in.
#[derive(Clone)]
pub struct Keys {
    /// The text that tells the group of this member from all others, of other clusters as well.
    pub group: String,
    pub member: u32,
    pub verify: Verify,
}

pub struct Sessions {
    /// Links that are older may have been used before this process began, in milliseconds since 1970.
    began_ms: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    keys: Option<Keys>,
    /// Used links by nonce, with the time when they would have been too old.
    used: HashMap<String, u64>,
    sessions: HashMap<String, Session>,
}

struct Session {
    user: String,
    ends_ms: u64,
}

impl Sessions {
    pub fn new(began_ms: u64) -> Self {
        Self { began_ms, kept: Mutex::default() }
    }

    pub fn set_keys(&self, keys: Keys) {
        self.kept.lock().keys = Some(keys);
    }

    /// The name of the cookie: members on one host have one each, of whatever cluster, for cookies do not know ports.
    pub fn cookie(&self) -> String {
        match &self.kept.lock().keys {
            Some(keys) => {
                format!("clover_session_{:08x}_{}", crc32c::crc32c(keys.group.as_bytes()), keys.member)
            }
            None => "clover_session".to_owned(),
        }
    }

    /// Uses a link: the secret of a new session, and its user.
    ///
    /// # Errors
    /// The reason, in a sentence, why the link does not open a session.
    pub fn open(&self, text: &str, now_ms: u64) -> Result<(String, String), &'static str> {
        let Some((link, proof)) = Link::parse(text) else { return Err("This is no login link.") };
        let mut kept = self.kept.lock();
        let Some(keys) = &kept.keys else {
            return Err(
                "This server takes no login links: its cluster has no secret, or the server is not ready.",
            );
        };
        if !(keys.verify)(link.signed().as_bytes(), &proof) {
            return Err("This login link was not made with the cluster's secret.");
        }
        if link.member != keys.member {
            return Err("This login link is for another member of the group.");
        }
        if link.made_ms.saturating_add(LASTS_MS) < now_ms || link.made_ms > now_ms.saturating_add(AHEAD_MS) {
            return Err("This login link is too old. `clover admin login-link` prints a new one.");
        }
        if link.made_ms < self.began_ms {
            return Err(
                "This login link was made before the server began. `clover admin login-link` prints a new one.",
            );
        }
        kept.used.retain(|_, until_ms| *until_ms >= now_ms);
        if kept.used.contains_key(&link.nonce) {
            return Err("This login link was used already. `clover admin login-link` prints a new one.");
        }
        if kept.used.len() >= USED_MAX {
            return Err("Too many login links were used here in the last minutes. Try again later.");
        }
        kept.used.insert(link.nonce, link.made_ms.saturating_add(LASTS_MS + AHEAD_MS));
        kept.sessions.retain(|_, session| session.ends_ms > now_ms);
        if kept.sessions.len() >= SESSIONS_MAX {
            let first = kept
                .sessions
                .iter()
                .min_by_key(|(_, session)| session.ends_ms)
                .map(|(secret, _)| secret.clone());
            first.map(|secret| kept.sessions.remove(&secret));
        }
        let secret = random();
        kept.sessions
            .insert(secret.clone(), Session { user: link.user.clone(), ends_ms: now_ms + SESSION_MS });
        Ok((secret, link.user))
    }

    /// The user of a session.
    pub fn user(&self, secret: &str, now_ms: u64) -> Option<String> {
        let kept = self.kept.lock();
        kept.sessions
            .get(secret)
            .filter(|session| session.ends_ms > now_ms)
            .map(|session| session.user.clone())
    }

    pub fn close(&self, secret: &str) {
        self.kept.lock().sessions.remove(secret);
    }
}

/// 244 random bits as hexadecimal digits.
pub fn random() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

/// The value of a cookie.
pub fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(axum::http::header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const NOW_MS: u64 = 1_700_000_000_000;
    const PROOF: [u8; 3] = [1, 2, 3];

    fn sessions() -> Sessions {
        let sessions = Sessions::new(NOW_MS - 1_000);
        sessions.set_keys(keys("CID-1 BP-1", 2));
        sessions
    }

    fn keys(group: &str, member: u32) -> Keys {
        Keys { group: group.to_owned(), member, verify: Arc::new(|_, proof| proof == PROOF) }
    }

    #[test]
    fn members_of_all_clusters_have_cookies_of_their_own() {
        let cookie = |group, member| {
            let sessions = Sessions::new(NOW_MS);
            sessions.set_keys(keys(group, member));
            sessions.cookie()
        };
        let all = [
            cookie("CID-1 BP-1", 1),
            cookie("CID-1 BP-1", 2),
            cookie("CID-1 BP-2", 1),
            cookie("CID-2 BP-1", 1),
        ];
        let names: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(names.len(), all.len(), "{all:?}");
        assert!(
            all.iter().flat_map(|name| name.bytes()).all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        );
        // It stays when the server is started again.
        assert_eq!(cookie("CID-1 BP-1", 1), all[0]);
    }

    fn link(nonce: u64) -> Link {
        Link { member: 2, made_ms: NOW_MS, nonce: format!("{nonce:016}"), user: "ann".into() }
    }

    #[test]
    fn a_link_opens_one_session_for_its_user() {
        let sessions = sessions();
        let text = link(1).text(&PROOF);
        let (secret, user) = sessions.open(&text, NOW_MS).unwrap();
        assert_eq!((user.as_str(), secret.len()), ("ann", 64));
        assert_eq!(sessions.user(&secret, NOW_MS).as_deref(), Some("ann"));
        assert!(sessions.open(&text, NOW_MS + 1).unwrap_err().contains("used already"));
        assert_eq!(sessions.user(&secret, NOW_MS + SESSION_MS), None);
        assert_eq!(sessions.user("", NOW_MS), None);
        sessions.close(&secret);
        assert_eq!(sessions.user(&secret, NOW_MS), None);
    }

    #[test]
    fn links_that_do_not_hold_open_nothing() {
        let sessions = sessions();
        let refused =
            |link: Link, proof: &[u8], now_ms| sessions.open(&link.text(proof), now_ms).unwrap_err();
        assert!(refused(link(1), &[9], NOW_MS).contains("cluster's secret"));
        assert!(refused(Link { member: 1, ..link(1) }, &PROOF, NOW_MS).contains("another member"));
        assert!(refused(link(1), &PROOF, NOW_MS + LASTS_MS + 1).contains("too old"));
        assert!(
            refused(Link { made_ms: NOW_MS + AHEAD_MS + 1, ..link(1) }, &PROOF, NOW_MS).contains("too old")
        );
        assert!(
            refused(Link { made_ms: NOW_MS - 1_001, ..link(1) }, &PROOF, NOW_MS)
                .contains("before the server")
        );
        assert!(
            Sessions::new(0)
                .open(&link(1).text(&PROOF), NOW_MS)
                .unwrap_err()
                .contains("takes no login links")
        );
    }

    #[test]
    fn sessions_and_used_links_are_bounded() {
        let sessions = sessions();
        let first = sessions.open(&link(0).text(&PROOF), NOW_MS).unwrap().0;
        for number in 1..USED_MAX as u64 {
            sessions.open(&link(number).text(&PROOF), NOW_MS + 1).unwrap();
        }
        assert_eq!(sessions.kept.lock().sessions.len(), SESSIONS_MAX);
        assert_eq!(sessions.user(&first, NOW_MS), None);
        assert!(sessions.open(&link(5_000).text(&PROOF), NOW_MS).unwrap_err().contains("Too many"));
        let later = Link { made_ms: NOW_MS + 2 * LASTS_MS, ..link(5_000) };
        assert!(sessions.open(&later.text(&PROOF), NOW_MS + 2 * LASTS_MS).is_ok());
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append("cookie", HeaderValue::from_static("x_clover=1; clover=2"));
        headers.append("cookie", HeaderValue::from_static("clover_1=3"));
        assert_eq!(cookie(&headers, "clover").as_deref(), Some("2"));
        assert_eq!(cookie(&headers, "clover_1").as_deref(), Some("3"));
        assert_eq!(cookie(&headers, "over"), None);
    }
}
