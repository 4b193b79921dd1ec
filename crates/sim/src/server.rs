//! One metadata server without its network, stepped by a scenario: member, journal, coordinator, namespace.

use crate::{
    check,
    history::{Call, History},
    workload::PlannedCall,
};
use base::{
    CallOrigin, Durable, Entry, EntryKind, Epoch, GroupId, GroupView, LogPoint, MemberId, MemberStore, Sn,
    Timestamp, TxId,
};
use coord::{Basis, ChangeError, Coordinator, Embedded, Version};
use env::Env;
use group::{ChangeFailed, Effects, Input, Member, Outgoing, Proposal, Restored, Role};
use journal::{Checkpoint, Fault, Identity, Journal};
use namespace::{Edit, FrozenTree, Namespace, Reply};
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

const GROUP: GroupId = GroupId(0);
const ME: MemberStore = MemberStore { member: MemberId(1), generation: 0 };

/// Where a server keeps its things.
pub struct Place {
    pub store: PathBuf,
    pub coordinator: PathBuf,
}

impl Place {
    pub fn new(root: &Path) -> Self {
        Self { store: root.join("store"), coordinator: root.join("coordinator") }
    }
}

/// Makes the store and the group's first view.
///
/// # Errors
/// The store or the coordinator's file cannot be written, or is there already.
pub fn format(env: &Env, place: &Place) -> anyhow::Result<()> {
    let identity = Identity { cluster_id: "CID-sim".into(), group: GROUP, member: ME.member };
    journal::format(env, &place.store, &identity)?;
    let coordinator = Embedded::open(env, &place.coordinator)?;
    coord::wait(|done| coordinator.create(GROUP, GroupView::new(&[ME], 1), done))?;
    Ok(())
}

/// The journal's answers, in its order.
type Answers = Arc<Mutex<VecDeque<Result<Durable, Arc<Fault>>>>>;

/// A running server. Answers of the journal collect in a box until [`Server::handle_answers`].
pub struct Server {
    env: Env,
    journal: Journal,
    coordinator: Embedded,
    member: Member,
    pub namespace: Namespace,
    /// Effects whose entries are on their way, in order.
    in_flight: VecDeque<Effects>,
    answers: Answers,
    image: ImageStage,
}

/// Where the image being made stands.
enum ImageStage {
    None,
    /// Waits until all that it contains has committed.
    Taken(LogPoint, Box<FrozenTree>),
    /// The entry that makes it usable is on its way.
    Proposed(Sn, Checkpoint),
}

impl Server {
    /// Recovers, checking against what is known, and asks for the next epoch. It serves once its first entry
    /// is on the disk.
    ///
    /// # Errors
    /// The store cannot be opened or recovered, an entry cannot be applied, or the coordinator's file cannot be read.
    pub fn start(
        env: &Env,
        place: &Place,
        settings: journal::Settings,
        history: &mut History,
    ) -> anyhow::Result<Self> {
        let mut recovery = journal::open(env, &place.store, settings)?;
        let state = recovery.state().clone();
        let seed = env.random.next_u64();
        let image = recovery.load_image(|reader| {
            let size = reader.file_bytes();
            Namespace::read_image(seed, reader, size).map_err(std::io::Error::other)
        })?;
        let mut namespace = match image {
            Some((at, namespace)) => {
                check::equal_state_at_equal_sn::check(history, at.id, namespace.digest());
                history.note(format!("image of {} read", at.id));
                namespace
            }
            None => Namespace::new(seed, "hdfs", "supergroup", Timestamp::from_ms(1)),
        };
        let replay = |namespace: &mut Namespace, entry: &Entry| {
            check::equal_state_at_equal_sn::check_point(history, entry.point());
            serving::apply_entry(namespace, entry)?;
            check::equal_state_at_equal_sn::check(history, entry.id, namespace.digest());
            Ok(())
        };
        let (journal, recovered) = recovery.replay(|entry| replay(&mut namespace, &entry))?;
        for entry in &recovered.tail {
            replay(&mut namespace, entry).map_err(|error: journal::ApplyError| anyhow::anyhow!(error))?;
        }
        for finding in &recovered.findings {
            history.note(format!(
                "found: {} ({} at {})",
                finding.what,
                finding.file.display(),
                finding.offset
            ));
        }
        let end = recovered.end;
        check::acknowledged_edits_survive::check(history, end);
        check::answers_are_remembered::check(history, &namespace);
        history.forget_after(end.id.sn);
        history.note(format!("recovered to {} with {} entries", end.id, recovered.replayed));

        let restored = Restored {
            promised: state.promised,
            base: end,
            boot: journal.state().boot,
            ..Restored::default()
        };
        let coordinator = Embedded::open(env, &place.coordinator)?;
        let known = coord::wait(|done| coordinator.read(GROUP, done))?.expect("the group was made");
        let member = Member::new(group::Settings::default(), ME, restored, env.clock.moment(), 1);
        let mut server = Self {
            env: env.clone(),
            journal,
            coordinator,
            member,
            namespace,
            in_flight: VecDeque::new(),
            answers: Arc::default(),
            image: ImageStage::None,
        };
        server.step(Input::View { view: known.view, version: known.version.0 }, history);
        Ok(server)
    }

    pub fn serving(&self) -> Option<Epoch> {
        match self.member.role() {
            Role::Serving { epoch } => Some(*epoch),
            _ => None,
        }
    }

    pub fn role(&self) -> &Role {
        self.member.role()
    }

    /// Why the journal refuses to go on.
    pub fn fault(&self) -> Option<Arc<Fault>> {
        self.journal.fault()
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Applies a planned operation and appends it. It is answered when it has committed.
    pub fn execute(&mut self, origin: CallOrigin, planned: PlannedCall, history: &mut History) {
        let Some(epoch) = self.serving() else { return };
        let sn = Sn(self.member.end().id.sn.0 + 1);
        let reply = self.apply_edit(TxId { epoch, sn }, &planned.edit);
        let fingerprint = planned.fingerprint;
        history.calls.push(Call { origin, fingerprint, reply, sn, is_acknowledged: false });
        let mut payload = Vec::new();
        planned.edit.encode(&mut payload);
        let proposal = Proposal { kind: EntryKind::Operation, payload: payload.into() };
        self.propose(proposal, history);
    }

    fn apply_edit(&mut self, at: TxId, edit: &Edit) -> Reply {
        self.namespace.apply(at, edit).reply
    }

    /// Freezes the tree; the image follows when everything in it has committed.
    pub fn begin_image(&mut self) {
        if self.serving().is_some() && matches!(self.image, ImageStage::None) {
            self.image = ImageStage::Taken(self.member.end(), Box::new(self.namespace.freeze()));
        }
    }

    fn go_on_with_image(&mut self, history: &mut History) {
        let committed = self.member.committed();
        match std::mem::replace(&mut self.image, ImageStage::None) {
            ImageStage::Taken(at, frozen) if at.id.sn <= committed => {
                match self.journal.write_image(at, |writer| frozen.write(&mut |bytes| writer.write(bytes))) {
                    Ok(checkpoint) => {
                        let sn = Sn(self.member.end().id.sn.0 + 1);
                        self.namespace.skip_to(TxId { epoch: self.serving().unwrap_or_default(), sn });
                        let payload = checkpoint.encode();
                        self.image = ImageStage::Proposed(sn, checkpoint);
                        let proposal = Proposal { kind: EntryKind::Checkpoint, payload };
                        self.propose(proposal, history);
                    }
                    Err(error) => history.note(format!("no image: {error}")),
                }
            }
            ImageStage::Proposed(sn, checkpoint) if sn <= committed => {
                match self.journal.checkpoint_committed(&checkpoint) {
                    Ok(()) => history.note(format!("checkpoint of {}", checkpoint.at.id)),
                    Err(error) => history.note(format!("checkpoint not kept: {error}")),
                }
            }
            other => self.image = other,
        }
    }

    /// The namespace has applied the proposal already.
    fn propose(&mut self, proposal: Proposal, history: &mut History) {
        let now = self.env.clock.moment();
        let effects = self.member.step(now, Input::Propose(vec![proposal]));
        self.carry_out(effects, true, history);
    }

    fn step(&mut self, input: Input, history: &mut History) {
        let now = self.env.clock.moment();
        let effects = self.member.step(now, input);
        self.carry_out(effects, false, history);
    }

    fn carry_out(&mut self, mut effects: Effects, is_applied: bool, history: &mut History) {
        if let Some(change) = effects.take_change() {
            let asked = change.name();
            let basis = Basis { version: Version(change.expected_version), change_id: change.expected_id };
            let answer = coord::wait(|done| {
                self.coordinator.change(GROUP, basis, change.view, &change.requires, done)
            });
            let answer = match answer {
                Ok(version) => Ok(version.0),
                Err(ChangeError::Unknown { .. }) => Err(ChangeFailed::Unknown),
                Err(_) => Err(ChangeFailed::BadVersion),
            };
            let outgoing = effects.release_at_once();
            self.deliver(outgoing, history);
            return self.step(Input::Changed { asked, answer }, history);
        }
        let promise = effects.promise();
        if let Some(epoch) = promise {
            match self.journal.promise(epoch) {
                Ok(durable) => {
                    let outgoing = effects.release(durable);
                    self.deliver(outgoing, history);
                }
                Err(_) => self.step(Input::DiskFailed, history),
            }
            return;
        }
        let entries = effects.take_entries();
        if entries.is_empty() {
            let outgoing = effects.release_at_once();
            return self.deliver(outgoing, history);
        }
        for entry in &entries {
            if !is_applied {
                serving::apply_entry(&mut self.namespace, entry).expect("an own entry can be applied");
            }
            history.states.insert(entry.id.sn, (entry.point(), self.namespace.digest()));
        }
        let answers = self.answers.clone();
        let appended = self.journal.append(entries, Box::new(move |answer| answers.lock().push_back(answer)));
        match appended {
            Ok(()) => self.in_flight.push_back(effects),
            Err(_) => self.step(Input::DiskFailed, history),
        }
    }

    /// Takes the journal's answers that have arrived.
    pub fn handle_answers(&mut self, history: &mut History) {
        loop {
            let answer = self.answers.lock().pop_front();
            let Some(answer) = answer else { break };
            let effects = self.in_flight.pop_front().expect("answers come in the order of the appends");
            match answer {
                Ok(durable) => {
                    let outgoing = effects.release(durable);
                    self.deliver(outgoing, history);
                }
                Err(fault) => {
                    history.note(format!("journal failed: {fault}"));
                    self.step(Input::DiskFailed, history);
                }
            }
        }
        self.go_on_with_image(history);
    }

    fn deliver(&mut self, outgoing: Outgoing, history: &mut History) {
        if let Some(role) = outgoing.role {
            history.note(format!("role {role:?}"));
        }
        if let Some(sn) = outgoing.committed {
            self.journal.note_commit(sn);
            history.commit(sn);
        }
        if let Some(proof) = outgoing.proof {
            self.step(Input::Durable(proof), history);
        }
    }
}
