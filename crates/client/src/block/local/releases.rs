//! Tells data servers which slots are not in use any more, and closes replicas that nobody reads.

use super::{
    replicas::Replicas,
    segments::{Release, Segments},
};
use proto::{
    data_transfer::Opcode,
    hdfs::{ReleaseShortCircuitAccessRequestProto, ReleaseShortCircuitAccessResponseProto, Status},
};
use rpc::{local::LocalLink, streaming::StreamError};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{sync::mpsc::UnboundedReceiver, time::MissedTickBehavior};

/// Runs until the client and all its replicas are gone.
pub async fn run(
    mut releases: UnboundedReceiver<Release>,
    segments: Arc<Segments>,
    replicas: Weak<Replicas>,
    patience: Duration,
) {
    let mut links = HashMap::new();
    let every = replicas.upgrade().map_or(Duration::from_secs(60), |replicas| replicas.look_every());
    let mut look = tokio::time::interval(every);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            release = releases.recv() => match release {
                Some(release) => tell(&release, &segments, &mut links, patience).await,
                None => return,
            },
            _ = look.tick() => {
                if let Some(replicas) = replicas.upgrade() {
                    replicas.close_unused();
                }
            }
        }
    }
}

/// Tells the slot's server. If that does not work out, the whole segment is dropped: nobody knows which slots the server
/// still takes for used.
async fn tell(
    release: &Release,
    segments: &Segments,
    links: &mut HashMap<PathBuf, LocalLink>,
    patience: Duration,
) {
    if !release.segment.is_alive() {
        segments.drop_segment(&release.segment);
        return;
    }
    let path = &release.segment.path;
    let reused = links.remove(path).filter(LocalLink::is_quiet);
    let mut told = match reused {
        Some(link) => say(link, release).await,
        None => Err(StreamError::Closed),
    };
    if told.is_err() {
        told = match LocalLink::connect(path, patience).await {
            Ok(link) => say(link, release).await,
            Err(error) => Err(error),
        };
    }
    match told {
        Ok((Status::Success, link)) => {
            links.insert(path.clone(), link);
            segments.free(release);
        }
        Ok((status, _)) => {
            tracing::debug!(?status, "a data server does not take a slot back; its segment is dropped");
            segments.drop_segment(&release.segment);
        }
        Err(error) => {
            tracing::debug!(%error, "a slot cannot be given back; its segment is dropped");
            segments.drop_segment(&release.segment);
        }
    }
}

async fn say(mut link: LocalLink, release: &Release) -> Result<(Status, LocalLink), StreamError> {
    let request = ReleaseShortCircuitAccessRequestProto {
        slot_id: release.segment.slot(release.index),
        trace_info: None,
    };
    link.send(Opcode::ReleaseShortCircuitFds, &request).await?;
    let answer: ReleaseShortCircuitAccessResponseProto = link.message().await?;
    Ok((Status::try_from(answer.status).unwrap_or(Status::Error), link))
}
