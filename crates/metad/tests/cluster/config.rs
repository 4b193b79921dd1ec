//! The configuration of a member.

use super::{Cluster, SUPERUSER};
use base::MemberId;
use coord::Coordinator;
use metad::{Advertised, CoordinatorConfig, GroupConfig, MetaConfig};
use namespace::{AccessPolicy, Limits};
use std::{net::SocketAddr, path::Path, sync::Arc};

/// Alone, on any port, without safe mode, and without images as long as nobody asks for one.
fn usual(name_directory: &Path) -> MetaConfig {
    MetaConfig {
        name_directory: name_directory.to_owned(),
        rpc_address: "127.0.0.1:0".parse().unwrap(),
        http_address: None,
        limits: Limits {
            access: AccessPolicy { superuser: SUPERUSER.into(), ..AccessPolicy::default() },
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

impl Cluster {
    /// As this member would begin now. In a group each has a door of its own to the coordinator, as a process would, and the others
    /// reach it by its cable.
    pub fn config(&self, member: u32) -> MetaConfig {
        let mut config = usual(&self.name_directory(member));
        config.group.timing = self.timing;
        config.group.first_level = self.first_level;
        if let Some(coordinator) = &self.coordinator {
            let listening: SocketAddr = super::free_address();
            config.group = GroupConfig {
                member: MemberId(member),
                members: self.members().map(MemberId).collect(),
                peer_address: Some(listening),
                advertised: Advertised {
                    peer: Some(self.cables.lay(member, listening).to_string()),
                    ..Advertised::default()
                },
                coordinator: CoordinatorConfig::Shared(
                    Arc::new(coordinator.session()) as Arc<dyn Coordinator>
                ),
                ..config.group
            };
        }
        config.group.last_resort = (self.world_of)(member).1;
        (self.adjust)(member, &mut config);
        config
    }
}
