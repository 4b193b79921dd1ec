//! The packets of one write: in from upstream, on to the mirror, down to the disk, and acknowledged back.
//!
//! Two loops run side by side in the connection's task. One takes packets and hands them on; the other hears
//! the disk and the mirror and speaks upstream.

use super::{
    lane::{Ending, Lane, Tidings},
    mirror::Mirror,
    refusal::Refusal,
};
use crate::state::State;
use base::PacketHeader;
use blockstore::{Acknowledger, ReplicaWriter};
use bytes::BytesMut;
use parking_lot::Mutex;
use pipeline::{Ack, Receiver, Reply, Responder, Status};
use proto::{data_transfer::delimited, hdfs::PipelineAckProto};
use rpc::streaming::{Inbound, Outgoing, StreamError};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::{Notify, mpsc::UnboundedReceiver};

/// What is to be received.
pub struct Reception<'a> {
    pub state: &'a Arc<State>,
    /// Of the packets.
    pub checksum: pipeline::Checksum,
    /// What the replica may grow to.
    pub limit: u64,
    pub ending: Ending,
    /// Each packet is acknowledged upstream.
    pub is_acknowledged: bool,
    pub verifies: bool,
}

/// What the two loops share.
struct Shared {
    responder: Mutex<Responder>,
    /// Said upstream before anything else.
    urgent: Mutex<Vec<Ack>>,
    /// The speaking loop has something to look at.
    wake: Notify,
    /// There is room for further packets.
    room: Notify,
    has_ended: AtomicBool,
    /// An acknowledgement is partly sent: nothing else can be said any more.
    is_speaking: AtomicBool,
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
    let (lane, tidings) = Lane::new(reception.state.clone(), writer, reception.checksum, reception.ending);
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
        Some(mirror) => (Some(mirror.inbound), Some(mirror.out)),
        None => (None, None),
    };
    let outcome = {
        let take = take_packets(&shared, receiver, &lane, inbound, mirror_out, reception.is_acknowledged);
        let speak = async {
            if reception.is_acknowledged {
                let behind = mirror_in.as_mut();
                speak(&shared, tidings, behind, out, &acknowledger).await
            } else {
                listen(tidings).await
            }
        };
        tokio::pin!(take, speak);
        tokio::select! {
            spoken = &mut speak => spoken,
            taken = &mut take => match taken {
                Ok(_mirror_out) => speak.await,
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
                let _ = out.message(&to_proto(&ack)).await;
            }
            Err(Refusal::Close(refusal.message().into()))
        }
        outcome => outcome,
    }
}

/// Takes packets until the last one. Returns the mirror's connection, which must stay open until the last
/// acknowledgement has come back on it.
async fn take_packets(
    shared: &Shared,
    mut receiver: Receiver,
    lane: &Lane,
    inbound: &mut Inbound,
    mut mirror: Option<Outgoing>,
    is_acknowledged: bool,
) -> Result<Option<Outgoing>, Refusal> {
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
        lane.push(duty, packet.sums, packet.data).await;
        if let Some(out) = &mut mirror
            && let Err(error) = out.write(&packet.whole).await
        {
            tracing::info!(%error, "the mirror is lost; going on without it");
            mirror = None;
            if is_acknowledged {
                lose_mirror(shared);
            }
        }
    }
    shared.has_ended.store(true, Ordering::Release);
    shared.wake.notify_one();
    Ok(mirror)
}

fn lose_mirror(shared: &Shared) {
    let ack = shared.responder.lock().on_mirror_lost();
    shared.urgent.lock().extend(ack);
    shared.wake.notify_one();
}

enum Event {
    Disk(Option<Tidings>),
    Mirror(Result<PipelineAckProto, StreamError>),
    Woken,
}

/// Hears the disk and the mirror, and acknowledges upstream, until the last packet is acknowledged.
async fn speak(
    shared: &Shared,
    mut tidings: UnboundedReceiver<Tidings>,
    mut mirror: Option<&mut Inbound>,
    out: &mut Outgoing,
    acknowledger: &Acknowledger,
) -> Result<(), Refusal> {
    let mut words = BytesMut::new();
    // Why the mirror closed its end. Nothing is lost while it owes nothing: it closes as soon as it has
    // acknowledged the last packet, which may be before this server's own disk is done.
    let mut mirror_end: Option<StreamError> = None;
    loop {
        let event = tokio::select! {
            biased;
            disk = tidings.recv() => Event::Disk(disk),
            ack = next_ack(&mut mirror) => Event::Mirror(ack),
            () = shared.wake.notified() => Event::Woken,
        };
        let mut corrupt = false;
        match event {
            Event::Disk(Some(Tidings::Done(status))) => {
                corrupt = status == Status::ErrorChecksum;
                shared.responder.lock().on_done(status);
            }
            Event::Disk(Some(Tidings::Ended)) => shared.responder.lock().on_done(Status::Success),
            Event::Disk(Some(Tidings::Failed(reason))) => return Err(Refusal::error(reason)),
            Event::Disk(None) => return Err(Refusal::error("the disk's thread is gone")),
            Event::Mirror(Ok(ack)) => {
                let said = shared.responder.lock().on_downstream(from_proto(&ack));
                match said {
                    Ok(urgent) => shared.urgent.lock().extend(urgent),
                    // Without a word, so that upstream blames this server.
                    Err(error) => return Err(Refusal::Close(error.to_string())),
                }
            }
            Event::Mirror(Err(StreamError::Timeout(_))) if shared.responder.lock().is_idle() => {}
            Event::Mirror(Err(error)) => {
                mirror = None;
                mirror_end = Some(error);
            }
            Event::Woken => {}
        }
        if let Some(error) = mirror_end.take_if(|_| shared.responder.lock().awaits_mirror()) {
            if !shared.responder.lock().has_lost_mirror() {
                tracing::info!(%error, "the mirror does not acknowledge any more");
            }
            lose_mirror(shared);
        }

        words.clear();
        for ack in shared.urgent.lock().drain(..) {
            delimited::encode(&to_proto(&ack), &mut words);
        }
        let (is_over, acknowledged) = {
            let mut responder = shared.responder.lock();
            while let Some(ack) = responder.poll() {
                delimited::encode(&to_proto(&ack), &mut words);
            }
            let is_over = shared.has_ended.load(Ordering::Acquire) && responder.is_idle();
            (is_over, responder.acknowledged())
        };
        if !words.is_empty() {
            // Readers may see it from now on: whoever hears of the acknowledgement finds the data.
            acknowledger.acknowledge(acknowledged);
            shared.room.notify_one();
            shared.is_speaking.store(true, Ordering::Release);
            out.write(&words).await?;
            shared.is_speaking.store(false, Ordering::Release);
        }
        if corrupt {
            return Err(Refusal::Close("the data received does not match its checksums".into()));
        }
        if is_over {
            return Ok(());
        }
    }
}

/// For ever, without a mirror.
async fn next_ack(mirror: &mut Option<&mut Inbound>) -> Result<PipelineAckProto, StreamError> {
    match mirror {
        Some(mirror) => mirror.message().await,
        None => std::future::pending().await,
    }
}

/// For a copy: nobody is told of single packets.
async fn listen(mut tidings: UnboundedReceiver<Tidings>) -> Result<(), Refusal> {
    loop {
        match tidings.recv().await {
            Some(Tidings::Done(Status::Success)) => {}
            Some(Tidings::Done(_)) => {
                return Err(Refusal::Answer {
                    status: proto::hdfs::Status::ErrorChecksum,
                    message: "the data received does not match its checksums".into(),
                    first_bad_link: String::new(),
                });
            }
            Some(Tidings::Ended) => return Ok(()),
            Some(Tidings::Failed(reason)) => return Err(Refusal::error(reason)),
            None => return Err(Refusal::error("the disk's thread is gone")),
        }
    }
}

fn to_proto(ack: &Ack) -> PipelineAckProto {
    PipelineAckProto {
        seqno: ack.seqno,
        reply: ack.replies.iter().map(|reply| i32::from(reply.status().code())).collect(),
        downstream_ack_time_nanos: (ack.downstream_ns > 0).then_some(ack.downstream_ns),
        flag: ack.replies.iter().map(|reply| reply.0).collect(),
    }
}

/// A server that sends no flags says nothing about its load.
fn from_proto(ack: &PipelineAckProto) -> Ack {
    let replies = match ack.flag.len() == ack.reply.len() {
        true => ack.flag.iter().map(|flag| Reply(*flag)).collect(),
        false => ack.reply.iter().map(|code| Reply((*code & 0xf) as u32)).collect(),
    };
    Ack { seqno: ack.seqno, replies, downstream_ns: ack.downstream_ack_time_nanos() }
}
