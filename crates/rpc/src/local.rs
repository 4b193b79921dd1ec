//! Clients and data servers of one machine connect through a path of the file system
//! ([`path`]), hand each other open files ([`descriptors`]), and share memory ([`segment`]).

pub mod descriptors;
pub mod link;
pub mod path;
pub mod segment;

pub use link::LocalLink;
pub use segment::Segment;
