//! How a server is set up that a test talks to over the wire: alone, on any port, without safe mode.

use metad::MetaConfig;
use namespace::{AccessPolicy, Limits};
use std::path::Path;

/// A test says what it wants otherwise: `MetaConfig { complete_wait_ms: 0, ..lone::config(directory) }`.
pub fn config(name_directory: &Path) -> MetaConfig {
    MetaConfig {
        name_directory: name_directory.to_owned(),
        rpc_address: "127.0.0.1:0".parse().unwrap(),
        http_address: None,
        limits: Limits {
            access: AccessPolicy { superuser: "alice".into(), ..AccessPolicy::default() },
            ..Limits::default()
        },
        defaults: Default::default(),
        blocks: blocks::Config {
            safe_mode: blocks::SafeModeConfig { extension_ms: 0, ..Default::default() },
            ..Default::default()
        },
        complete_wait_ms: 200,
        edits_per_image: 1_000_000,
        image_period_ms: 3_600_000,
        journal_bytes_per_image: 64 << 20,
        call_queue: Default::default(),
        racks: Vec::new(),
        data_servers_file: None,
        groups: Default::default(),
        audit_log: None,
        group: Default::default(),
    }
}
