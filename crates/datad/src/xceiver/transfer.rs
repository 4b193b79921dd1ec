//! TRANSFER_BLOCK: a client whose pipeline broke has this server bring a new member up to date.

use super::{next::Next, refusal::Refusal, request};
use crate::{state::State, transfer};
use proto::hdfs::{BlockOpResponseProto, OpTransferBlockProto, Status};
use rpc::streaming::Outgoing;
use std::sync::Arc;

pub async fn transfer_block(
    state: &Arc<State>,
    op: OpTransferBlockProto,
    out: &mut Outgoing,
) -> Result<Next, Refusal> {
    request::check_targets(state, &op.targets)?;
    if !op.targets.is_empty() {
        let copy = transfer::Copy {
            block: request::block(&op.header.base_header.block),
            targets: op.targets,
            target_storage_types: op.target_storage_types,
            target_storage_ids: op.target_storage_ids,
            token: op.header.base_header.token.unwrap_or_default(),
            client_name: op.header.client_name,
        };
        // Hadoop's servers answer success whatever happened; said honestly, the client asks another server.
        transfer::send(state, copy).await.map_err(|error| Refusal::error(error.to_string()))?;
    }
    out.message(&BlockOpResponseProto {
        status: Status::Success.into(),
        first_bad_link: Some(String::new()),
        ..Default::default()
    })
    .await?;
    Ok(Next::End)
}
