//! The JSON of WebHDFS, as Hadoop's NameNode writes it.

pub mod blocks;
pub mod policies;
pub mod quotas;
pub mod snapshots;
pub mod status;
pub mod xattrs;

use serde_json::{Map, Value, json};

/// An object with one member.
pub fn named(name: &str, value: impl Into<Value>) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value.into())]))
}

/// Text that crosses the wire as bytes.
fn text(bytes: &[u8]) -> Value {
    json!(String::from_utf8_lossy(bytes))
}

/// Numbers that are unsigned on the wire and signed in Java: no quota is -1.
fn signed(number: u64) -> Value {
    json!(number as i64)
}
