//! The requests to ZooKeeper, one function each. A change takes two round trips: the first reads the view that the change is
//! based on, the second writes. A read takes one round trip, because it does not wait for the answer to the sync before it.

use super::{
    nodes,
    session::{self, Session},
};
use crate::{
    Basis, ChangeError, MemberRecord, ReadError, Version, Versioned,
    text::{self, VALUE_BYTES_MAX},
};
use base::{GroupId, GroupView, MemberId, MemberLife};
use std::time::Duration;
use zookeeper_client::{Client, Error, MultiWriteError, Stat};

/// Before a read that failed is tried again; the caller's patience ends it.
const AGAIN: Duration = Duration::from_millis(20);
/// Rivals that a write of a member's own record may meet: there should be none.
const TRIES_MAX: usize = 5;

/// ZooKeeper counts from 0; a version here is never 0.
fn version(stat: &Stat) -> Version {
    Version(u64::from(stat.version.max(0).unsigned_abs()) + 1)
}

fn stat_version(version: Version) -> Option<i32> {
    version.0.checked_sub(1).and_then(|version| i32::try_from(version).ok())
}

/// Whether the same request may succeed on the next connection, or is of no known outcome on this.
fn is_passing(error: &Error) -> bool {
    !matches!(
        error,
        Error::NoAuth
            | Error::InvalidAcl
            | Error::QuotaExceeded
            | Error::MarshallingError
            | Error::Unimplemented
            | Error::BadArguments(_)
            | Error::NoChildrenForEphemerals
            | Error::NoNode
            | Error::NodeExists
            | Error::BadVersion
    )
}

fn unreadable(path: &str, what: impl std::fmt::Display) -> ReadError {
    ReadError { reason: format!("{path}: {what}") }
}

fn refused(path: &str, what: impl std::fmt::Display) -> ChangeError {
    ChangeError::Refused { reason: format!("{path}: {what}") }
}

fn failed(path: &str, error: Error) -> ChangeError {
    match error {
        Error::BadVersion | Error::NoNode | Error::NodeExists => ChangeError::BadVersion,
        error if is_passing(&error) => ChangeError::Unknown { reason: format!("{path}: {error}") },
        error => refused(path, error),
    }
}

/// The index of the part that failed, if one did, and why.
fn part(error: MultiWriteError) -> (Option<usize>, Error) {
    match error {
        MultiWriteError::RequestFailed { source } => (None, source),
        MultiWriteError::OperationFailed { index, source } => (Some(index), source),
    }
}

/// A node's value after a sync, asked again until the answer is final.
async fn get(session: &Session, path: &str) -> Result<Option<(Vec<u8>, Stat)>, Error> {
    loop {
        let client = session.link().await.client;
        // Requests of one session are served in their order, so the second need not wait for the first.
        let (sync, value) = tokio::join!(client.sync(path), client.get_data(path));
        match sync.and(value) {
            Ok(found) => return Ok(Some(found)),
            Err(Error::NoNode) => return Ok(None),
            Err(error) if is_passing(&error) => tokio::time::sleep(AGAIN).await,
            Err(error) => return Err(error),
        }
    }
}

async fn get_member(
    session: &Session,
    group: GroupId,
    member: MemberId,
) -> Result<Option<(MemberRecord, Stat)>, String> {
    let path = session.nodes.member(group, member);
    let Some((bytes, stat)) = get(session, &path).await.map_err(|error| format!("{path}: {error}"))? else {
        return Ok(None);
    };
    let record = nodes::decode_member(&bytes, member).map_err(|what| format!("{path}: {what}"))?;
    Ok(Some((record, stat)))
}

pub async fn read(session: &Session, group: GroupId) -> Result<Option<Versioned>, ReadError> {
    let path = session.nodes.state(group);
    let Some((bytes, stat)) = get(session, &path).await.map_err(|error| unreadable(&path, error))? else {
        return Ok(None);
    };
    let view = nodes::decode_view(&bytes).map_err(|what| unreadable(&path, what))?;
    Ok(Some(Versioned { version: version(&stat), view }))
}

pub async fn create(session: &Session, group: GroupId, view: &GroupView) -> Result<Version, ChangeError> {
    let path = session.nodes.state(group);
    let data = nodes::encode_view(view).map_err(|what| refused(&path, what))?;
    create_node(session, &path, &data, &session.nodes.directories(group)).await?;
    Ok(Version(1))
}

/// Makes a node, and its parents if they are missing.
async fn create_node(
    session: &Session,
    path: &str,
    data: &[u8],
    parents: &[String],
) -> Result<(), ChangeError> {
    let client = session.link().await.client;
    match client.create(path, data, &session.persistent()).await {
        Ok(_) => return Ok(()),
        Err(Error::NoNode) => {}
        Err(error) => return Err(failed(path, error)),
    }
    make_parents(session, &client, parents).await?;
    client.create(path, data, &session.persistent()).await.map_err(|error| failed(path, error))?;
    Ok(())
}

async fn make_parents(session: &Session, client: &Client, parents: &[String]) -> Result<(), ChangeError> {
    let made = async {
        session.make_root(client).await?;
        for parent in parents {
            session::make(client, parent, &session.persistent()).await?;
        }
        Ok(())
    };
    made.await.map_err(|(path, error): (String, Error)| failed(&path, error))
}

pub async fn change(
    session: &Session,
    group: GroupId,
    expected: Basis,
    view: &GroupView,
    requires: &[MemberLife],
) -> Result<Version, ChangeError> {
    let path = session.nodes.state(group);
    let data = nodes::encode_view(view).map_err(|what| refused(&path, what))?;
    let expected_version = stat_version(expected.version).ok_or(ChangeError::BadVersion)?;
    if requires.is_empty() {
        let client = session.link().await.client;
        is_basis(&path, client.get_data(&path).await, expected)?;
        let set = client.set_data(&path, &data, Some(expected_version)).await;
        return Ok(version(&set.map_err(|error| failed(&path, error))?));
    }
    let mut met = None;
    for _ in 0..TRIES_MAX {
        let mut checks = Vec::with_capacity(requires.len());
        for life in requires {
            let member = life.store.member;
            let reason = |reason| ChangeError::Unknown { reason };
            match get_member(session, group, member).await.map_err(reason)? {
                Some((record, stat)) if record.life == *life => checks.push((member, stat.version)),
                _ => return Err(ChangeError::MemberChanged(member)),
            }
        }
        // The records are asked for on as many connections as it takes. The view is looked at on the one that carries the change.
        let client = session.link().await.client;
        is_basis(&path, client.get_data(&path).await, expected)?;
        let mut multi = client.new_multi_writer();
        for (member, version) in &checks {
            let path = session.nodes.member(group, *member);
            multi.add_check_version(&path, *version).map_err(|error| refused(&path, error))?;
        }
        multi.add_set_data(&path, &data, Some(expected_version)).map_err(|error| refused(&path, error))?;
        match multi.commit().await.map_err(part) {
            // The set is the last part; its success is that of all, and raises the version by one.
            Ok(_) => return Ok(Version(expected.version.0 + 1)),
            Err((Some(index), Error::BadVersion | Error::NoNode)) if index < checks.len() => {
                met = Some(checks[index].0);
            }
            Err((_, error)) => return Err(failed(&path, error)),
        }
    }
    // It writes its record all the time.
    Err(ChangeError::MemberChanged(met.expect("every try but the last ends here")))
}

/// Whether the view that was read is the one expected. ZooKeeper compares versions only, and one that was put back from a
/// backup comes to the same version again with another view. It is not put back between this read and the change that follows
/// it on the same connection: that would end the connection, and with it the change.
fn is_basis(path: &str, held: Result<(Vec<u8>, Stat), Error>, expected: Basis) -> Result<(), ChangeError> {
    let (bytes, stat) = held.map_err(|error| failed(path, error))?;
    // Bytes that do not decode are another view than the expected one. The read that follows says what is wrong with
    // them.
    let view = nodes::decode_view(&bytes).map_err(|_| ChangeError::BadVersion)?;
    let held = Versioned { version: version(&stat), view };
    if held.basis() == expected { Ok(()) } else { Err(ChangeError::BadVersion) }
}

/// The names of the nodes below this one after a sync, asked for again until the answer is final. None if it is not there.
async fn children(session: &Session, parent: &str) -> Result<Vec<String>, ReadError> {
    loop {
        let client = session.link().await.client;
        let (sync, names) = tokio::join!(client.sync(parent), client.list_children(parent));
        match sync.and(names) {
            Ok(names) => return Ok(names),
            Err(Error::NoNode) => return Ok(Vec::new()),
            Err(error) if is_passing(&error) => tokio::time::sleep(AGAIN).await,
            Err(error) => return Err(unreadable(parent, error)),
        }
    }
}

pub async fn read_members(session: &Session, group: GroupId) -> Result<Vec<MemberRecord>, ReadError> {
    let parent = session.nodes.members(group);
    let names = children(session, &parent).await?;
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        match name.parse() {
            Ok(member) => members.push(MemberId(member)),
            Err(_) => return Err(unreadable(&format!("{parent}/{name}"), "it is no member's number")),
        }
    }
    members.sort();
    let mut records = Vec::with_capacity(members.len());
    for member in members {
        if let Some((record, _)) =
            get_member(session, group, member).await.map_err(|reason| ReadError { reason })?
        {
            records.push(record);
        }
    }
    Ok(records)
}

pub async fn write_member(
    session: &Session,
    group: GroupId,
    record: &MemberRecord,
) -> Result<(), ChangeError> {
    let member = record.life.store.member;
    let path = session.nodes.member(group, member);
    let parent = session.nodes.members(group);
    let data = nodes::encode_member(record);
    if data.len() > VALUE_BYTES_MAX {
        return Err(refused(&path, format!("{} bytes are over the limit of {VALUE_BYTES_MAX}", data.len())));
    }
    for _ in 0..TRIES_MAX {
        let held =
            get_member(session, group, member).await.map_err(|reason| ChangeError::Refused { reason })?;
        record.may_replace(held.as_ref().map(|(record, _)| record))?;
        let client = session.link().await.client;
        let mut multi = client.new_multi_writer();
        let added = match &held {
            Some((_, stat)) => multi.add_set_data(&path, &data, Some(stat.version)),
            None => multi.add_create(&path, &data, &session.persistent()),
        };
        added.and_then(|()| multi.add_set_data(&parent, b"", None)).map_err(|error| refused(&path, error))?;
        match multi.commit().await.map_err(part) {
            Ok(_) => return Ok(()),
            Err((_, Error::NoNode)) => {
                make_parents(session, &client, &session.nodes.directories(group)).await?;
            }
            Err((_, Error::BadVersion | Error::NodeExists)) => {}
            Err((_, error)) => return Err(failed(&path, error)),
        }
    }
    Err(refused(&path, "another process writes it as well; do two servers have the same number?"))
}

pub async fn confirm(
    session: &Session,
    group: GroupId,
    expected: Basis,
    member: MemberId,
) -> Result<(), ChangeError> {
    let (state, own) = (session.nodes.state(group), session.nodes.heartbeat(group, member));
    let expected_version = stat_version(expected.version).ok_or(ChangeError::BadVersion)?;
    for _ in 0..2 {
        let client = session.link().await.client;
        let mut multi = client.new_multi_writer();
        multi
            .add_check_version(&state, expected_version)
            .and_then(|()| multi.add_set_data(&own, b"", None))
            .map_err(|error| refused(&own, error))?;
        let (held, confirmed) = tokio::join!(client.get_data(&state), multi.commit());
        match confirmed.map_err(part) {
            Ok(_) => return is_basis(&state, held, expected),
            Err((Some(1), Error::NoNode)) => {
                make_parents(session, &client, std::slice::from_ref(&own)).await?;
            }
            Err((_, error)) => return Err(failed(&state, error)),
        }
    }
    Err(ChangeError::Unknown { reason: format!("{own}: it is being removed") })
}

/// The groups whose node has a view.
pub async fn groups(session: &Session) -> Result<Vec<GroupId>, ReadError> {
    let parent = session.nodes.groups();
    let names = children(session, &parent).await?;
    let mut groups: Vec<GroupId> = Vec::new();
    for name in names {
        let Ok(number) = name.parse() else {
            return Err(unreadable(&format!("{parent}/{name}"), "it is no group's number"));
        };
        if read(session, GroupId(number)).await?.is_some() {
            groups.push(GroupId(number));
        }
    }
    groups.sort();
    Ok(groups)
}

pub async fn read_cluster(session: &Session) -> Result<Option<Vec<u8>>, ReadError> {
    let path = session.nodes.cluster();
    let Some((bytes, _)) = get(session, &path).await.map_err(|error| unreadable(&path, error))? else {
        return Ok(None);
    };
    let text = text::cluster(bytes).map_err(|what| unreadable(&path, what))?;
    Ok(Some(text.into_bytes()))
}

pub async fn create_cluster(session: &Session, text: Vec<u8>) -> Result<(), ChangeError> {
    let path = session.nodes.cluster();
    let text = text::cluster(text).map_err(|what| refused(&path, what))?;
    create_node(session, &path, text.as_bytes(), &[]).await
}
