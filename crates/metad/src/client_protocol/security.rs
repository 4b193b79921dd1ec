//! Tokens and keys, as Hadoop answers where there is no security: none was ever given out.

use super::{decode, refuse_in_safe_mode};
use crate::core::Core;
use proto::{common as c, exception::INVALID_TOKEN, hdfs as p};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

/// None, and clients know what that means.
pub fn get_delegation_token(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<c::GetDelegationTokenRequestProto>(&call, reply) else { return };
    match refuse_in_safe_mode(&core.partition, || "Cannot issue delegation token".into()) {
        Ok(()) => reply.ok(&c::GetDelegationTokenResponseProto { token: None }),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn renew_delegation_token(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<c::RenewDelegationTokenRequestProto>(&call, reply) else { return };
    if let Err(error) = refuse_in_safe_mode(&core.partition, || "Cannot renew delegation token".into()) {
        return reply.fs_error(&error);
    }
    reply.error(RpcError::application(
        INVALID_TOKEN,
        "Renewal request for unknown token: this cluster gives out no tokens, since it has no security",
    ));
}

pub fn cancel_delegation_token(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<c::CancelDelegationTokenRequestProto>(&call, reply) else { return };
    if let Err(error) = refuse_in_safe_mode(&core.partition, || "Cannot cancel delegation token".into()) {
        return reply.fs_error(&error);
    }
    reply.error(RpcError::application(
        INVALID_TOKEN,
        "Token not found: this cluster gives out no tokens, since it has no security",
    ));
}

/// None: data is not encrypted on its way.
pub fn get_data_encryption_key(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetDataEncryptionKeyRequestProto>(&call, reply) else { return };
    reply.ok(&p::GetDataEncryptionKeyResponseProto { data_encryption_key: None });
}
