//! The packets of one write: in from upstream, on to the mirror, down to the disk, and acknowledged back.
//!
//! Two loops run side by side in the connection's task. One takes packets and hands them on; the other hears
//! the disk and the mirror and speaks upstream.

use super::{
    lane::{Ending, Lane},
    mirror::Mirror,
    refusal::Refusal,
    shared::Shared,
    speak,
};
use crate::{pool::Pool, slowness::PeerTimes, state::State};
use base::PacketHeader;
use blockstore::ReplicaWriter;
use env::Clock;
use parking_lot::Mutex;
use pipeline::{Ack, Receiver, Reply, Responder, Status};
use rpc::streaming::{Inbound, Outgoing};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

/// The parameters of receiving a block.
pub struct Reception<'a> {
    pub state: &'a Arc<State>,
    /// The block's.
    pub pool: &'a Arc<Pool>,
    /// The checksum of the packets.
    pub checksum: pipeline::Checksum,
    /// The length, in bytes, that the replica may grow to.
    pub limit: u64,
    pub ending: Ending,
    /// Each packet is acknowledged upstream.
    pub is_acknowledged: bool,
    pub verifies: bool,
    /// It comes for a balancer, and no faster than those may move replicas.
    pub is_balancing: bool,
}

/// Returns when the replica has ended well and everyone has been told.
pub async fn receive(
    reception: Reception<'_>,
    writer: ReplicaWriter,
    inbound: &mut Inbound,
    out: &mut Outgoing,
    mirror: Option<Mirror>,
) -> Result<(), Refusal> {
    let acknowledger = writer.acknowledger();
    let receiver =
        Receiver::new(reception.checksum, writer.block().length, reception.limit, reception.verifies);
    let owners = (reception.state.clone(), reception.pool.clone());
    let (lane, tidings) = Lane::new(owners, writer, reception.checksum, reception.ending);
    let acknowledged_behind = reception.is_acknowledged && mirror.is_some();
    let shared = Shared {
        responder: Mutex::new(Responder::new(acknowledged_behind)),
        urgent: Mutex::default(),
        wake: Notify::new(),
        room: Notify::new(),
        has_ended: AtomicBool::new(false),
        is_speaking: AtomicBool::new(false),
    };
    let (mut mirror_in, mirror_out) = match mirror {
        Some(Mirror { inbound, out, times }) => (Some(inbound), Some((out, times))),
        None => (None, None),
    };
    let clock = &*reception.state.env.clock;
    let outcome = {
        let pace = reception.is_balancing.then_some(reception.state);
        let take = take_packets(
            &shared,
            receiver,
            (&lane, pace),
            inbound,
            (mirror_out, clock),
            reception.is_acknowledged,
        );
        let say = async {
            if reception.is_acknowledged {
                let behind = mirror_in.as_mut();
                speak::speak(&shared, tidings, behind, out, &acknowledger).await
            } else {
                speak::listen(tidings).await
            }
        };
        tokio::pin!(take, say);
        tokio::select! {
            spoken = &mut say => spoken,
            taken = &mut take => match taken {
                Ok(_mirror_out) => say.await,
                Err(refusal) => Err(refusal),
            },
        }
    };
    match outcome {
        Err(refusal) if reception.is_acknowledged => {
            // Upstream listens for acknowledgements now, not for an answer to its operation.
            if refusal.response().is_some() && !shared.is_speaking.load(Ordering::Acquire) {
                let ack =
                    Ack { seqno: Ack::NO_PACKET, replies: vec![Reply::new(Status::Error)], downstream_ns: 0 };
                let _ = out.message(&speak::to_proto(&ack)).await;
            }
            Err(Refusal::Close(refusal.message().into()))
        }
        outcome => outcome,
    }
}

/// The way to the mirror, and where the times of packets to it are noted.
type ToMirror = (Outgoing, Option<Arc<PeerTimes>>);

async fn hand_on(
    out: &mut Outgoing,
    times: Option<&PeerTimes>,
    clock: &dyn Clock,
    packet: &[u8],
) -> io::Result<()> {
    let begun = times.map(|_| clock.moment());
    out.write(packet).await?;
    if let (Some(times), Some(begun)) = (times, begun) {
        times.note(begun, clock);
    }
    Ok(())
}

/// Takes packets until the last one. Returns the mirror's connection, which must stay open until the last
/// acknowledgement has come back on it.
async fn take_packets(
    shared: &Shared,
    mut receiver: Receiver,
    (lane, pace): (&Lane, Option<&Arc<State>>),
    inbound: &mut Inbound,
    (mut mirror, clock): (Option<ToMirror>, &dyn Clock),
    is_acknowledged: bool,
) -> Result<Option<ToMirror>, Refusal> {
    while !receiver.has_ended() {
        let packet = inbound.packet().await?;
        let duty = receiver
            .on_packet(&packet.header, packet.sums.len())
            .map_err(|error| Refusal::error(error.to_string()))?;
        if is_acknowledged {
            while shared.responder.lock().is_full() {
                shared.room.notified().await;
            }
            let PacketHeader { offset_in_block, data_length, .. } = packet.header;
            let end = offset_in_block as u64 + data_length as u64;
            shared.responder.lock().on_received(packet.header.seqno, end);
        }
        if let Some(state) = pace {
            state.moves.pace(&state.env, packet.data.len()).await;
        }
        lane.push(duty, packet.sums, packet.data).await;
        if let Some((out, times)) = &mut mirror
            && let Err(error) = hand_on(out, times.as_deref(), clock, &packet.whole).await
        {
            tracing::info!(%error, "the mirror is lost; going on without it");
            mirror = None;
            if is_acknowledged {
                shared.lose_mirror();
            }
        }
    }
    shared.has_ended.store(true, Ordering::Release);
    shared.wake.notify_one();
    Ok(mirror)
}
