//! The memory of the tree: pages of small records behind 32-bit handles.
//!
//! Handles, the order of hash tables and their seed are private to a process: none of them reaches an edit, a
//! digest or an image.

pub(crate) mod arena;
pub(crate) mod attributes;
pub(crate) mod block_list;
pub(crate) mod children;
pub(crate) mod heap;
pub(crate) mod index;
pub(crate) mod inode;
pub(crate) mod names;
pub(crate) mod open_file;
pub(crate) mod shared_map;
pub(crate) mod strings;

pub(crate) use arena::{Arena, NONE};
