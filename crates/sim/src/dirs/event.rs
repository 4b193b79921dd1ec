//! All that can happen in a modelled namespace.

/// A link: messages from one side to another, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    /// From the root group's active to a home.
    Down(u8),
    /// Likewise from an active that has been deposed and does not know it.
    DownFromDeposed(u8),
    /// From a home to the root group's active.
    Up(u8),
}

/// Homes and calls are named by number; the root group is home 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// The first message on a link arrives.
    Deliver(Link),
    /// It arrives, and will once more.
    Double(Link),
    /// The second one arrives first.
    Overtake(Link),
    /// The first one is lost.
    Lose(Link),
    /// The client makes its next call.
    Invoke { client: u8 },
    /// The call is looked at by this group.
    Look { call: u8, at: u8 },
    /// What was looked at is judged: later than it was looked at, in worlds with slow looks.
    Judge { call: u8 },
    /// All that is in the group's log commits.
    Commit { group: u8 },
    /// Another member of the group becomes its active; `keeps`: what had not committed is there all the same.
    Takeover { group: u8, keeps: bool },
    /// The client of a call that the deposed root knows calls the new one.
    Resend { call: u8 },
    /// Time passes.
    Tick,
    /// Nothing fails any more, and time passes until everyone has an answer: the end of a story.
    Rest,
}

impl Event {
    /// Things that only take their course: nothing fails and nobody has to decide.
    pub fn is_ordinary(self) -> bool {
        matches!(
            self,
            Event::Deliver(_)
                | Event::Look { .. }
                | Event::Judge { .. }
                | Event::Commit { .. }
                | Event::Resend { .. }
        )
    }
}
