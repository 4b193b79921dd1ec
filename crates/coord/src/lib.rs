//! The global view: who is a member, who is active, at which epoch.
//!
//! A [`Coordinator`] keeps one [`base::GroupView`] for each group and changes it by compare-and-set. It must
//! never decide anything: rules about who may lead live in `group`. The rest of the system does not know
//! which coordinator it talks to; [`conformance`] holds them all to one behaviour.
//!
//! [`Embedded`] serves a single machine from a file. Across machines it will be ZooKeeper.

pub mod conformance;
pub mod coordinator;
pub mod embedded;
pub mod file;

pub use coordinator::{ChangeError, Coordinator, Done, ReadError, Version, Versioned, Watch, wait};
pub use embedded::Embedded;
pub use file::OpenError;
