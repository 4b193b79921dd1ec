//! Carries out the orders of a metadata server.

use super::actor::{Actor, Failure, Session};
use crate::{convert, pool::Pool, recovery, shift, transfer};
use blocks::Mandate;
use proto::hdfs::datanode::{
    BlockCommandProto, DatanodeCommandProto, block_command_proto::Action, datanode_command_proto::Type,
};
use std::sync::{Arc, atomic::Ordering};

impl Actor {
    /// Carries out a command, or sets it off. Only the active server is obeyed, by its mandate, but for the call to
    /// register, which everybody may make. Commands about blocks count for the pool of the server's group alone. Those
    /// about this whole server (its end, its rate of balancing) count from the active of any group.
    pub(super) fn obey(
        &self,
        session: &Session,
        command: &DatanodeCommandProto,
        mandate: Option<Mandate>,
    ) -> Result<(), Failure> {
        if command.cmd_type() == Type::RegisterCommand {
            return Err(Failure::Unregistered);
        }
        let Some(mandate) = mandate else {
            tracing::debug!(server = %self.address, kind = ?command.cmd_type(), "a command of a server that is not the active one");
            return Ok(());
        };
        match command.cmd_type() {
            Type::BlockCommand => {
                command.blk_cmd.iter().for_each(|blocks| self.obey_blocks(session, blocks, mandate));
                Ok(())
            }
            Type::BlockRecoveryCommand => {
                for order in command.recovery_cmd.iter().flat_map(|command| &command.blocks) {
                    if let Some(pool) = self.own_pool(session, &order.block.b.pool_id) {
                        recovery::start(&self.state, pool, session.place, order.clone());
                    }
                }
                Ok(())
            }
            Type::BalancerBandwidthCommand => {
                let rate = command.balancer_cmd.as_ref().map_or(0, |command| command.bandwidth);
                self.state.moves.set_rate(rate);
                Ok(())
            }
            // No upgrade is ever under way, so there is nothing to make final; keys are not in use.
            Type::FinalizeCommand | Type::KeyUpdateCommand | Type::NullDatanodeCommand => Ok(()),
            other => {
                tracing::warn!(server = %self.address, kind = ?other, "a command that is not carried out here");
                Ok(())
            }
        }
    }

    /// The pool that an order names, if it is the server's own: its mandate is good for no other. The same number may be
    /// that of another block in another pool.
    fn own_pool<'a>(&self, session: &'a Session, id: &str) -> Option<&'a Arc<Pool>> {
        let served = self.state.pool(id).is_ok_and(|pool| Arc::ptr_eq(pool, &session.pool));
        if !served {
            tracing::warn!(server = %self.address, pool = id, "an order about a pool that is not this server's");
        }
        served.then_some(&session.pool)
    }

    fn obey_blocks(&self, session: &Session, command: &BlockCommandProto, mandate: Mandate) {
        if command.action() == Action::Shutdown {
            return self.state.request_end("a metadata server ordered it");
        }
        let Some(pool) = self.own_pool(session, &command.block_pool_id) else { return };
        let blocks = command.blocks.iter().map(|block| pool.extended(convert::block_from_proto(block)));
        match command.action() {
            Action::Invalidate if session.keeps_deleted.load(Ordering::Relaxed) => {
                tracing::info!(server = %self.address, replicas = command.blocks.len(), "not deleted during a rolling upgrade");
            }
            Action::Invalidate => {
                for block in blocks {
                    let invalidate = || pool.store.invalidate(&block);
                    match pool.leadership.while_standing(mandate, invalidate) {
                        Some(Ok(())) => {}
                        // Gone already, or replaced by a newer one: both are what is wanted.
                        Some(Err(error)) => tracing::debug!(%block, %error, "not invalidated"),
                        None => {
                            tracing::info!(server = %self.address, "its order to delete ends: another is active now");
                            return;
                        }
                    }
                }
            }
            Action::Transfer => {
                for (index, block) in blocks.enumerate() {
                    let targets = command.targets.get(index).map_or(&[][..], |infos| &infos.datanodes);
                    let storages = command.target_storage_uuids.get(index);
                    let types = command.target_storage_types.get(index);
                    let order = transfer::Order {
                        block,
                        targets: targets.to_vec(),
                        storage_ids: storages.map(|ids| ids.storage_uuids.clone()).unwrap_or_default(),
                        storage_types: types.map(|types| types.storage_types.clone()).unwrap_or_default(),
                    };
                    match shift::is_within(&self.state, &order) {
                        true => shift::start(&self.state, order),
                        false => transfer::start(&self.state, order),
                    }
                }
            }
            // Above: it is about no pool.
            Action::Shutdown => {}
        }
    }
}
