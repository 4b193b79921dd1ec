use super::*;
use crate::{Refusals, Tree};
use base::{CallId, Caller, ClientId, Epoch, Level, Moment, Sn, Timestamp, TxId};
use bytes::Bytes;
use namespace::Limits;

/// A member of a group, and the log that all of them have.
struct Member {
    tree: Tree,
    refusals: Refusals,
    rules: Rules,
}

#[derive(Default)]
struct Log(Vec<(Epoch, Edit)>);

fn copy(retry_count: i32, repeats: u32) -> CallOrigin {
    CallOrigin { client_id: ClientId([7; 16]), call_id: CallId(5), retry_count, repeats, address: None }
}

/// The call of somebody else.
fn other(call: i32) -> CallOrigin {
    CallOrigin { client_id: ClientId([8; 16]), call_id: CallId(call), ..copy(0, 0) }
}

fn delete(path: &str) -> namespace::Request {
    ops::delete::Request { path: path.into(), recursive: true }.into()
}

fn mkdir(path: &str) -> namespace::Request {
    let request =
        ops::mkdirs::Request { path: path.into(), permission: 0o755, unmasked: None, create_parent: true };
    request.into()
}

#[derive(Debug, PartialEq)]
enum Heard {
    Answer(FsResult<Reply>),
    AskAgain,
}

impl Member {
    fn at(level: Level) -> Self {
        let namespace = Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1)).beginning_at(level);
        let rules = Rules::default();
        Self { tree: Tree::new(namespace, rules), refusals: Refusals::new(rules), rules }
    }

    fn new() -> Self {
        Self::at(Level::NEWEST)
    }

    fn apply(&mut self, log: &mut Log, epoch: Epoch, edit: Edit) -> Reply {
        let at = TxId { epoch, sn: Sn(self.tree.namespace.applied().sn.0 + 1) };
        let reply = self.tree.apply_own(at, &edit).reply;
        log.0.push((epoch, edit));
        reply
    }

    /// Takes over with all that the log has.
    fn leads(&mut self, log: &Log) {
        let from = self.tree.namespace.applied().sn.0 as usize;
        for (index, (epoch, edit)) in log.0.iter().enumerate().skip(from) {
            let at = TxId { epoch: *epoch, sn: Sn(index as u64 + 1) };
            let said = crate::Said::Edit(edit.clone());
            self.tree.apply_ahead(at, &said, &Bytes::new()).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    fn hear(&mut self, log: &mut Log, epoch: u64, origin: CallOrigin, request: &namespace::Request) -> Heard {
        use namespace::{Plannable as _, given_facts::GivenFacts};
        let epoch = Epoch(epoch);
        let (caller, limits) = (Caller::simple("hdfs", &["supergroup"]), Limits::default());
        let context = Context {
            caller: &caller,
            origin: Some(origin),
            fingerprint: 42,
            now: Timestamp::from_ms(1_000),
            moment: Moment::default(),
            limits: &limits,
            renewals: None,
            looks: None,
            told: None,
            room: None,
        };
        let known = Known {
            origin: &origin,
            carried_out: self.tree.namespace.retry_lookup(&origin, 42),
            refused: self.refusals.get(&origin, 42, epoch),
        };
        let plan = || request.plan(&self.tree.namespace, &context, &GivenFacts::all_finished());
        match decide(known, || Ok(()), plan) {
            Decision::Step(Step::Edit(edit)) => Heard::Answer(Ok(self.apply(log, epoch, edit))),
            Decision::Step(step) => panic!("{step:?}"),
            Decision::Told(answer) => Heard::Answer(answer),
            Decision::NotNow(FsError::Retry(_)) => Heard::AskAgain,
            Decision::NotNow(error) => panic!("{error}"),
            Decision::NoEdit(answer) => {
                if let Some(edit) = note(self.rules, &self.tree.namespace, &context) {
                    self.apply(log, epoch, edit);
                }
                self.refusals.put(&origin, 42, epoch, answer.clone());
                Heard::Answer(answer)
            }
        }
    }
}

const NOTHING_THERE: Heard = Heard::Answer(Ok(Reply::Bool(false)));
const DONE: Heard = Heard::Answer(Ok(Reply::Bool(true)));

/// Member 1 holds the first copy of a call, and member 3 refuses the second one. When member 1 leads again, others have made
/// what the call would delete.
fn held_over(answered: CallOrigin, late: CallOrigin, change: impl FnOnce(&mut Member)) -> (Heard, usize) {
    let (mut first, mut third, mut log) = (Member::new(), Member::new(), Log::default());
    change(&mut third);
    assert_eq!(third.hear(&mut log, 4, answered, &delete("/f")), NOTHING_THERE);
    let noted = log.0.len();
    assert_eq!(third.hear(&mut log, 4, other(1), &mkdir("/f")), DONE);
    first.leads(&log);
    (first.hear(&mut log, 5, late, &delete("/f")), noted)
}

#[test]
fn a_copy_that_was_held_is_not_carried_out_after_a_later_one_was_refused_elsewhere() {
    for late in [copy(0, 0), copy(0, 1), copy(0, 2), copy(1, 0)] {
        assert_eq!(held_over(copy(1, 0), late, |_| ()), (Heard::AskAgain, 1), "{late:?}");
    }
    // A member has repeated it, and the first of its copies was only late.
    assert_eq!(held_over(copy(0, 1), copy(0, 0), |_| ()), (Heard::AskAgain, 1));
}

#[test]
fn a_copy_that_was_sent_after_the_refused_one_is_carried_out() {
    for late in [copy(1, 1), copy(2, 0)] {
        assert_eq!(held_over(copy(1, 0), late, |_| ()), (DONE, 1), "{late:?}");
    }
}

#[test]
fn nothing_is_noted_of_first_copies_nor_of_clients_that_do_not_count() {
    for answered in [copy(0, 0), copy(-1, 0), copy(-1, 1)] {
        assert_eq!(held_over(answered, copy(2, 0), |_| ()), (DONE, 0), "{answered:?}");
    }
    // One that does not count may have sent its copy just now.
    assert_eq!(held_over(copy(1, 0), copy(-1, 0), |_| ()), (DONE, 1));
}

#[test]
fn below_the_level_nothing_is_noted() {
    let older = |member: &mut Member| *member = Member::at(Level::EPOCH_LEADERS);
    assert_eq!(held_over(copy(1, 0), copy(0, 0), older), (DONE, 0));
}

#[cfg(feature = "broken")]
#[test]
fn without_the_note_the_late_copy_is_carried_out() {
    let forgets = |member: &mut Member| member.rules = Rules::without(Broken::AnswersNotNoted);
    assert_eq!(held_over(copy(1, 0), copy(0, 0), forgets), (DONE, 0));
}

#[test]
fn the_active_that_has_refused_it_tells_the_late_copy_the_same() {
    let (mut active, mut log) = (Member::new(), Log::default());
    assert_eq!(active.hear(&mut log, 4, copy(1, 0), &delete("/f")), NOTHING_THERE);
    assert_eq!(active.hear(&mut log, 4, other(1), &mkdir("/f")), DONE);
    assert_eq!(active.hear(&mut log, 4, copy(0, 0), &delete("/f")), NOTHING_THERE);
    assert_eq!(log.0.len(), 2, "that it was told is noted once");
}

#[test]
fn a_call_that_is_carried_out_after_all_is_remembered_as_such() {
    let (mut active, mut log) = (Member::new(), Log::default());
    assert_eq!(active.hear(&mut log, 4, copy(1, 0), &delete("/f")), NOTHING_THERE);
    assert_eq!(active.hear(&mut log, 4, other(1), &mkdir("/f")), DONE);
    // The answer was lost: the client asks again.
    assert_eq!(active.hear(&mut log, 4, copy(2, 0), &delete("/f")), DONE);
    assert_eq!(active.hear(&mut log, 4, other(2), &mkdir("/f")), DONE);
    let mut next = Member::new();
    next.leads(&log);
    for late in [copy(0, 0), copy(1, 0), copy(2, 0), copy(3, 0)] {
        assert_eq!(next.hear(&mut log, 5, late, &delete("/f")), DONE, "{late:?}");
    }
    assert_eq!(log.0.len(), 4, "it was carried out once");
}
