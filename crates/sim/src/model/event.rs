//! All that can happen in a modelled group.

/// Members are named by their seat, counted from 0; member 1 sits on seat 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// The first message on a link arrives.
    Deliver {
        from: u8,
        to: u8,
    },
    /// It arrives, and will once more.
    Double {
        from: u8,
        to: u8,
    },
    /// The second one arrives first.
    Overtake {
        from: u8,
        to: u8,
    },
    /// The coordinator carries out a change and answers, if anybody still waits for the answer.
    Decide {
        request: u8,
    },
    /// It carries it out, and the answer gets lost.
    DecideUnheard {
        request: u8,
    },
    /// The answer is unknown, and the change may be carried out at any later time, or never.
    Delay {
        request: u8,
    },
    /// It carries it out and answers, and the answer is heard later.
    DecideLate {
        request: u8,
    },
    /// An answer that was under way is heard.
    Hear {
        answer: u8,
    },
    /// It is heard, and will be once more.
    HearAgain {
        answer: u8,
    },
    /// The member reads the coordinator's view.
    ReadView {
        seat: u8,
    },
    /// The member's journal answers.
    ReadLog {
        seat: u8,
    },
    /// The member's disk has synced what was written.
    Sync {
        seat: u8,
    },
    /// The member's clock jumps far ahead.
    Wake {
        seat: u8,
    },
    /// The member's next timer runs out.
    Beat {
        seat: u8,
    },
    /// A client asks the member for an operation.
    Propose {
        seat: u8,
    },
    /// The process is killed; `keeps`: what was written and not synced is there afterwards all the same.
    Crash {
        seat: u8,
        keeps: bool,
    },
    Start {
        seat: u8,
    },
    /// The connection between two members breaks, with all that was under way, and is made anew.
    Reset {
        one: u8,
        other: u8,
    },
    /// The member is told that the active's lock is gone, true or not.
    LockGone {
        seat: u8,
    },
    /// The member is told that another's process is gone, true or not.
    Gone {
        seat: u8,
        other: u8,
    },
    /// The operator gives the next order to this member.
    Order {
        seat: u8,
    },
}

impl Event {
    /// Things that only take their course: nothing fails and nobody has to decide.
    pub fn is_ordinary(self) -> bool {
        matches!(
            self,
            Event::Deliver { .. }
                | Event::Decide { .. }
                | Event::Hear { .. }
                | Event::ReadView { .. }
                | Event::ReadLog { .. }
                | Event::Sync { .. }
                | Event::Start { .. }
        )
    }
}
