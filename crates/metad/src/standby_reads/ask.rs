//! The question to the active for a read point.

use crate::{core::Core, peers::Secret};
use base::{Epoch, ReadPoint, Sn};
use bytes::Bytes;
use proto::clover::forward::{ReadPointRequestProto, ReadPointResponseProto};
use std::time::Duration;

/// Part of every proof, so that one made for something else fits no question.
const PURPOSE: &[u8] = b"clover read point 1";

/// Asks the active, as far as it is known. `None`: it does not lead, or cannot prove now that it does.
///
/// # Errors
/// Nobody has answered, or not in time, or with what makes no sense: it is useless to ask again at once. The text says why.
pub async fn ask(core: &Core, secret: &Secret, patience: Duration) -> Result<Option<ReadPoint>, String> {
    let partition = &core.partition;
    let mut request = ReadPointRequestProto {
        scope: core.scope.clone(),
        member: partition.member.me().member.0,
        mac: Bytes::new(),
    };
    request.mac = Bytes::copy_from_slice(&with_parts(&request, |parts| secret.sign(PURPOSE, parts)));
    let told: ReadPointResponseProto = partition.forwarder.ask("readPoint", &request, patience).await?;
    let point = told.epoch.zip(told.committed);
    Ok(point.map(|(epoch, committed)| ReadPoint { epoch: Epoch(epoch), committed: Sn(committed) }))
}

/// Whether the question is from somebody who knows the cluster's secret.
pub fn is_proved(secret: &Secret, request: &ReadPointRequestProto) -> bool {
    with_parts(request, |parts| secret.verifies(PURPOSE, parts, &request.mac))
}

fn with_parts<T>(request: &ReadPointRequestProto, take: impl FnOnce(&[&[u8]]) -> T) -> T {
    take(&[request.scope.as_bytes(), &request.member.to_le_bytes()])
}
