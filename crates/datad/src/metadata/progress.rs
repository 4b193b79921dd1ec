//! How far this server has come with a metadata server.

/// How far an actor has come, for those who wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    #[default]
    Connecting,
    /// Registered, and the first full block report was taken.
    Serving,
    /// The metadata server refuses this data server as it is, for this reason. It is asked again now and then.
    Refused(String),
}
