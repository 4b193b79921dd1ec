//! The speaking half of a write: hears the disk and the mirror, and acknowledges upstream.

use super::{lane::Tidings, refusal::Refusal, shared::Shared};
use blockstore::Acknowledger;
use bytes::BytesMut;
use pipeline::{Ack, Reply, Status};
use proto::{data_transfer::delimited, hdfs::PipelineAckProto};
use rpc::streaming::{Inbound, Outgoing, StreamError};
use std::sync::atomic::Ordering;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, timeout_at},
};

/// One write's voice. It gathers all that can be said and says it in one piece.
struct Speaker<'a> {
    shared: &'a Shared,
    acknowledger: &'a Acknowledger,
    words: BytesMut,
    /// Why the mirror closed its end. Nothing is lost while it owes nothing: it closes as soon as it has
    /// acknowledged the last packet, which may be before this server's own disk is done.
    mirror_end: Option<StreamError>,
    /// Bytes from upstream do not match their checksums. This is the last word of the write.
    is_corrupt: bool,
}

enum Event {
    Disk(Option<Tidings>),
    Mirror(Result<PipelineAckProto, StreamError>),
    Woken,
}

/// Returns when the last packet is acknowledged.
pub async fn speak(
    shared: &Shared,
    mut tidings: UnboundedReceiver<Tidings>,
    mut mirror: Option<&mut Inbound>,
    out: &mut Outgoing,
    acknowledger: &Acknowledger,
) -> Result<(), Refusal> {
    let mut speaker =
        Speaker { shared, acknowledger, words: BytesMut::new(), mirror_end: None, is_corrupt: false };
    // The mirror's time runs from when it owes something, and anew from each of its words. It does not begin again with what comes from elsewhere: a writer
    // that waits sends heartbeats all the time.
    let (mut owed, mut heard) = (false, Instant::now());
    loop {
        let owes = shared.responder.lock().awaits_mirror();
        if !(owed && owes) {
            heard = Instant::now();
        }
        owed = owes;
        let event = tokio::select! {
            biased;
            disk = tidings.recv() => Event::Disk(disk),
            ack = next_ack(&mut mirror, heard) => Event::Mirror(ack),
            () = shared.wake.notified() => Event::Woken,
        };
        match event {
            Event::Disk(Some(first)) => {
                speaker.on_disk(first)?;
                // All that has come meanwhile goes into the same words.
                while let Ok(next) = tidings.try_recv() {
                    speaker.on_disk(next)?;
                }
            }
            Event::Disk(None) => return Err(Refusal::error("the disk's thread is gone")),
            Event::Mirror(Ok(first)) => {
                heard = Instant::now();
                speaker.on_ack(&first)?;
                while let Some(next) = mirror.as_mut().and_then(|mirror| mirror.message_at_hand().transpose())
                {
                    speaker.on_ack(&next?)?;
                }
            }
            Event::Mirror(Err(StreamError::Timeout(_))) if !owed => {}
            Event::Mirror(Err(error)) => {
                mirror = None;
                speaker.mirror_end = Some(error);
            }
            Event::Woken => {}
        }
        let is_over = speaker.gather();
        speaker.say(out).await?;
        if speaker.is_corrupt {
            return Err(Refusal::Close("the data received does not match its checksums".into()));
        }
        if is_over {
            return Ok(());
        }
    }
}

impl Speaker<'_> {
    fn on_disk(&mut self, tidings: Tidings) -> Result<(), Refusal> {
        let status = match tidings {
            Tidings::Done(status) => status,
            Tidings::Ended => Status::Success,
            // After a corrupt packet nothing else is written, and nothing else is worth a word.
            Tidings::Failed(_) if self.is_corrupt => return Ok(()),
            Tidings::Failed(reason) => return Err(Refusal::error(reason)),
        };
        self.is_corrupt |= status == Status::ErrorChecksum;
        self.shared.responder.lock().on_done(status);
        Ok(())
    }

    fn on_ack(&mut self, ack: &PipelineAckProto) -> Result<(), Refusal> {
        let said = self.shared.responder.lock().on_downstream(from_proto(ack));
        // The connection closes without a word, so that upstream blames this server.
        let urgent = said.map_err(|error| Refusal::Close(error.to_string()))?;
        self.shared.urgent.lock().extend(urgent);
        Ok(())
    }

    /// Puts all that can be said into words. True when nothing more will come.
    fn gather(&mut self) -> bool {
        let shared = self.shared;
        if let Some(error) = self.mirror_end.take_if(|_| shared.responder.lock().awaits_mirror()) {
            if !shared.responder.lock().has_lost_mirror() {
                tracing::info!(%error, "the mirror does not acknowledge any more");
            }
            shared.lose_mirror();
        }
        self.words.clear();
        for ack in shared.urgent.lock().drain(..) {
            delimited::encode(&to_proto(&ack), &mut self.words);
        }
        let mut responder = shared.responder.lock();
        while let Some(ack) = responder.poll() {
            delimited::encode(&to_proto(&ack), &mut self.words);
        }
        // Readers may see the bytes from now on, so that a client which hears of the acknowledgement finds the data.
        self.acknowledger.acknowledge(responder.acknowledged());
        shared.has_ended.load(Ordering::Acquire) && responder.is_idle()
    }

    async fn say(&mut self, out: &mut Outgoing) -> Result<(), Refusal> {
        if self.words.is_empty() {
            return Ok(());
        }
        self.shared.room.notify_one();
        self.shared.is_speaking.store(true, Ordering::Release);
        out.write(&self.words).await?;
        self.shared.is_speaking.store(false, Ordering::Release);
        Ok(())
    }
}

/// The next acknowledgement of the mirror, which has its time from `heard` on. Without a mirror, it never comes.
async fn next_ack(
    mirror: &mut Option<&mut Inbound>,
    heard: Instant,
) -> Result<PipelineAckProto, StreamError> {
    match mirror {
        Some(mirror) => {
            let patience = mirror.timeout;
            timeout_at(heard + patience, mirror.message())
                .await
                .unwrap_or(Err(StreamError::Timeout(patience)))
        }
        None => std::future::pending().await,
    }
}

/// Waits for the end of a copy, whose single packets are not acknowledged.
pub async fn listen(mut tidings: UnboundedReceiver<Tidings>) -> Result<(), Refusal> {
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

pub fn to_proto(ack: &Ack) -> PipelineAckProto {
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
