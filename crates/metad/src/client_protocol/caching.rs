//! Centralized caching, of which this version has none: no pools, hence no directives.
//!
//! All but the making of a pool follows from that, in HDFS's words for a cluster without pools.

use super::{decode, require_superuser};
use crate::core::Core;
use base::{FsError, FsResult};
use namespace::Privileged;
use proto::{exception::INVALID_REQUEST, hdfs as p};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

fn refuse(reply: Replier, message: impl Into<String>) {
    reply.error(RpcError::application(INVALID_REQUEST, message));
}

/// HDFS's `validatePoolName`, and what it says of a pool that is not there.
fn no_such_pool(pool: Option<&str>) -> String {
    match pool {
        None => "No pool specified.".into(),
        Some("") => "Invalid empty pool name.".into(),
        Some(pool) => format!("Unknown pool {pool}"),
    }
}

fn no_such_directive(id: Option<i64>) -> String {
    match id {
        None => "Must supply an ID.".into(),
        Some(..=0) => "Invalid negative ID.".into(),
        Some(id) => format!("No directive with ID {id} found."),
    }
}

pub fn add_cache_directive(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AddCacheDirectiveRequestProto>(&call, reply) else { return };
    if let Err(error) = super::refuse_in_safe_mode(&core.partition, || "Cannot add cache directive".into()) {
        return reply.fs_error(&error);
    }
    match request.info.id {
        Some(_) => {
            reply.fs_error(&FsError::Io("addDirective: you cannot specify an ID for this operation.".into()))
        }
        None => refuse(reply, no_such_pool(request.info.pool.as_deref())),
    }
}

pub fn modify_cache_directive(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ModifyCacheDirectiveRequestProto>(&call, reply) else { return };
    match super::refuse_in_safe_mode(&core.partition, || "Cannot add cache directive".into()) {
        Ok(()) => refuse(reply, no_such_directive(request.info.id)),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn remove_cache_directive(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveCacheDirectiveRequestProto>(&call, reply) else { return };
    match super::refuse_in_safe_mode(&core.partition, || "Cannot remove cache directives".into()) {
        Ok(()) => refuse(reply, no_such_directive(Some(request.id))),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn list_cache_directives(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ListCacheDirectivesRequestProto>(&call, reply) else { return };
    let filter = &request.filter;
    if filter.replication.is_some() {
        return refuse(reply, "Filtering by replication is unsupported.");
    }
    if let Some(id) = filter.id {
        return refuse(reply, format!("Did not find requested id {id}"));
    }
    reply.ok(&p::ListCacheDirectivesResponseProto { elements: Vec::new(), has_more: false });
}

fn may_change_pools(
    core: &Core,
    call: &Call,
    operation: Privileged,
    what: impl FnOnce() -> String,
) -> FsResult<()> {
    require_superuser(core, call, operation)?;
    super::refuse_in_safe_mode(&core.partition, what)
}

/// The one call for which "there is none" is no answer.
pub fn add_cache_pool(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AddCachePoolRequestProto>(&call, reply) else { return };
    let pool = request.info.pool_name.unwrap_or_default();
    let allowed =
        may_change_pools(core, &call, Privileged::AddCachePool, || format!("Cannot add cache pool{pool}"));
    if let Err(error) = allowed {
        return reply.fs_error(&error);
    }
    reply.fs_error(&FsError::Unsupported(format!(
        "Cannot add cache pool {pool}: centralized caching is not built yet in this version of Clover."
    )));
}

pub fn modify_cache_pool(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ModifyCachePoolRequestProto>(&call, reply) else { return };
    let pool = request.info.pool_name.unwrap_or_default();
    let what = || format!("Cannot modify cache pool{pool}");
    match may_change_pools(core, &call, Privileged::ModifyCachePool, what) {
        Ok(()) if pool.is_empty() => reply.fs_error(&FsError::Io("invalid empty cache pool name".into())),
        Ok(()) => refuse(reply, format!("Cache pool {pool} does not exist.")),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn remove_cache_pool(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveCachePoolRequestProto>(&call, reply) else { return };
    let pool = request.pool_name;
    let what = || format!("Cannot modify cache pool{pool}");
    match may_change_pools(core, &call, Privileged::RemoveCachePool, what) {
        Ok(()) if pool.is_empty() => reply.fs_error(&FsError::Io("invalid empty cache pool name".into())),
        Ok(()) => refuse(reply, format!("Cannot remove non-existent cache pool {pool}")),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn list_cache_pools(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::ListCachePoolsRequestProto>(&call, reply) else { return };
    reply.ok(&p::ListCachePoolsResponseProto { entries: Vec::new(), has_more: false });
}
