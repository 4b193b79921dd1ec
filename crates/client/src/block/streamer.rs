//! The task behind a [`super::BlockWriter`]: one pipeline after another, until the block ends.

use super::{
    PipelineKeeper, WriteError,
    connection::{Link, ack, address, describe},
    pipe::{Pipe, SetupError, Stage},
    replacement,
};
use base::PacketHeader;
use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use pipeline::{Packed, Window, window::WindowError};
use proto::{
    data_transfer::packet::{self, PREFIX_BYTES_MAX},
    hdfs::{ExtendedBlockProto, PipelineAckProto},
};
use rpc::streaming::StreamError;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// New pipelines in a row before a block is given up.
const RECOVERIES_MAX: usize = 5;

pub(super) enum Command {
    Packet {
        packed: Packed,
        sync: bool,
    },
    /// All sent so far onto stable storage, with an empty packet that says so.
    Sync,
    /// Answered when all sent so far is acknowledged.
    Settle(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

/// The state that the writer shares with its streamer.
pub(super) struct Shared {
    /// Under its present generation stamp.
    pub block: Mutex<ExtendedBlockProto>,
    pub acknowledged: AtomicU64,
    /// Others may count on what is written.
    pub is_promised: AtomicBool,
    /// Set before the streamer ends badly.
    pub failure: Mutex<Option<WriteError>>,
}

impl Shared {
    pub fn new(block: ExtendedBlockProto, acknowledged: u64, is_promised: bool) -> Self {
        Self {
            block: Mutex::new(block),
            acknowledged: AtomicU64::new(acknowledged),
            is_promised: AtomicBool::new(is_promised),
            failure: Mutex::new(None),
        }
    }
}

pub(super) struct Streamer {
    pipe: Pipe,
    link: Link,
    window: Window<Bytes>,
    commands: mpsc::Receiver<Command>,
    shared: Arc<Shared>,
    keeper: Option<Arc<dyn PipelineKeeper>>,
    /// Since something was acknowledged.
    recoveries: usize,
    /// When the pipeline last acknowledged something, or began to owe an acknowledgement.
    heard: Instant,
    /// Answered once the window is empty.
    settling: Vec<oneshot::Sender<()>>,
    closing: Option<oneshot::Sender<()>>,
}

/// The present pipeline cannot go on.
struct Broken {
    node: Option<usize>,
    reason: String,
}

impl Broken {
    /// The first server speaks for all: when it does not speak it is to blame.
    fn first(reason: impl ToString) -> Self {
        Self { node: Some(0), reason: reason.to_string() }
    }
}

enum Event {
    Ack(Result<PipelineAckProto, StreamError>),
    Command(Option<Command>),
    Idle,
}

impl Streamer {
    pub fn new(
        pipe: Pipe,
        link: Link,
        window: Window<Bytes>,
        commands: mpsc::Receiver<Command>,
        shared: Arc<Shared>,
        keeper: Option<Arc<dyn PipelineKeeper>>,
    ) -> Self {
        Self {
            pipe,
            link,
            window,
            commands,
            shared,
            keeper,
            recoveries: 0,
            heard: Instant::now(),
            settling: Vec::new(),
            closing: None,
        }
    }

    /// Runs until the block is closed, its writer is dropped, or no server is left.
    pub async fn run(mut self) {
        while let Err(broken) = self.stream().await {
            match self.mend(broken).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    *self.shared.failure.lock() = Some(error);
                    return;
                }
            }
        }
    }

    async fn stream(&mut self) -> Result<(), Broken> {
        loop {
            let takes_commands = !self.window.is_full() && self.closing.is_none();
            let event = tokio::select! {
                biased;
                ack = self.link.inbound.message() => Event::Ack(ack),
                command = self.commands.recv(), if takes_commands => Event::Command(command),
                () = tokio::time::sleep(self.pipe.heartbeat_interval()) => Event::Idle,
            };
            match event {
                Event::Ack(Ok(acknowledgement)) => self.on_ack(&acknowledgement)?,
                Event::Ack(Err(StreamError::Timeout(_))) => {}
                Event::Ack(Err(error)) => return Err(Broken::first(error)),
                Event::Command(None) => return Ok(()),
                Event::Command(Some(command)) => self.on_command(command).await?,
                Event::Idle => self.heartbeat().await?,
            }
            // Only a pipeline that owes an answer is late.
            if !self.window.is_empty() && self.heard.elapsed() > self.pipe.patience() {
                return Err(Broken::first("no acknowledgement came in time"));
            }
            if self.window.is_empty() {
                for reply in self.settling.drain(..) {
                    let _ = reply.send(());
                }
                match self.closing.take() {
                    Some(reply) if self.window.has_ended() => {
                        let _ = reply.send(());
                        return Ok(());
                    }
                    // The end is sent only now, so that a pipeline that breaks while ending lacks nothing but the end.
                    Some(reply) => {
                        self.closing = Some(reply);
                        self.send(self.empty_packet(true, false), None).await?;
                    }
                    None => {}
                }
            }
        }
    }

    fn on_ack(&mut self, acknowledgement: &PipelineAckProto) -> Result<(), Broken> {
        self.heard = Instant::now();
        let retired = self.window.on_ack(&ack(acknowledgement), self.pipe.nodes().len());
        let retired = retired.map_err(|error| {
            let WindowError::Failed { node, status, .. } = &error else { return Broken::first(error) };
            let reason = match self.pipe.nodes().get(*node) {
                Some(server) => format!("{} answered {status}; its log tells why", address(server)),
                None => error.to_string(),
            };
            Broken { node: Some(*node), reason }
        })?;
        if retired.is_some() {
            self.recoveries = 0;
        }
        self.shared.acknowledged.store(self.window.acknowledged(), Ordering::Release);
        Ok(())
    }

    async fn on_command(&mut self, command: Command) -> Result<(), Broken> {
        match command {
            Command::Packet { packed, sync } => {
                let header = PacketHeader { sync, seqno: self.window.next_seqno(), ..packed.header };
                self.send(header, Some(packed)).await
            }
            Command::Sync => self.send(self.empty_packet(false, true), None).await,
            Command::Settle(reply) => {
                self.settling.push(reply);
                Ok(())
            }
            Command::Close(reply) => {
                self.closing = Some(reply);
                Ok(())
            }
        }
    }

    fn empty_packet(&self, last_in_block: bool, sync: bool) -> PacketHeader {
        PacketHeader {
            offset_in_block: self.window.sent() as i64,
            seqno: self.window.next_seqno(),
            last_in_block,
            data_length: 0,
            sync,
        }
    }

    /// Into the window first: what cannot be sent now is sent by the next pipeline.
    async fn send(&mut self, header: PacketHeader, packed: Option<Packed>) -> Result<(), Broken> {
        let bytes = match packed {
            Some(packed) => seal(&header, packed),
            None => {
                let mut bytes = BytesMut::with_capacity(PREFIX_BYTES_MAX);
                packet::encode_prefix(&header, 0, &mut bytes);
                bytes.freeze()
            }
        };
        if self.window.is_empty() {
            self.heard = Instant::now();
        }
        self.window.on_sent(header, bytes.clone());
        self.link.out.write(&bytes).await.map_err(Broken::first)
    }

    async fn heartbeat(&mut self) -> Result<(), Broken> {
        let header = PacketHeader { seqno: PacketHeader::HEARTBEAT_SEQNO, ..Default::default() };
        let mut bytes = BytesMut::with_capacity(PREFIX_BYTES_MAX);
        packet::encode_prefix(&header, 0, &mut bytes);
        self.link.out.write(&bytes).await.map_err(Broken::first)
    }

    /// Builds a new pipeline from the servers that are left, with another one where the options ask for it, and
    /// sends it what was never acknowledged. True when the block has ended with that.
    async fn mend(&mut self, broken: Broken) -> Result<bool, WriteError> {
        let mut broken = broken;
        loop {
            let bad_node = broken.node.filter(|node| *node < self.pipe.nodes().len());
            let bad_node = bad_node.map(|node| Box::new(self.pipe.remove(node)));
            tracing::warn!(
                block = describe(&self.shared.block.lock()),
                reason = broken.reason,
                left = self.pipe.nodes().len(),
                "a pipeline broke"
            );
            self.recoveries += 1;
            let (name, acknowledged) = (describe(&self.shared.block.lock()), self.window.acknowledged());
            let failed = |reason: String| WriteError::Broken {
                block: name.clone(),
                bad_node: bad_node.clone(),
                acknowledged,
                reason,
            };
            let Some(keeper) = self.keeper.clone() else { return Err(failed(broken.reason)) };
            if let Some(node) = &bad_node {
                keeper.lost(node);
            }
            if self.pipe.nodes().is_empty() || self.recoveries > RECOVERIES_MAX {
                return Err(failed(broken.reason));
            }
            let mut old = self.shared.block.lock().clone();
            old.num_bytes = Some(self.window.acknowledged());
            let is_promised = self.shared.is_promised.load(Ordering::Acquire);
            let sent = self.window.sent();
            replacement::replace(&mut self.pipe, &*keeper, &old, is_promised, sent).await.map_err(failed)?;
            let stamp = keeper.new_stamp(&old).await.map_err(failed)?;
            match self.reopen(&old, stamp.b.generation_stamp, stamp.block_token).await {
                Ok((link, mut renamed)) => {
                    self.link = link;
                    self.heard = Instant::now();
                    renamed.num_bytes = Some(self.window.acknowledged());
                    let nodes = self.pipe.nodes();
                    let updated = keeper.update(&old, &renamed, nodes, self.pipe.storage_ids()).await;
                    updated.map_err(failed)?;
                    *self.shared.block.lock() = renamed;
                }
                Err(error) => {
                    broken = Broken { node: error.bad_node, reason: error.reason };
                    continue;
                }
            }
            if self.window.has_ended() {
                if let Some(reply) = self.closing.take() {
                    let _ = reply.send(());
                }
                return Ok(true);
            }
            match self.resend().await {
                Ok(()) => return Ok(false),
                Err(again) => broken = again,
            }
        }
    }

    async fn reopen(
        &mut self,
        block: &ExtendedBlockProto,
        stamp: u64,
        token: proto::common::TokenProto,
    ) -> Result<(Link, ExtendedBlockProto), SetupError> {
        let stage = match self.window.has_ended() {
            true => Stage::CloseRecovery { stamp, token },
            false => Stage::Recovery { stamp, token },
        };
        let lengths = self.window.acknowledged()..self.window.sent();
        self.pipe.open(block, &stage, lengths).await
    }

    async fn resend(&mut self) -> Result<(), Broken> {
        for (_, bytes) in self.window.under_way() {
            self.link.out.write(bytes).await.map_err(Broken::first)?;
        }
        Ok(())
    }
}

/// Puts the header in front of checksums and data.
fn seal(header: &PacketHeader, packed: Packed) -> Bytes {
    let Packed { mut buffer, sums_bytes, .. } = packed;
    let unused = PREFIX_BYTES_MAX - packet::prefix_bytes(header);
    buffer.advance(unused);
    packet::encode_prefix(header, sums_bytes, &mut buffer[..PREFIX_BYTES_MAX - unused]);
    buffer.freeze()
}
