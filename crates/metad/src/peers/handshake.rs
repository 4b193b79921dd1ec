//! Both ends of a new connection say who they are and prove that they know the cluster's secret.
//!
//! ```text
//! hello      magic 8, version u16, group u32, member u32, generation u64, boot u64,
//!            member that is meant u32, nonce 32, length of the cluster id u8, cluster id
//! challenge  0 u8, member u32, generation u64, boot u64, nonce 32
//!            or 1 u8 and a sentence: refused
//! proof      hmac-sha256(secret, "connector" hello challenge) 32
//! verdict    0 u8, hmac-sha256(secret, "acceptor" hello challenge) 32
//!            or 1 u8 and a sentence: refused
//! ```
//!
//! Each is the body of a frame. The one who connects proves itself first, so a stranger learns nothing made with
//! the secret. What follows on the connection is checked against accidents, not against someone who can change
//! bytes on the wire: keep the members' ports in a network of their own.

use super::{
    codec::VERSION,
    frame::{self, FrameError},
};
use base::{GroupId, MemberId, MemberStore};
use bytes::{Buf, BufMut};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::{
    fmt, io,
    io::{Read, Write},
};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"clvrpeer";
const NONCE_BYTES: usize = 32;
const MAC_BYTES: usize = 32;
/// More than any of the four has.
const BODY_BYTES_MAX: usize = 1024;

/// Who a member is, to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster_id: String,
    pub group: GroupId,
    pub store: MemberStore,
    pub boot: u64,
}

/// What members of a cluster know and others do not.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Shorter ones can be guessed.
    pub const BYTES_MIN: usize = 16;

    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= Self::BYTES_MIN).then(|| Self(bytes.to_vec()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A proof, for these parts and this purpose, of knowing the secret.
    pub fn sign(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; MAC_BYTES] {
        self.mac(purpose, parts).finalize().into_bytes().into()
    }

    /// Whether `proof` is one, compared in constant time.
    pub fn verifies(&self, purpose: &[u8], parts: &[&[u8]], proof: &[u8]) -> bool {
        self.mac(purpose, parts).verify_slice(proof).is_ok()
    }

    fn mac(&self, purpose: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        for part in std::iter::once(&purpose).chain(parts) {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }

    /// As it stands in the cluster's file.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[derive(Debug, Error)]
pub enum HandshakeError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Refused(String),
    #[error("the other side refuses: {0}")]
    RefusedThere(String),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        Self::Frame(error.into())
    }
}

fn refused(why: impl Into<String>) -> HandshakeError {
    HandshakeError::Refused(why.into())
}

/// The other end, as it has proved to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    pub store: MemberStore,
    pub boot: u64,
}

/// The side that has connected, and means `to`.
pub fn connect(
    stream: &mut (impl Read + Write),
    me: &Identity,
    secret: &Secret,
    to: MemberId,
    nonce: [u8; NONCE_BYTES],
) -> Result<Other, HandshakeError> {
    let hello = encode_hello(me, to, &nonce);
    frame::write(stream, &hello)?;
    let challenge = frame::read(stream, BODY_BYTES_MAX)?;
    let other = decode_challenge(verdict(&challenge)?)?;
    if other.store.member != to {
        return Err(refused(format!("member {} answers where {to} was expected", other.store.member)));
    }
    let proof = mac(secret, b"connector", &hello, &challenge).finalize().into_bytes();
    frame::write(stream, &proof)?;
    let answer = frame::read(stream, BODY_BYTES_MAX)?;
    mac(secret, b"acceptor", &hello, &challenge)
        .verify_slice(verdict(&answer)?)
        .map_err(|_| refused("it does not know the cluster's secret"))?;
    Ok(other)
}

/// The side that was connected to.
pub fn accept(
    stream: &mut (impl Read + Write),
    me: &Identity,
    secret: &Secret,
    nonce: [u8; NONCE_BYTES],
) -> Result<Other, HandshakeError> {
    let hello = frame::read(stream, BODY_BYTES_MAX)?;
    let other = match check_hello(&hello, me) {
        Ok(other) => other,
        Err(why) => {
            say_no(stream, &why);
            return Err(refused(why));
        }
    };
    let mut challenge = vec![0u8];
    challenge.put_u32_le(me.store.member.0);
    challenge.put_u64_le(me.store.generation);
    challenge.put_u64_le(me.boot);
    challenge.put_slice(&nonce);
    frame::write(stream, &challenge)?;
    let proof = frame::read(stream, BODY_BYTES_MAX)?;
    if mac(secret, b"connector", &hello, &challenge).verify_slice(&proof).is_err() {
        say_no(stream, "the proof was made with another secret");
        return Err(refused("it does not know the cluster's secret"));
    }
    let mut answer = vec![0u8];
    answer.put_slice(&mac(secret, b"acceptor", &hello, &challenge).finalize().into_bytes());
    frame::write(stream, &answer)?;
    Ok(other)
}

fn say_no(stream: &mut impl Write, why: &str) {
    let mut body = vec![1u8];
    body.extend(why.bytes().take(BODY_BYTES_MAX - 1));
    // It may be gone already; it is not owed a reason.
    let _ = frame::write(stream, &body);
}

fn encode_hello(me: &Identity, to: MemberId, nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    let mut hello = Vec::with_capacity(256);
    hello.put_slice(MAGIC);
    hello.put_u16_le(VERSION);
    hello.put_u32_le(me.group.0);
    hello.put_u32_le(me.store.member.0);
    hello.put_u64_le(me.store.generation);
    hello.put_u64_le(me.boot);
    hello.put_u32_le(to.0);
    hello.put_slice(nonce);
    let cluster_id = me.cluster_id.as_bytes();
    hello.put_u8(u8::try_from(cluster_id.len()).expect("a cluster id has at most 255 bytes"));
    hello.put_slice(cluster_id);
    hello
}

/// Who it says it is, or why it is not talked to.
fn check_hello(hello: &[u8], me: &Identity) -> Result<Other, String> {
    const FIXED_BYTES: usize = 8 + 2 + 4 + 4 + 8 + 8 + 4 + NONCE_BYTES + 1;
    let mut rest = hello;
    if rest.len() < MAGIC.len() + 2 || &rest[..MAGIC.len()] != MAGIC {
        return Err("this is the port where members of a metadata group talk to each other".into());
    }
    rest.advance(MAGIC.len());
    let version = rest.get_u16_le();
    if version != VERSION {
        return Err(format!(
            "version {version} of the protocol is not {VERSION}; use one release on all members"
        ));
    }
    if hello.len() < FIXED_BYTES {
        return Err("the first frame is too short".into());
    }
    let group = GroupId(rest.get_u32_le());
    let member = MemberId(rest.get_u32_le());
    let (generation, boot) = (rest.get_u64_le(), rest.get_u64_le());
    let meant = MemberId(rest.get_u32_le());
    rest.advance(NONCE_BYTES);
    let length = usize::from(rest.get_u8());
    if rest.len() != length {
        return Err("the cluster id is cut off".into());
    }
    if rest != me.cluster_id.as_bytes() {
        return Err(format!("cluster {} is not {}", String::from_utf8_lossy(rest), me.cluster_id));
    }
    if group != me.group {
        return Err(format!("group {group} is not {}", me.group));
    }
    if meant != me.store.member {
        return Err(format!("member {meant} is meant, this is member {}", me.store.member));
    }
    if member == me.store.member {
        return Err(format!("another server calls itself member {member} as well"));
    }
    Ok(Other { store: MemberStore { member, generation }, boot })
}

/// What follows a yes.
fn verdict(body: &[u8]) -> Result<&[u8], HandshakeError> {
    match body.split_first() {
        Some((0, rest)) => Ok(rest),
        Some((1, why)) => Err(HandshakeError::RefusedThere(printable(why))),
        _ => Err(refused("its answer makes no sense")),
    }
}

/// A sentence of somebody who has proved nothing yet.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).take(300).collect()
}

fn decode_challenge(mut rest: &[u8]) -> Result<Other, HandshakeError> {
    if rest.len() != 4 + 8 + 8 + NONCE_BYTES {
        return Err(refused("its challenge makes no sense"));
    }
    let member = MemberId(rest.get_u32_le());
    let store = MemberStore { member, generation: rest.get_u64_le() };
    Ok(Other { store, boot: rest.get_u64_le() })
}

fn mac(secret: &Secret, label: &[u8], hello: &[u8], challenge: &[u8]) -> Hmac<Sha256> {
    secret.mac(label, &[hello, challenge])
}

const _: () = assert!(MAC_BYTES + 1 < BODY_BYTES_MAX);
