//! The global view: who is a member, who is active, at which epoch.
//!
//! A [`Coordinator`] keeps one [`base::GroupView`] for each group and changes it by compare-and-set. It must
//! never decide anything: rules about who may lead live in `group`. The rest of the system does not know
//! which coordinator it talks to; [`conformance`] holds them all to one behaviour.
//!
//! [`Embedded`] serves a single machine from a file; [`ZooKeeper`] serves several.

pub mod conformance;
pub mod coordinator;
pub mod embedded;
pub mod file;
mod text;
pub mod zookeeper;

pub use coordinator::{
    Basis, ChangeError, Coordinator, Done, Event, MemberRecord, ReadError, Version, Versioned, Watch, wait,
};
pub use embedded::Embedded;
pub use file::OpenError;
pub use zookeeper::{ZooKeeper, ZooKeeperConfig};
