//! How a balancer ends, with the exit codes of Hadoop's.

use ::blocks::balance::Round;

#[derive(Debug)]
pub enum End {
    /// No storage is beyond the threshold.
    Balanced,
    /// A dry run has shown what would be moved.
    Planned,
    AlreadyRunning,
    /// Storages are beyond the threshold, and no other can give or take for them.
    NothingToMove,
    /// Several rounds have moved nothing.
    NoProgress,
    /// The metadata server or the options stand in the way.
    Failed(String),
    UnknownServer(String),
    Interrupted,
}

impl End {
    #[cfg(test)]
    pub fn all() -> impl Iterator<Item = Self> {
        let mut next = Some(Self::Balanced);
        std::iter::from_fn(move || {
            let end = next.take()?;
            // Without a last arm: a new end does not compile until it stands here.
            next = match &end {
                Self::Balanced => Some(Self::Planned),
                Self::Planned => Some(Self::AlreadyRunning),
                Self::AlreadyRunning => Some(Self::NothingToMove),
                Self::NothingToMove => Some(Self::NoProgress),
                Self::NoProgress => Some(Self::Failed(String::new())),
                Self::Failed(_) => Some(Self::UnknownServer(String::new())),
                Self::UnknownServer(_) => Some(Self::Interrupted),
                Self::Interrupted => None,
            };
            Some(end)
        })
    }

    /// The end that follows from the figures alone; `None` if there is something to do.
    pub fn of_look(round: &Round) -> Option<Self> {
        match (round.is_balanced(), round.flows().is_empty()) {
            (true, _) => Some(Self::Balanced),
            (false, true) => Some(Self::NothingToMove),
            (false, false) => None,
        }
    }

    /// Hadoop's `ExitStatus`, whose negative numbers a process ends with as 256 less.
    pub fn code(&self) -> u8 {
        let status: i8 = match self {
            Self::Balanced | Self::Planned => 0,
            Self::AlreadyRunning => -1,
            Self::NothingToMove => -2,
            Self::NoProgress => -3,
            Self::Failed(_) => -4,
            Self::UnknownServer(_) => -5,
            Self::Interrupted => -6,
        };
        status as u8
    }

    /// One word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Planned => "planned",
            Self::AlreadyRunning => "already_running",
            Self::NothingToMove => "nothing_to_move",
            Self::NoProgress => "no_progress",
            Self::Failed(_) => "failed",
            Self::UnknownServer(_) => "unknown_server",
            Self::Interrupted => "interrupted",
        }
    }

    /// One sentence for a person, with what to do.
    pub fn sentence(&self) -> String {
        match self {
            Self::Balanced => "The cluster is balanced.".into(),
            Self::Planned => "Nothing was moved: this was a dry run.".into(),
            Self::AlreadyRunning => {
                "Another balancer works in this cluster (it holds /system/balancer.id open). Wait for its end. If it was \
                 killed, its hold ends within some minutes."
                    .into()
            }
            Self::NothingToMove => {
                "The cluster is not balanced, and no data server can take what others have too much: they may be of \
                 different storage types, or left out by the options."
                    .into()
            }
            Self::NoProgress => {
                "The cluster is not balanced, and nothing could be moved in several rounds. The blocks may all be on those \
                 servers, too large, or bound to their racks. `--log info` tells why moves failed."
                    .into()
            }
            Self::Failed(why) => format!("The balancer cannot go on: {why}"),
            Self::UnknownServer(name) => {
                format!("No living data server is called {name}; `clover admin report` lists them.")
            }
            Self::Interrupted => "Interrupted. Moves under way come to their end; run it again to go on.".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_hadoops() {
        let codes = [
            (End::Balanced, 0),
            (End::AlreadyRunning, 255),
            (End::NothingToMove, 254),
            (End::NoProgress, 253),
            (End::Failed(String::new()), 252),
            (End::UnknownServer(String::new()), 251),
            (End::Interrupted, 250),
        ];
        for (end, code) in codes {
            assert_eq!(end.code(), code, "{end:?}");
        }
    }
}
