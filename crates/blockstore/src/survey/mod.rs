//! Looks at a data directory, or at one replica in it, without a server, and changes nothing.
//!
//! [`replica`] looks at the two files of a replica, [`directory`] at a whole data directory, pool by pool ([`pool`]). Both read by what
//! the server itself reads by: [`crate::layout`], [`crate::meta_file`], [`crate::version_file`] and the block scanner's look at two
//! files. A directory that a running server changes meanwhile may look damaged where it is not.

pub mod directory;
pub mod finding;
pub mod pool;
pub mod replica;

pub use directory::{DirectorySurvey, is_data_directory, survey};
pub use finding::{Finding, Findings, Severity};
pub use pool::{PlaceSurvey, PoolSurvey};
pub use replica::{ReplicaSurvey, survey_replica};

/// The survey calls it with the number of bytes that it reads next. `false` ends the survey; bytes that were not read then count as sound.
pub type GoOn<'a> = dyn FnMut(u64) -> bool + 'a;

/// How closely replicas are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Names and lengths, and the headers of unusual meta files: what a server looks at when it starts.
    Names,
    /// Every byte of the replicas is read and compared with its checksum.
    Bytes,
}
