use super::*;

const LEASED: ProofSettings = ProofSettings { rests_on_lease: true, patience_ms: 10_000, bytes_max: 1_000 };
const ASKED: ProofSettings = ProofSettings { rests_on_lease: false, ..LEASED };

fn at(ms: u64) -> Moment {
    Moment::from_ms(ms)
}

fn reign(epoch: u64, holds_lease: bool) -> Reign {
    Reign { answers: true, holds_lease, epoch: Epoch(epoch) }
}

fn unproved(settings: ProofSettings) -> Unproved<&'static str> {
    Unproved::new(settings, Rules::default())
}

#[test]
fn an_answer_without_a_lease_goes_out_with_the_next_grant() {
    let mut answers = unproved(LEASED);
    assert!(LEASED.is_proved(Rules::default(), reign(3, true), Epoch(3)));
    assert!(!LEASED.is_proved(Rules::default(), reign(3, false), Epoch(3)));
    answers.wait("a", 10, Epoch(3), at(100)).unwrap();
    let step = answers.look(reign(3, false), at(101));
    assert!(step.done.is_empty() && step.ask.is_some());
    // The coordinator is out of reach, and a grant comes.
    assert_eq!(answers.look(reign(3, true), at(140)).done, [("a", Fate::Send)]);
    assert!(answers.is_empty());
    assert_eq!(answers.bytes, 0);
}

#[test]
fn a_confirmation_proves_what_was_read_before_the_question() {
    let mut answers = unproved(ASKED);
    answers.wait("before", 10, Epoch(3), at(100)).unwrap();
    let first = answers.look(reign(3, true), at(100)).ask.expect("no lease counts");
    answers.wait("after", 10, Epoch(3), at(101)).unwrap();
    assert_eq!(answers.look(reign(3, true), at(102)).ask, None, "one question at a time");
    assert_eq!(answers.answered(first, true, reign(3, true)), [("before", Fate::Send)]);
    // The coordinator's answer comes twice.
    assert!(answers.answered(first, true, reign(3, true)).is_empty());
    let second = answers.look(reign(3, true), at(102)).ask.expect("one more waits");
    assert_eq!(answers.answered(second, true, reign(3, true)), [("after", Fate::Send)]);
}

#[test]
fn where_leases_count_the_coordinator_is_asked_now_and_then() {
    let mut answers = unproved(LEASED);
    answers.wait("a", 10, Epoch(3), at(100)).unwrap();
    let first = answers.look(reign(3, false), at(100)).ask.unwrap();
    assert!(answers.answered(first, false, reign(3, false)).is_empty());
    assert_eq!(answers.look(reign(3, false), at(149)).ask, None);
    assert_eq!(answers.deadline(), Some(at(150)));
    let second = answers.look(reign(3, false), at(150)).ask.expect("50 ms are over");
    // It never answers, or only after it was asked again.
    assert_eq!(answers.look(reign(3, false), at(1_149)).ask, None);
    let third = answers.look(reign(3, false), at(1_150)).ask.expect("a second is over");
    assert!(answers.answered(second, true, reign(3, false)).is_empty());
    assert_eq!(answers.answered(third, true, reign(3, false)), [("a", Fate::Send)]);
}

#[test]
fn a_reign_proves_nothing_about_the_reads_of_another() {
    for settings in [LEASED, ASKED] {
        let mut answers = unproved(settings);
        answers.wait("old", 10, Epoch(3), at(100)).unwrap();
        let question = answers.look(reign(3, false), at(100)).ask.unwrap();
        // It was deposed and elected again, and the coordinator speaks of the view of epoch 5.
        assert!(answers.answered(question, true, reign(5, true)).is_empty());
        assert_eq!(answers.look(reign(5, true), at(101)).done, [("old", Fate::HandOver)]);
        assert!(!settings.is_proved(Rules::default(), reign(5, true), Epoch(3)));
    }
}

#[test]
fn a_member_that_answers_no_more_hands_over_what_waits() {
    let mut answers = unproved(LEASED);
    answers.wait("a", 10, Epoch(3), at(100)).unwrap();
    let deposed = Reign { answers: false, holds_lease: false, epoch: Epoch(3) };
    let step = answers.look(deposed, at(101));
    assert_eq!(step.done, [("a", Fate::HandOver)]);
    assert_eq!(step.ask, None);
    assert_eq!(answers.deadline(), None);
}

#[test]
fn patience_ends() {
    let mut answers = unproved(LEASED);
    answers.wait("a", 10, Epoch(3), at(100)).unwrap();
    answers.wait("b", 10, Epoch(3), at(200)).unwrap();
    assert!(answers.look(reign(3, false), at(10_099)).done.is_empty());
    assert_eq!(answers.look(reign(3, false), at(10_100)).done, [("a", Fate::GiveUp)]);
    assert_eq!(answers.len(), 1);
}

#[test]
fn answers_that_wait_are_bounded_in_bytes() {
    let mut answers = unproved(LEASED);
    answers.wait("as large as it is", 5_000, Epoch(3), at(1)).unwrap();
    let (back, full) = answers.wait("b", 1, Epoch(3), at(2)).unwrap_err();
    assert_eq!((back, full), ("b", Full { bytes: 5_000 }));
    assert_eq!(answers.look(reign(3, true), at(3)).done.len(), 1);
    answers.wait("b", 1, Epoch(3), at(4)).unwrap();
}
