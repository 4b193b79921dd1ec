//! The web console: pages about a cluster and its files.
//!
//! A console is a client of the file system that answers HTTP with pages for people. It runs beside a metadata server, which it asks over
//! the native client library; what only that server knows of itself comes as copies through [`web::Facts`]. All that is shown is
//! there without JavaScript; a script renews pages and uploads files.
//!
//! [`cluster`] asks, [`history`] remembers how fast calls were answered, and a module for each page turns facts into one of `templates`.
//! Start with [`Console`].
//!
//! It must never decide whether a user may do something: it asks in the user's name, and shows the refusal.

mod asked;
mod assets;
mod attributes;
mod beans;
mod blocks;
mod calls;
mod changes;
mod chart;
mod cluster;
mod conditions;
mod configuration;
mod console;
mod data_servers;
mod file;
mod files;
mod group;
mod hand_over;
mod history;
pub mod login;
mod login_page;
mod logs;
mod old_links;
mod open_files;
mod orders;
mod overview;
mod page;
mod paths;
mod refusal;
mod sessions;
mod snapshot_changes;
mod snapshots;
mod start;
mod text;
mod usage;

pub use asked::{Config, Program};
pub use console::Console;
pub use orders::{HandOver, Outcome};
pub use sessions::{Keys, Verify, random};
