//! Tells the file, the state and the replicas of each block that is asked for by its id (`hdfs fsck -blockId`).

use super::{
    block::{self, Known},
    out::Out,
    reason::End,
    servers::DataServers,
};
use base::AdminState;
use client::ReplicaRegister;
use proto::clover::admin::{BlockReplicasProto, ReplicaStandingProto as Standing};
use std::fmt::Write;

const PREFIX: &str = "blk_";
/// The end of the name of a file with checksums.
const SUMS: &str = ".meta";

/// Tells all about each block. The last line says how the last replica is.
///
/// # Errors
/// The user is no superuser, or a call fails; or the client has gone.
pub async fn tell(
    register: &ReplicaRegister,
    names: &[String],
    maintenance: bool,
    servers: &mut DataServers,
    out: &mut Out,
) -> Result<(), End> {
    for name in names {
        if !name.contains(PREFIX) {
            out.say(&format!("Incorrect blockId format: {name}\n")).await?;
            continue;
        }
        let found = match id(name) {
            Some(id) => register.everywhere(&[id]).await?,
            None => Vec::new(),
        };
        // Groups give their blocks ids of their own.
        let found = found.into_iter().next();
        match found {
            None => out.say(&format!("\nBlock {name} does not exist\n")).await?,
            Some(found) => {
                servers.know(found.replicas.iter().map(|replica| &*replica.server_uuid)).await?;
                let known = found.replicas.iter().map(|replica| Known::from_wire(replica, servers.by_uuid()));
                let text = text(name, &found, &known.collect::<Vec<_>>(), maintenance);
                out.say(&text).await?;
            }
        }
    }
    Ok(())
}

/// The id in `blk_7` or `blk_7_1001.meta`.
fn id(name: &str) -> Option<u64> {
    let rest = name.strip_prefix(PREFIX)?;
    let number = match rest.strip_suffix(SUMS) {
        Some(rest) => rest.split_once('_').filter(|(_, stamp)| stamp.parse::<u64>().is_ok())?.0,
        None => rest,
    };
    number.parse().ok()
}

fn text(name: &str, block: &BlockReplicasProto, known: &[Known], maintenance: bool) -> String {
    let counts = block::count(known);
    let path = block.path.as_deref().unwrap_or("a file that only a snapshot or another group has");
    let mut text = format!(
        "\nBlock Id: {name}\nBlock belongs to: {path}\nNo. of Expected Replica: {}\nNo. of live Replica: {}\n\
         No. of excess Replica: {}\nNo. of stale Replica: {}\nNo. of decommissioned Replica: {}\n\
         No. of decommissioning Replica: {}\n",
        block.replication,
        counts.live,
        counts.excess,
        counts.stale,
        counts.decommissioned,
        counts.decommissioning
    );
    if maintenance {
        let (entering, inside) = (counts.entering_maintenance, counts.in_maintenance);
        let _ = write!(
            text,
            "No. of entering maintenance Replica: {entering}\nNo. of in maintenance Replica: {inside}\n"
        );
    }
    let _ = writeln!(text, "No. of corrupted Replica: {}", counts.corrupt);
    for replica in known.iter().rev() {
        let server = &replica.server;
        let _ = writeln!(
            text,
            "Block replica on datanode/rack: {}{} {}",
            server.host_name,
            server.rack,
            state(replica, maintenance)
        );
    }
    text
}

fn state(replica: &Known, maintenance: bool) -> String {
    if replica.standing == Standing::ReplicaCorrupt {
        let reason = replica.corrupt_reason.as_deref().unwrap_or("NONE");
        return format!("is CORRUPT\t ReasonCode: {reason}");
    }
    let state = match replica.server.state {
        AdminState::Decommissioned => "is DECOMMISSIONED",
        AdminState::DecommissionInProgress => "is DECOMMISSIONING",
        AdminState::EnteringMaintenance if maintenance => "is ENTERING MAINTENANCE",
        AdminState::InMaintenance if maintenance => "is IN MAINTENANCE",
        _ if replica.is_server_stale => "is STALE",
        _ if replica.standing == Standing::ReplicaExcess => "is EXCESS",
        _ => "is HEALTHY",
    };
    state.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsck::block::Server;

    fn known(standing: Standing, state: AdminState) -> Known {
        let server = Server { host_name: "data-1".into(), rack: "/r".into(), state, ..Server::default() };
        Known { server, standing, corrupt_reason: None, is_storage_stale: false, is_server_stale: false }
    }

    #[test]
    fn names_of_blocks_are_hadoops() {
        assert_eq!(id("blk_1073741825"), Some(1_073_741_825));
        assert_eq!(id("blk_7_1001.meta"), Some(7));
        for none in ["blk_7_1001", "blk_", "xblk_7", "blk_-7", "blk_7_x.meta", "blk_7.meta"] {
            assert_eq!(id(none), None, "{none}");
        }
    }

    #[test]
    fn a_block_is_told_with_each_of_its_replicas_and_the_last_line_is_a_state() {
        let block =
            BlockReplicasProto { replication: 3, path: Some("/f".into()), ..BlockReplicasProto::default() };
        let replicas = [
            known(Standing::ReplicaLive, AdminState::InService),
            Known {
                corrupt_reason: Some("CORRUPTION_REPORTED".into()),
                ..known(Standing::ReplicaCorrupt, AdminState::InService)
            },
        ];
        assert_eq!(
            text("blk_7", &block, &replicas, false),
            "\nBlock Id: blk_7\nBlock belongs to: /f\nNo. of Expected Replica: 3\nNo. of live Replica: 1\n\
             No. of excess Replica: 0\nNo. of stale Replica: 0\nNo. of decommissioned Replica: 0\n\
             No. of decommissioning Replica: 0\nNo. of corrupted Replica: 1\n\
             Block replica on datanode/rack: data-1/r is CORRUPT\t ReasonCode: CORRUPTION_REPORTED\n\
             Block replica on datanode/rack: data-1/r is HEALTHY\n"
        );
        let resting = [known(Standing::ReplicaInMaintenance, AdminState::InMaintenance)];
        let told = text("blk_7", &block, &resting, true);
        assert!(told.contains("No. of in maintenance Replica: 1\n") && told.ends_with("is IN MAINTENANCE\n"));
        assert!(text("blk_7", &block, &resting, false).ends_with("is HEALTHY\n"), "as in Hadoop");
        let excess = [known(Standing::ReplicaExcess, AdminState::InService)];
        assert!(text("blk_7", &block, &excess, false).ends_with("is EXCESS\n"));
    }
}
