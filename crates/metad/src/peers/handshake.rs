//! Both ends of a new connection say who they are and prove that they know the cluster's secret.
//!
//! ```text
//! hello      magic 8, form u16 (always 3), oldest version u16, newest version u16, group u32, member u32,
//!            generation u64, boot u64, member that is meant u32, nonce 32, length of the cluster id u8, cluster id,
//!            the release ([`super::release`])
//! challenge  0 u8, version u16, member u32, generation u64, boot u64, nonce 32, the release
//!            or 1 u8 and a sentence: refused
//! proof      hmac-sha256(secret, "connector" hello challenge) 32
//! verdict    0 u8, hmac-sha256(secret, "acceptor" hello challenge) 32
//!            or 1 u8 and a sentence: refused
//! keys       hmac-sha256(secret, "frames to the acceptor" hello challenge),
//!            hmac-sha256(secret, "frames to the connector" hello challenge)
//! ```
//!
//! Each is the body of a frame with a checksum. The one who connects proves itself first, so a stranger learns
//! nothing made with the secret. The version is the newest that both speak ([`super::version`]); both proofs and both
//! keys cover what each side has named, so nobody in between can talk two members into an older one. The keys are
//! those of the frames that follow ([`super::sealed`]).

use super::{
    frame::{self, FrameError},
    release::Release,
    sealed::{Opener, Sealer},
    version::{Version, Versions},
};
use base::{GroupId, Level, MemberId, MemberLife, MemberStore};
use bytes::{Buf, BufMut};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::{
    fmt, io,
    io::{Read, Write},
};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"clvrpeer";
/// The form of the hello. Earlier releases have the one version that they speak in this place.
const FORM: u16 = 3;
const NONCE_BYTES: usize = 32;
const MAC_BYTES: usize = 32;
/// More than any of the four has.
const BODY_BYTES_MAX: usize = 1024;

/// The identity of a member, as other members know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster_id: String,
    pub group: GroupId,
    pub store: MemberStore,
    pub boot: u64,
}

/// The secret of a cluster, which only its members know.
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

    /// The secret as it stands in the cluster's file.
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

/// The peer, as it has proved to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    pub store: MemberStore,
    pub boot: u64,
    pub release: Release,
}

impl Other {
    pub fn life(&self) -> MemberLife {
        MemberLife { store: self.store, boot: self.boot }
    }
}

/// The versions that this end speaks, and its demands of the other end.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub versions: Versions,
    /// The level that the group is at: a member that does not know it is refused.
    pub level: Level,
}

/// A connection whose both ends have proved themselves.
pub struct Session {
    pub other: Other,
    pub version: Version,
    /// Seals the frames that this end sends.
    pub sealer: Sealer,
    /// Opens the frames that this end receives.
    pub opener: Opener,
}

/// The handshake on the side that has connected, and means to reach member `to`.
///
/// # Errors
/// [`HandshakeError::Frame`] if the connection failed; [`HandshakeError::RefusedThere`] if the other end refuses and
/// says why. [`HandshakeError::Refused`] if another member than `to` answers, or it answers with a version that was not
/// offered, a release that does not know the group's level, or a proof made with another secret.
pub fn connect(
    stream: &mut (impl Read + Write),
    me: &Identity,
    secret: &Secret,
    terms: Terms,
    to: MemberId,
    nonce: [u8; NONCE_BYTES],
) -> Result<Session, HandshakeError> {
    let hello = encode_hello(me, terms.versions, to, &nonce);
    frame::write(stream, &hello)?;
    let challenge = frame::read(stream, BODY_BYTES_MAX)?;
    let (other, version) = decode_challenge(verdict(&challenge)?)?;
    if other.store.member != to {
        return Err(refused(format!("member {} answers where {to} was expected", other.store.member)));
    }
    if !terms.versions.contains(version) {
        return Err(refused(format!(
            "it has chosen version {version} of the protocol, which was not offered"
        )));
    }
    other.release.may_take_part(to, terms.level).map_err(refused)?;
    let proof = mac(secret, b"connector", &hello, &challenge).finalize().into_bytes();
    frame::write(stream, &proof)?;
    let answer = frame::read(stream, BODY_BYTES_MAX)?;
    mac(secret, b"acceptor", &hello, &challenge)
        .verify_slice(verdict(&answer)?)
        .map_err(|_| refused("it does not know the cluster's secret"))?;
    let keys = Keys::of(secret, &hello, &challenge);
    let (sealer, opener) = (Sealer::new(keys.to_acceptor), Opener::new(keys.to_connector));
    Ok(Session { other, version, sealer, opener })
}

/// The handshake on the side that was connected to.
///
/// # Errors
/// [`HandshakeError::Frame`] if the connection failed. [`HandshakeError::Refused`] if the other end means another
/// member, speaks no common version, does not know the group's level, or proves itself with another secret.
pub fn accept(
    stream: &mut (impl Read + Write),
    me: &Identity,
    secret: &Secret,
    terms: Terms,
    nonce: [u8; NONCE_BYTES],
) -> Result<Session, HandshakeError> {
    let hello = frame::read(stream, BODY_BYTES_MAX)?;
    let (other, version) = match check_hello(&hello, me, terms) {
        Ok(checked) => checked,
        Err(why) => {
            say_no(stream, &why);
            return Err(refused(why));
        }
    };
    let mut challenge = vec![0u8];
    challenge.put_u16_le(version.0);
    challenge.put_u32_le(me.store.member.0);
    challenge.put_u64_le(me.store.generation);
    challenge.put_u64_le(me.boot);
    challenge.put_slice(&nonce);
    Release::ours().encode(&mut challenge);
    frame::write(stream, &challenge)?;
    let proof = frame::read(stream, BODY_BYTES_MAX)?;
    if mac(secret, b"connector", &hello, &challenge).verify_slice(&proof).is_err() {
        say_no(stream, "the proof was made with another secret");
        return Err(refused("it does not know the cluster's secret"));
    }
    let mut answer = vec![0u8];
    answer.put_slice(&mac(secret, b"acceptor", &hello, &challenge).finalize().into_bytes());
    frame::write(stream, &answer)?;
    let keys = Keys::of(secret, &hello, &challenge);
    let (sealer, opener) = (Sealer::new(keys.to_connector), Opener::new(keys.to_acceptor));
    Ok(Session { other, version, sealer, opener })
}

/// The keys of one connection, made with random numbers of both sides.
struct Keys {
    to_acceptor: Hmac<Sha256>,
    to_connector: Hmac<Sha256>,
}

impl Keys {
    fn of(secret: &Secret, hello: &[u8], challenge: &[u8]) -> Self {
        let key = |label: &[u8]| {
            let bytes = mac(secret, label, hello, challenge).finalize().into_bytes();
            Hmac::new_from_slice(&bytes).expect("a key of any length will do")
        };
        Self { to_acceptor: key(b"frames to the acceptor"), to_connector: key(b"frames to the connector") }
    }
}

fn say_no(stream: &mut impl Write, why: &str) {
    let mut body = vec![1u8];
    body.extend(why.bytes().take(BODY_BYTES_MAX - 1));
    // It may be gone already; it is not owed a reason.
    let _ = frame::write(stream, &body);
}

fn encode_hello(me: &Identity, versions: Versions, to: MemberId, nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    let mut hello = Vec::with_capacity(256);
    hello.put_slice(MAGIC);
    hello.put_u16_le(FORM);
    hello.put_u16_le(versions.oldest.0);
    hello.put_u16_le(versions.newest.0);
    hello.put_u32_le(me.group.0);
    hello.put_u32_le(me.store.member.0);
    hello.put_u64_le(me.store.generation);
    hello.put_u64_le(me.boot);
    hello.put_u32_le(to.0);
    hello.put_slice(nonce);
    let cluster_id = me.cluster_id.as_bytes();
    hello.put_u8(u8::try_from(cluster_id.len()).expect("a cluster id has at most 255 bytes"));
    hello.put_slice(cluster_id);
    Release::ours().encode(&mut hello);
    hello
}

/// The other end as it names itself, and the version to be used; or the reason to refuse it.
fn check_hello(hello: &[u8], me: &Identity, terms: Terms) -> Result<(Other, Version), String> {
    const FIXED_BYTES: usize = 8 + 2 + 2 + 2 + 4 + 4 + 8 + 8 + 4 + NONCE_BYTES + 1;
    let (mut rest, ours) = (hello, terms.versions);
    if rest.len() < MAGIC.len() + 2 || &rest[..MAGIC.len()] != MAGIC {
        return Err("this is the port where members of a metadata group talk to each other".into());
    }
    rest.advance(MAGIC.len());
    let form = rest.get_u16_le();
    if form < FORM {
        return Err(format!(
            "version {form} of the members' protocol is too old for this release, which speaks {ours}: stop all \
             members, and start all of them with one release; from version {FORM} on releases can be mixed"
        ));
    }
    if form > FORM || hello.len() < FIXED_BYTES {
        return Err("the first frame makes no sense".into());
    }
    let theirs = Versions { oldest: Version(rest.get_u16_le()), newest: Version(rest.get_u16_le()) };
    let version = ours.newest_common(theirs).ok_or_else(|| {
        format!(
            "{theirs} of the members' protocol there and {ours} here have nothing in common: go through \
             a release between the two"
        )
    })?;
    let group = GroupId(rest.get_u32_le());
    let member = MemberId(rest.get_u32_le());
    let (generation, boot) = (rest.get_u64_le(), rest.get_u64_le());
    let meant = MemberId(rest.get_u32_le());
    rest.advance(NONCE_BYTES);
    let length = usize::from(rest.get_u8());
    if rest.len() < length {
        return Err("the cluster id is cut off".into());
    }
    let (rest, behind) = rest.split_at(length);
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
    let release = Release::decode(behind).ok_or("what it says of its release makes no sense")?;
    release.may_take_part(member, terms.level)?;
    Ok((Other { store: MemberStore { member, generation }, boot, release }, version))
}

/// The rest of an answer that begins with a yes; an error for a refusal.
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

fn decode_challenge(mut rest: &[u8]) -> Result<(Other, Version), HandshakeError> {
    if rest.len() < 2 + 4 + 8 + 8 + NONCE_BYTES {
        return Err(refused("its challenge makes no sense"));
    }
    let version = Version(rest.get_u16_le());
    let member = MemberId(rest.get_u32_le());
    let store = MemberStore { member, generation: rest.get_u64_le() };
    let boot = rest.get_u64_le();
    rest.advance(NONCE_BYTES);
    let release =
        Release::decode(rest).ok_or_else(|| refused("what it says of its release makes no sense"))?;
    Ok((Other { store, boot, release }, version))
}

fn mac(secret: &Secret, label: &[u8], hello: &[u8], challenge: &[u8]) -> Hmac<Sha256> {
    secret.mac(label, &[hello, challenge])
}

const _: () = assert!(MAC_BYTES + 1 < BODY_BYTES_MAX);
