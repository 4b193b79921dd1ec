//! Another member, as one that may have an image or entries.

use super::{LOG_ANSWER_BYTES_MAX, fetch::Pieces, purpose};
use crate::{
    partition::Partition,
    peers::{
        Secret, codec,
        letter::Letter,
        version::{Version, Versions},
    },
};
use base::{Chain, Entry, Epoch, LogPoint, MemberId, MemberStore, Sn, TxId};
use bytes::Bytes;
use group::{Message, repair::Standing};
use journal::Checkpoint;
use proto::clover::pool as p;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::runtime::Handle;

/// A member that has died costs so long before the next one is asked.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Source {
    pub member: MemberId,
    asker: Arc<Asker>,
    client: rpc::Client,
    runtime: Handle,
}

/// The member that asks, and the secret by which it proves that it may.
pub struct Asker {
    /// Its group in messages between members; they stand in the field that names the cluster.
    pub scope: String,
    pub me: MemberId,
    pub secret: Secret,
    /// The user name with which the connection is made.
    pub user: String,
}

/// How long a member may take to say that it is there, before the others are asked first.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Below this, round trips tell of the machines' load and not of the way between them.
const NEAR: Duration = Duration::from_millis(1);

/// The facts that decide which member to ask first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Merits {
    member: MemberId,
    is_active: bool,
    is_in_sync: bool,
    /// The round trip of a call that asks for little; `None` if there was no answer.
    round_trip: Option<Duration>,
    /// Pieces that it reads for others.
    reads: u32,
}

/// Sorts the sources, the best first. In this order it prefers members that answer; that do not lead, because the
/// active has enough to do; that are in sync, and so are not being renewed themselves; that are nearest, where only a
/// round trip of twice the time counts as longer; and that read least for others.
fn order(merits: &mut [Merits]) {
    let nearest = merits.iter().filter_map(|it| it.round_trip).min().unwrap_or(NEAR).max(NEAR);
    let distance = |it: &Merits| {
        it.round_trip.map_or(u32::MAX, |took| (took.as_nanos() / nearest.as_nanos()).max(1).ilog2())
    };
    merits.sort_by_key(|it| {
        (it.round_trip.is_none(), it.is_active, !it.is_in_sync, distance(it), it.reads, it.member)
    });
}

/// The other members, the one to be asked first at the front. Blocks for two round trips.
pub fn sources(partition: &Partition, secret: Option<&Secret>, runtime: &Handle) -> Vec<Source> {
    let status = partition.member.status();
    let is_in_sync = |member: MemberId| {
        status.view.as_ref().is_some_and(|(view, _)| view.in_sync.iter().any(|store| store.member == member))
    };
    let me = partition.member.me().member;
    let records = partition.member.records();
    let Some(secret) = secret.cloned() else { return Vec::new() };
    let asker = Arc::new(Asker {
        scope: partition.cluster.scope(),
        me,
        secret,
        user: partition.config.limits.access.superuser.to_string(),
    });
    let sources: Vec<Source> = records
        .into_iter()
        .filter(|(member, record)| *member != me && !record.rpc_address.is_empty())
        .map(|(member, record)| Source::new(member, record.rpc_address, &asker, runtime))
        .collect();
    let probes: Vec<_> = sources.iter().map(Source::probe).collect();
    let mut sources: Vec<(Source, Merits)> = sources
        .into_iter()
        .zip(probes)
        .map(|(source, probe)| {
            let member = source.member;
            // All of them are under way by now: the slowest is waited for, and not one after the other.
            let _rest = env::pulse::rest();
            let probed = runtime.block_on(probe).ok().flatten();
            let merits = Merits {
                member,
                is_active: status.active == Some(member),
                is_in_sync: is_in_sync(member),
                round_trip: probed.map(|(took, _)| took),
                reads: probed.map_or(0, |(_, reads)| reads),
            };
            (source, merits)
        })
        .collect();
    let mut merits: Vec<Merits> = sources.iter().map(|(_, merits)| *merits).collect();
    order(&mut merits);
    let place = |member: MemberId| merits.iter().position(|it| it.member == member);
    sources.sort_by_key(|(source, _)| place(source.member));
    tracing::debug!(?merits, "the members to fetch from");
    sources.into_iter().map(|(source, _)| source).collect()
}

type Probe = tokio::task::JoinHandle<Option<(Duration, u32)>>;

impl Source {
    /// A source that asks the member which takes calls at this address. Must be called within a runtime.
    pub fn new(member: MemberId, rpc_address: String, asker: &Arc<Asker>, runtime: &Handle) -> Self {
        let options = rpc::ClientOptions {
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            ping_interval: None,
            reply_bytes_max: LOG_ANSWER_BYTES_MAX,
            ..rpc::ClientOptions::default()
        };
        let client = rpc::Client::connect(rpc_address, proto::protocol::POOL, &asker.user, options);
        Self { member, asker: asker.clone(), client, runtime: runtime.clone() }
    }

    fn list_request(&self) -> p::ListImagesRequestProto {
        let (cluster_id, from) = (self.asker.scope.clone(), self.asker.me.0);
        let mac = self.sign(purpose::LIST, &[cluster_id.as_bytes(), &from.to_le_bytes()]);
        p::ListImagesRequestProto { cluster_id, from, mac }
    }

    /// Begins to measure a round trip, and to ask how much it reads for others. The first call connects.
    fn probe(&self) -> Probe {
        let (request, client) = (self.list_request(), self.client.clone());
        let measured = async move {
            let _: p::ListImagesResponseProto = client.call("listImages", &request).await.ok()?;
            let began = Instant::now();
            let listed: p::ListImagesResponseProto = client.call("listImages", &request).await.ok()?;
            Some((began.elapsed(), listed.reads()))
        };
        self.runtime.spawn(async move { tokio::time::timeout(PROBE_TIMEOUT, measured).await.ok().flatten() })
    }

    /// The committed images that it has. Blocks.
    pub fn images(&self) -> Result<Vec<Checkpoint>, String> {
        let request = self.list_request();
        let _rest = env::pulse::rest();
        let response: p::ListImagesResponseProto = self
            .runtime
            .block_on(self.client.call("listImages", &request))
            .map_err(|error| error.to_string())?;
        Ok(response.checkpoints.iter().filter_map(|bytes| Checkpoint::decode(bytes)).collect())
    }

    fn read_piece(&self, checkpoint: &Checkpoint, offset: u64, length: u32) -> Result<Bytes, String> {
        let (cluster_id, from) = (self.asker.scope.clone(), self.asker.me.0);
        let checkpoint = checkpoint.encode();
        let parts: [&[u8]; 5] = [
            cluster_id.as_bytes(),
            &from.to_le_bytes(),
            &checkpoint,
            &offset.to_le_bytes(),
            &length.to_le_bytes(),
        ];
        let mac = self.sign(purpose::READ, &parts);
        let request = p::ReadImageRequestProto { cluster_id, from, checkpoint, offset, length, mac };
        let _rest = env::pulse::rest();
        let response: p::ReadImageResponseProto = self
            .runtime
            .block_on(self.client.call("readImage", &request))
            .map_err(|error| error.to_string())?;
        let data = response.data.ok_or("it does not have this image")?;
        if data.is_empty() || data.len() > length as usize {
            return Err(format!("{} bytes where {length} were asked for", data.len()));
        }
        if response.crc != Some(crc32c::crc32c(&data)) {
            return Err("a piece whose checksum is wrong".into());
        }
        Ok(data)
    }

    /// Entries of its log after `after`, as many as one answer carries and none above `up_to`, and the point before
    /// them. `None` if it does not have them any more. A member whose store is damaged may answer with later ones.
    /// Blocks.
    pub fn read_log(&self, after: Sn, up_to: Sn) -> Result<Option<(LogPoint, Vec<Entry>)>, String> {
        let (cluster_id, from) = (self.asker.scope.clone(), self.asker.me.0);
        let (after_bytes, up_to_bytes) = (after.0.to_le_bytes(), up_to.0.to_le_bytes());
        let newest_version = u32::from(Versions::OURS.newest.0);
        let newest = newest_version.to_le_bytes();
        let parts: [&[u8]; 5] =
            [cluster_id.as_bytes(), &from.to_le_bytes(), &after_bytes, &up_to_bytes, &newest];
        let mac = self.sign(purpose::READ_LOG, &parts);
        let request =
            p::ReadLogRequestProto { cluster_id, from, after: after.0, up_to: up_to.0, mac, newest_version };
        let _rest = env::pulse::rest();
        let response: p::ReadLogResponseProto = self
            .runtime
            .block_on(self.client.call("readLog", &request))
            .map_err(|error| error.to_string())?;
        let Some(fetched) = response.fetched else { return Ok(None) };
        if response.crc != Some(crc32c::crc32c(&fetched)) {
            return Err("entries whose checksum is wrong".into());
        }
        let version = response.version.and_then(|version| u16::try_from(version).ok()).map(Version);
        let version = version.filter(|version| Versions::OURS.contains(*version));
        let version =
            version.ok_or("entries in a version of the members' protocol that is not known here")?;
        match codec::decode(version, fetched) {
            Ok(Some(Letter::Group(Message::Fetched { previous, entries, .. }))) => {
                Ok(Some((previous, entries)))
            }
            Ok(_) => Err("something else than entries".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Begins to ask what there is for a backup.
    pub fn ask_archive(
        &self,
        patience: Duration,
    ) -> tokio::task::JoinHandle<Result<p::AskArchiveResponseProto, rpc::CallError>> {
        let (cluster_id, from) = (self.asker.scope.clone(), self.asker.me.0);
        let mac = self.sign(purpose::ARCHIVE, &[cluster_id.as_bytes(), &from.to_le_bytes()]);
        let request = p::AskArchiveRequestProto { cluster_id, from, mac };
        let client = self.client.clone();
        self.runtime.spawn(async move {
            let answer = tokio::time::timeout(patience, client.call("askArchive", &request)).await;
            let ms = patience.as_millis() as u64;
            answer.unwrap_or(Err(rpc::CallError::Timeout { ms }))
        })
    }

    /// How its store stands, and what it has at this place. Blocks.
    pub fn standing(&self, committed: Sn) -> Result<Standing, String> {
        let (cluster_id, from) = (self.asker.scope.clone(), self.asker.me.0);
        let parts: [&[u8]; 3] = [cluster_id.as_bytes(), &from.to_le_bytes(), &committed.0.to_le_bytes()];
        let mac = self.sign(purpose::STANDING, &parts);
        let request = p::AskStandingRequestProto { cluster_id, from, committed: committed.0, mac };
        let _rest = env::pulse::rest();
        let told: p::AskStandingResponseProto = self
            .runtime
            .block_on(self.client.call("askStanding", &request))
            .map_err(|error| error.to_string())?;
        if told.member != self.member.0 {
            return Err(format!("member {} answers in its place", told.member));
        }
        let point = |point: p::PointProto| LogPoint {
            id: TxId { epoch: Epoch(point.epoch), sn: Sn(point.sn) },
            chain: Chain(point.chain),
        };
        Ok(Standing {
            store: MemberStore { member: self.member, generation: told.generation },
            promised: Epoch(told.promised),
            begins_after: Sn(told.begins_after),
            end: point(told.end),
            is_end_certain: told.is_end_certain,
            is_damaged: told.is_damaged,
            written: Sn(told.written),
            serves: told.serves.map(Epoch),
            at_commit: told.at_commit.map(point),
        })
    }

    fn sign(&self, purpose: &[u8], parts: &[&[u8]]) -> Bytes {
        Bytes::copy_from_slice(&self.asker.secret.sign(purpose, parts))
    }
}

impl Pieces for Source {
    fn member(&self) -> MemberId {
        self.member
    }

    fn read(&self, checkpoint: &Checkpoint, offset: u64, length: u32) -> Result<Bytes, String> {
        self.read_piece(checkpoint, offset, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merits(member: u32, round_trip_us: u64) -> Merits {
        let round_trip = Some(Duration::from_micros(round_trip_us));
        Merits { member: MemberId(member), is_active: false, is_in_sync: true, round_trip, reads: 0 }
    }

    fn ordered(mut all: Vec<Merits>) -> Vec<u32> {
        order(&mut all);
        all.iter().map(|it| it.member.0).collect()
    }

    #[test]
    fn the_nearest_is_asked_first() {
        assert_eq!(ordered(vec![merits(1, 30_000), merits(2, 9_000), merits(3, 700)]), [3, 2, 1]);
    }

    #[test]
    fn of_those_that_are_as_near_whoever_reads_least_for_others_is_asked() {
        let busy = Merits { reads: 2, ..merits(1, 300) };
        assert_eq!(ordered(vec![busy, merits(3, 900), merits(2, 1_500)]), [2, 3, 1]);
        // Within a rack a round trip says nothing; to another town it says all.
        assert_eq!(ordered(vec![merits(2, 12_000), Merits { reads: 3, ..merits(1, 300) }]), [1, 2]);
    }

    #[test]
    fn the_active_is_spared_and_who_is_renewed_itself_or_silent_comes_late() {
        let active = Merits { is_active: true, ..merits(1, 100) };
        let silent = Merits { round_trip: None, ..merits(2, 0) };
        let junior = Merits { is_in_sync: false, ..merits(3, 100) };
        assert_eq!(ordered(vec![active, silent, junior, merits(4, 50_000)]), [4, 3, 1, 2]);
        assert_eq!(ordered(vec![silent, active]), [1, 2], "the active rather than nobody");
        assert!(ordered(Vec::new()).is_empty());
    }
}
