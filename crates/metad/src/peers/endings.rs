//! Whether a member's process has ended, by the word of its host.
//!
//! A process that ends cannot say so; its host can. The host closes the process's connections, and refuses new ones at the addresses where the
//! process listened. Each alone may have another reason: a connection also ends because one of its sides has had enough of it. Both
//! together, one soon after the other, say that the process is gone. So does a later life of the same store, which cannot have begun
//! before the earlier one ended, because a store is open once. Another generation of the member is another store, perhaps on another host, and says
//! nothing.

use base::{MemberId, MemberLife, Moment};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// A refusal must follow a closed connection within this time. Later it may have another reason.
const SAYS_MS: u64 = 1_000;

/// The lives whose connections to this member were closed at their side, until it is known what became of them.
#[derive(Default)]
pub struct Endings {
    closed: Mutex<BTreeMap<MemberId, (MemberLife, Moment)>>,
}

impl Endings {
    /// The host of this life has closed the connection over which it spoke.
    pub fn closed(&self, now: Moment, life: MemberLife) {
        self.closed.lock().insert(life.store.member, (life, now));
    }

    /// The life of this member of which it is to be found out now whether it has ended.
    pub fn in_question(&self, now: Moment, member: MemberId) -> Option<MemberLife> {
        let closed = self.closed.lock();
        let (life, _) = closed.get(&member).filter(|(_, at)| now.ms_since(*at) <= SAYS_MS)?;
        Some(*life)
    }

    /// All addresses of the member have refused since this life came into question. True: it has ended, which is told once.
    pub fn refused(&self, now: Moment, life: MemberLife) -> bool {
        let is_in_question = self.in_question(now, life.store.member) == Some(life);
        if is_in_question {
            self.closed.lock().remove(&life.store.member);
        }
        is_in_question
    }

    /// A connection of this life stands.
    pub fn lives(&self, life: MemberLife) {
        self.closed.lock().retain(|_, (closed, _)| *closed != life);
    }

    /// This life of the member has proved itself just now. Returns the earlier life of the same store, which has ended, once.
    pub fn answered(&self, now: Moment, life: MemberLife) -> Option<MemberLife> {
        let in_question = self.in_question(now, life.store.member);
        self.closed.lock().remove(&life.store.member);
        in_question.filter(|earlier| earlier.store == life.store && earlier.boot < life.boot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::MemberStore;

    fn life(generation: u64, boot: u64) -> MemberLife {
        MemberLife { store: MemberStore { member: MemberId(1), generation }, boot }
    }

    fn at(ms: u64) -> Moment {
        Moment::from_ms(10_000 + ms)
    }

    #[test]
    fn a_connection_that_was_closed_and_addresses_that_refuse_are_an_end() {
        let endings = Endings::default();
        assert!(!endings.refused(at(0), life(3, 7)), "a refusal alone says nothing");
        endings.closed(at(0), life(3, 7));
        assert_eq!(endings.in_question(at(5), MemberId(1)), Some(life(3, 7)));
        assert_eq!(endings.in_question(at(5), MemberId(2)), None);
        assert!(endings.refused(at(5), life(3, 7)));
        assert!(!endings.refused(at(6), life(3, 7)), "it is told once");
    }

    #[test]
    fn a_refusal_long_after_the_connection_was_closed_says_nothing() {
        let endings = Endings::default();
        endings.closed(at(0), life(3, 7));
        assert_eq!(endings.in_question(at(1_001), MemberId(1)), None);
        assert!(!endings.refused(at(1_001), life(3, 7)));
    }

    /// The attempts began when the earlier life was in question. Meanwhile a later one has come and its connection has gone.
    #[test]
    fn refusals_say_nothing_of_a_life_that_came_into_question_later() {
        let endings = Endings::default();
        endings.closed(at(0), life(3, 7));
        endings.closed(at(5), life(3, 8));
        assert!(!endings.refused(at(6), life(3, 7)));
        assert_eq!(endings.in_question(at(6), MemberId(1)), Some(life(3, 8)));
    }

    #[test]
    fn a_life_that_answers_again_has_not_ended() {
        let endings = Endings::default();
        endings.closed(at(0), life(3, 7));
        assert_eq!(endings.answered(at(5), life(3, 7)), None);
        assert!(!endings.refused(at(6), life(3, 7)), "another connection of it was made");
    }

    #[test]
    fn a_later_life_says_that_the_earlier_one_has_ended() {
        for (later, ended) in
            [(life(3, 8), Some(life(3, 7))), (life(3, 6), None), (life(4, 9), None), (life(2, 9), None)]
        {
            let endings = Endings::default();
            endings.closed(at(0), life(3, 7));
            assert_eq!(endings.answered(at(5), later), ended, "{later:?}");
        }
    }
}
