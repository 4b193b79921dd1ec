//! A segment of shared memory that a client of this machine has, for as long as its connection lasts.

use crate::{
    short_circuit::{Process, SegmentId},
    state::State,
};
use env::descriptors::Place;
use rpc::streaming::{Inbound, Outgoing};
use std::{os::fd::OwnedFd, sync::Arc};

/// The segment ends with this value.
pub struct HeldSegment {
    state: Arc<State>,
    id: SegmentId,
    /// The connection, which is no transfer any more.
    _descriptor: Place,
}

impl HeldSegment {
    /// Makes a segment for a process, and the descriptor that it maps it by. An error is a text for the client.
    pub fn make(state: &Arc<State>, process: Process) -> Result<(Self, OwnedFd), String> {
        if !state.config.short_circuit {
            return Err(
                "This datanode has not been configured to support short-circuit shared memory segments."
                    .into(),
            );
        }
        let place = state.env.descriptors.take(1).ok_or("there are no file descriptors left")?;
        let random = &state.env.random;
        let id = SegmentId { high: random.next_u64() as i64, low: random.next_u64() as i64 };
        let file = state.short_circuit.create(id, process).map_err(|refused| refused.to_string())?;
        Ok((Self { state: state.clone(), id, _descriptor: place }, file))
    }

    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// Waits until the client ends the connection or sends a byte on it. Both end the segment.
    pub async fn wait(self, mut inbound: Inbound, _out: Outgoing) {
        inbound.stirred().await;
    }
}

impl Drop for HeldSegment {
    fn drop(&mut self) {
        self.state.short_circuit.remove(self.id);
    }
}
