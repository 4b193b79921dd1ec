//! Drives this group's part in the directory log, while this member is active: the machines of [`dirlog`].
//!
//! The root group's active has a [`dirlog::Root`]. A change of directories becomes an entry in the writer's turn ([`Directories::order`]), goes to
//! the other groups before the disk has it, and its answer waits until it is visible: the partition's commit watch hears of that. The active
//! of every other group has a [`dirlog::Home`], which receives entries; the writer applies those that are visible.
//!
//! - [`side`]: the machine of either side, with what its driver has to remember: [`root_side`], [`home_side`].
//! - [`asked`]: the root group's operations that wait for what homes tell; [`waiting`]: the calls that a home has put off.
//! - [`drive`]: steps it, on the thread that has an input, and does what a step leaves. The machine's lock is never held across I/O. Locks are taken
//!   in the order namespace, machine, writer's queue.
//! - [`links`]: the way of messages to the actives of other groups; [`service`]: takes theirs.

mod asked;
mod awaited;
mod drive;
mod home_side;
mod links;
mod root_side;
pub mod service;
mod side;
mod step;
mod waiting;

pub use asked::Known;
pub use drive::{apply, carry_on, connect, forget, pump, run};
pub use home_side::Judged;
pub use root_side::op_of;
pub use side::{AnswerLater, Directories};
pub use waiting::name_of;
