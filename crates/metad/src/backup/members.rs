//! The members as a backup sees them: what each has, and whom to ask first.

use super::BackupError;
use crate::{
    cluster::scope,
    exchange::source::{Asker, Source},
    peers::Secret,
};
use base::{Entry, Epoch, GroupId, Level, LogPoint, MemberId, Sn};
use journal::archive::Whose;
use proto::{clover::pool as p, exception};
use rpc::CallError;
use std::{sync::Arc, time::Duration};
use tokio::runtime::Handle;

/// A member that does not say how it stands within this is passed over in this round.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// The group whose members are asked, and the secret by which they and this program prove themselves to each other.
pub struct Group {
    pub cluster_id: String,
    pub group: GroupId,
    pub secret: Secret,
    /// The user name with which connections are made.
    pub user: String,
}

/// The address at which a member takes calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub member: MemberId,
    pub rpc_address: String,
}

/// A member's answer about itself.
#[derive(Clone, Debug)]
pub struct Told {
    pub member: MemberId,
    pub whose: Whose,
    pub now_ms: u64,
    pub committed: Sn,
    pub end: Sn,
    pub epoch: Epoch,
    pub begins_after: Sn,
    pub serves: Option<Epoch>,
}

pub struct Members {
    cluster_id: String,
    asker: Arc<Asker>,
    runtime: Handle,
    sources: Vec<(Place, Source)>,
}

impl Members {
    pub fn new(group: Group, runtime: Handle) -> Self {
        let Group { cluster_id, group, secret, user } = group;
        // No member has this number.
        let asker = Arc::new(Asker { scope: scope(&cluster_id, group), me: MemberId(0), secret, user });
        Self { cluster_id, asker, runtime, sources: Vec::new() }
    }

    /// Takes these members from now on. Connections to members that stay are kept.
    pub fn set(&mut self, places: Vec<Place>) {
        if places.is_empty() {
            return;
        }
        let mut before = std::mem::take(&mut self.sources);
        let _within = self.runtime.enter();
        for place in places {
            let source = match before.iter().position(|(known, _)| *known == place) {
                Some(at) => before.swap_remove(at).1,
                None => Source::new(place.member, place.rpc_address.clone(), &self.asker, &self.runtime),
            };
            self.sources.push((place, source));
        }
    }

    /// Asks all members. Returns the answers, with the member to be preferred at the front, and a text that says why
    /// the others do not answer.
    pub fn ask(&self) -> Result<(Vec<Told>, String), BackupError> {
        let asked: Vec<_> =
            self.sources.iter().map(|(place, source)| (place, source.ask_archive(ASK_TIMEOUT))).collect();
        let (mut told, mut silent, mut fatal) = (Vec::new(), Vec::new(), None);
        for (place, answer) in asked {
            let answer = self.runtime.block_on(answer).expect("a question does not panic");
            match answer {
                Ok(answer) => told.push(of(answer, &self.cluster_id)),
                Err(error) => {
                    match error.class() {
                        Some(exception::NO_SUCH_METHOD) => {
                            fatal = Some(BackupError::OldRelease(place.member))
                        }
                        Some(exception::ACCESS_CONTROL) => fatal = Some(BackupError::Secret),
                        _ => {}
                    }
                    silent.push(format!("{}: {}", place.rpc_address, reason(&error)));
                }
            }
        }
        if let (true, Some(fatal)) = (told.is_empty(), fatal) {
            return Err(fatal);
        }
        // The active has enough to do.
        told.sort_by_key(|it: &Told| (it.serves.is_some(), std::cmp::Reverse(it.committed), it.member));
        Ok((told, if silent.is_empty() { "no member is known".into() } else { silent.join("; ") }))
    }

    pub fn count(&self) -> usize {
        self.sources.len()
    }

    pub fn source(&self, member: MemberId) -> Option<&Source> {
        self.sources.iter().find(|(place, _)| place.member == member).map(|(_, source)| source)
    }

    /// Entries behind `after`, none above `up_to`, and the point of `after`; `None` where this member has removed them.
    pub fn read_log(
        &self,
        from: &Told,
        after: Sn,
        up_to: Sn,
    ) -> Result<Option<(LogPoint, Vec<Entry>)>, String> {
        match self.source(from.member) {
            Some(source) => source.read_log(after, up_to),
            None => Err(format!("member {} is not known any more", from.member)),
        }
    }
}

fn of(answer: p::AskArchiveResponseProto, cluster_id: &str) -> Told {
    // More than a level has bits is no level that anybody knows.
    let first_level = Level(u16::try_from(answer.first_level()).unwrap_or(u16::MAX));
    Told {
        member: MemberId(answer.member),
        whose: Whose {
            cluster_id: cluster_id.to_owned(),
            namespace_id: answer.namespace_id,
            block_pool: answer.block_pool,
            created_ms: answer.created_ms,
            root_owner: answer.root_owner,
            root_group: answer.root_group,
            group: GroupId(answer.group),
            first_level,
        },
        now_ms: answer.now_ms,
        committed: Sn(answer.committed),
        end: Sn(answer.end),
        epoch: Epoch(answer.epoch),
        begins_after: Sn(answer.begins_after),
        serves: answer.serves.map(Epoch),
    }
}

fn reason(error: &CallError) -> String {
    match error {
        CallError::Remote { message, .. } => {
            exception::without_stack_trace(message).lines().next().unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    }
}
