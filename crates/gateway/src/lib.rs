//! WebHDFS, and `/fsck` for the stock `hdfs fsck`.
//!
//! A gateway is a client of the file system that answers HTTP. It runs beside a metadata server, which it asks for everything that is no
//! bytes of files, and beside each data server, to which it sends those who read or write. Neither of the two knows of it: it has
//! threads of its own, and reaches both over the native client library.
//!
//! [`fsck`] checks all files for the stock `hdfs fsck`, and for the command line.
//!
//! [`operation`] makes a value of a request; [`question`], [`change`] and [`transfer`] carry it out; [`answers`] writes Hadoop's JSON.
//! Start with [`Gateway`].
//!
//! It must never hold a whole file, nor a whole directory: bodies go through in pieces, at the speed of the slower side.

mod answers;
mod body;
mod change;
pub mod error;
pub mod fsck;
mod gateway;
pub mod identity;
mod listing;
pub mod operation;
pub mod parameters;
pub mod path;
mod question;
pub mod servers;
mod shared;
mod target;
pub mod transfer;

pub use gateway::Gateway;
pub use shared::{Config, Role};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use serde_json::Value;

/// A body of JSON.
fn json(value: Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
