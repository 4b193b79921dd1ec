//! Encryption zones, as HDFS answers where no key provider is configured: there are none, and none can be made.

use super::{
    calls::{self, asked},
    decode, refuse_in_safe_mode, require_superuser,
};
use crate::core::Core;
use base::FsError;
use namespace::{Privileged, reads::get_ez_for_path};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn create_encryption_zone(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::CreateEncryptionZoneRequestProto>(&call, reply) else { return };
    if let Err(error) = require_superuser(core, &call, Privileged::CreateEncryptionZone) {
        return reply.fs_error(&error);
    }
    reply.fs_error(&FsError::Io(format!(
        "Can't create an encryption zone for {} since no key provider is available.",
        request.src
    )));
}

pub fn list_encryption_zones(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::ListEncryptionZonesRequestProto>(&call, reply) else { return };
    match require_superuser(core, &call, Privileged::ListEncryptionZones) {
        Ok(()) => reply.ok(&p::ListEncryptionZonesResponseProto { zones: Vec::new(), has_more: false }),
        Err(error) => reply.fs_error(&error),
    }
}

pub fn reencrypt_encryption_zone(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ReencryptEncryptionZoneRequestProto>(&call, reply) else {
        return;
    };
    let action = match request.action() {
        p::ReencryptActionProto::StartReencrypt => "START",
        p::ReencryptActionProto::CancelReencrypt => "CANCEL",
    };
    let what = || format!("NameNode in safemode, cannot {action} re-encryption on zone {}", request.zone);
    let allowed = require_superuser(core, &call, Privileged::ReencryptEncryptionZone)
        .and_then(|()| refuse_in_safe_mode(&core.partition, what));
    let refused = allowed.err().unwrap_or_else(|| {
        FsError::Io("No key provider configured, re-encryption operation is rejected".into())
    });
    reply.fs_error(&refused);
}

pub fn list_reencryption_status(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::ListReencryptionStatusRequestProto>(&call, reply) else { return };
    match require_superuser(core, &call, Privileged::ListReencryptionStatus) {
        Ok(()) => reply.ok(&p::ListReencryptionStatusResponseProto { statuses: Vec::new(), has_more: false }),
        Err(error) => reply.fs_error(&error),
    }
}

/// None.
pub fn get_ez_for_path(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetEzForPathRequestProto| get_ez_for_path::Request { path: message.src };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, ()| Ok(p::GetEzForPathResponseProto { zone: None }));
}
