//! The caller of an order proves that it knows the cluster's secret. A user's name proves nothing: the caller chooses it.
//!
//! ```text
//! operator                              member
//!   challenge                ────────▶
//!                            ◀────────  cluster, member, nonce
//!   order, request, nonce,   ────────▶  made here, not used yet, not older than half a minute, and the
//!   mac(secret, all of it)              mac is right: the order is carried out
//! ```
//!
//! A nonce tells by itself that this process made it, and when: strangers who ask for many take no memory. Only those
//! that were used are remembered, until they would be too old anyway. A member that passes an order on to the active
//! vouches for it, as for every call that it passes on.

use base::{FsError, MemberId, Moment};
use bytes::Bytes;
use env::Env;
use parking_lot::Mutex;
use proto::clover::admin as p;
use std::collections::BTreeMap;

use crate::peers::Secret;

const PURPOSE: &[u8] = b"clover order 1";
const CHALLENGE: &[u8] = b"clover challenge 1";
/// How long a nonce is good.
const NONCE_MS: u64 = 30_000;
const RANDOM_BYTES: usize = 16;
const TAG_BYTES: usize = 32;
const NONCE_BYTES: usize = RANDOM_BYTES + 8 + TAG_BYTES;

/// An order as it is sent, with its proof.
pub fn prove(
    secret: &Secret,
    challenge: &p::ChallengeResponseProto,
    order: &str,
    request: Bytes,
) -> p::OrderRequestProto {
    let nonce = challenge.nonce.clone();
    let parts = parts_of(&challenge.cluster_id, challenge.member, &nonce, order, &request);
    let mac = Bytes::copy_from_slice(&secret.sign(PURPOSE, &slices(&parts)));
    p::OrderRequestProto { order: order.to_owned(), request, nonce, mac }
}

type Parts<'a> = ([&'a [u8]; 4], [u8; 4]);

fn parts_of<'a>(
    cluster_id: &'a str,
    member: u32,
    nonce: &'a [u8],
    order: &'a str,
    request: &'a [u8],
) -> Parts<'a> {
    ([cluster_id.as_bytes(), nonce, order.as_bytes(), request], member.to_le_bytes())
}

fn slices<'a>(parts: &'a Parts<'a>) -> [&'a [u8]; 5] {
    let ([cluster_id, nonce, order, request], member) = parts;
    [cluster_id, member, nonce, order, request]
}

const HOW_TO_PROVE: &str = "name the members' secret_file with --secret-file, or on the machine of a member its \
                            configuration with --config";

/// The refusal of an order that comes without a proof.
pub fn wanted(order: &str) -> FsError {
    FsError::AccessDenied(format!(
        "The order {order} needs a proof of the cluster's secret, which `clover admin group` gives: {HOW_TO_PROVE}."
    ))
}

/// Why an order is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unproven {
    /// The challenge was not made here, is too old, or was used before.
    Nonce,
    Secret,
}

/// The nonces of one process.
pub struct Challenges {
    key: Secret,
    used: Mutex<BTreeMap<Bytes, Moment>>,
}

impl Challenges {
    pub fn new(env: &Env) -> Self {
        let mut key = [0; 32];
        env.random.fill(&mut key);
        Self { key: Secret::new(&key).expect("it is long enough"), used: Mutex::default() }
    }

    /// The challenge with which an order to `member` is to be proved.
    pub fn challenge(&self, env: &Env, cluster_id: &str, member: MemberId) -> p::ChallengeResponseProto {
        let nonce = self.make(env);
        p::ChallengeResponseProto { cluster_id: cluster_id.to_owned(), member: member.0, nonce }
    }

    /// Whether an order may be carried out; the error is for the one who has given it.
    pub fn admit(
        &self,
        secret: Option<&Secret>,
        cluster_id: &str,
        member: MemberId,
        order: &p::OrderRequestProto,
        now: Moment,
    ) -> Result<(), FsError> {
        let Some(secret) = secret else {
            return Err(FsError::AccessDenied(
                "This cluster was made by an early version and has no secret, so nobody can prove anything: put one into \
                 a file, and name it in secret_file of each member."
                    .into(),
            ));
        };
        self.check(secret, cluster_id, member, order, now).map_err(|why| match why {
            Unproven::Secret => FsError::AccessDenied(format!(
                "The order {} was proved with another secret than this cluster's: {HOW_TO_PROVE}.",
                order.order
            )),
            Unproven::Nonce => FsError::AccessDenied(format!(
                "The proof of the order {} was made for another member, for another start of this one, more than 30 s ago, \
                 or was used already. Give the order again.",
                order.order
            )),
        })
    }

    fn make(&self, env: &Env) -> Bytes {
        let mut nonce = vec![0; RANDOM_BYTES];
        env.random.fill(&mut nonce);
        nonce.extend_from_slice(&env.clock.moment().ns.to_le_bytes());
        let tag = self.key.sign(CHALLENGE, &[&nonce]);
        nonce.extend_from_slice(&tag);
        nonce.into()
    }

    /// Whether the caller that gives this order to `member` knows the secret. True once for each nonce.
    fn check(
        &self,
        secret: &Secret,
        cluster_id: &str,
        member: MemberId,
        order: &p::OrderRequestProto,
        now: Moment,
    ) -> Result<(), Unproven> {
        let made_at = self.made_at(&order.nonce).ok_or(Unproven::Nonce)?;
        if now.ms_since(made_at) > NONCE_MS {
            return Err(Unproven::Nonce);
        }
        let parts = parts_of(cluster_id, member.0, &order.nonce, &order.order, &order.request);
        if !secret.verifies(PURPOSE, &slices(&parts), &order.mac) {
            return Err(Unproven::Secret);
        }
        let mut used = self.used.lock();
        used.retain(|_, made_at| now.ms_since(*made_at) <= NONCE_MS);
        match used.insert(order.nonce.clone(), made_at) {
            None => Ok(()),
            Some(_) => Err(Unproven::Nonce),
        }
    }

    fn made_at(&self, nonce: &[u8]) -> Option<Moment> {
        let (said, tag) = nonce.split_at_checked(RANDOM_BYTES + 8)?;
        if nonce.len() != NONCE_BYTES || !self.key.verifies(CHALLENGE, &[said], tag) {
            return None;
        }
        let ns = u64::from_le_bytes(said[RANDOM_BYTES..].try_into().ok()?);
        Some(Moment { ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(of: &[u8]) -> Secret {
        Secret::new(of).unwrap()
    }

    fn challenge(challenges: &Challenges, env: &Env) -> p::ChallengeResponseProto {
        p::ChallengeResponseProto { cluster_id: "CID-1".into(), member: 2, nonce: challenges.make(env) }
    }

    #[test]
    fn an_order_is_good_once_for_its_member_and_its_words() {
        let env = Env::production();
        let (challenges, known) = (Challenges::new(&env), secret(b"a secret of the cluster"));
        let made = challenge(&challenges, &env);
        let order = prove(&known, &made, "failActive", Bytes::from_static(b"request"));
        let now = env.clock.moment();
        let check = |order: &p::OrderRequestProto, cluster: &str, member: u32| {
            challenges.check(&known, cluster, MemberId(member), order, now)
        };
        assert_eq!(check(&order, "CID-2", 2), Err(Unproven::Secret));
        assert_eq!(check(&order, "CID-1", 3), Err(Unproven::Secret), "made for another member");
        let other = p::OrderRequestProto { order: "uncleanElect".into(), ..order.clone() };
        assert_eq!(check(&other, "CID-1", 2), Err(Unproven::Secret));
        let other = p::OrderRequestProto { request: Bytes::from_static(b"another"), ..order.clone() };
        assert_eq!(check(&other, "CID-1", 2), Err(Unproven::Secret));
        assert_eq!(check(&order, "CID-1", 2), Ok(()));
        assert_eq!(check(&order, "CID-1", 2), Err(Unproven::Nonce), "a second time");
    }

    #[test]
    fn another_secret_and_a_nonce_of_elsewhere_or_long_ago_are_refused() {
        let env = Env::production();
        let (challenges, known) = (Challenges::new(&env), secret(b"a secret of the cluster"));
        let made = challenge(&challenges, &env);
        let check = |order: &p::OrderRequestProto, now: Moment| {
            challenges.check(&known, "CID-1", MemberId(2), order, now)
        };
        let now = env.clock.moment();
        let guessed = prove(&secret(b"a secret of somebody"), &made, "failActive", Bytes::new());
        assert_eq!(check(&guessed, now), Err(Unproven::Secret));
        let restarted = Challenges::new(&env);
        let elsewhere = prove(&known, &challenge(&restarted, &env), "failActive", Bytes::new());
        assert_eq!(check(&elsewhere, now), Err(Unproven::Nonce));
        let late = prove(&known, &made, "failActive", Bytes::new());
        assert_eq!(check(&late, now.plus_ms(NONCE_MS + 1)), Err(Unproven::Nonce));
        let short = p::OrderRequestProto { nonce: Bytes::from_static(b"x"), ..late.clone() };
        assert_eq!(check(&short, now), Err(Unproven::Nonce));
        assert_eq!(check(&late, now), Ok(()), "refusals have used nothing up");
    }
}
