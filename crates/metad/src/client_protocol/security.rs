//! Tokens and keys, as Hadoop answers where there is no security: none was ever given out.

use super::decode;
use crate::core::Core;
use proto::{common as c, exception::INVALID_TOKEN, hdfs as p};
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

/// None, and clients know what that means.
pub fn get_delegation_token(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<c::GetDelegationTokenRequestProto>(&call, reply) else { return };
    reply.ok(&c::GetDelegationTokenResponseProto { token: None });
}

pub fn renew_delegation_token(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<c::RenewDelegationTokenRequestProto>(&call, reply) else { return };
    reply.error(RpcError::application(
        INVALID_TOKEN,
        "Renewal request for unknown token: this cluster gives out no tokens, since it has no security",
    ));
}

pub fn cancel_delegation_token(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<c::CancelDelegationTokenRequestProto>(&call, reply) else { return };
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
