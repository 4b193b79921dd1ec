//! What is true of data servers once all faults are over.

use crate::{check, cluster::world::World, truth::Broken};
use blocks::{BlockState, Reader, ServerFilter};

impl World {
    /// Whether the active knows all replicas, and those that nobody needs are gone.
    ///
    /// # Errors
    /// The text says what is not so, or not yet.
    pub fn data_is_whole(&self, active: usize) -> Result<(), Broken> {
        let Some(room) = &self.data else { return Ok(()) };
        let map = &self.servers[active].blocks.as_ref().expect("it has joined").map;
        map.is_consistent()?;
        let live = map.servers(ServerFilter::Live).len();
        if live < room.servers.len() || map.stale_storage_count() > 0 || map.in_safe_mode() {
            return Err(format!(
                "an active knows its data servers in the end: {live} of {} live, {} storages are stale, safe mode is {}: {}",
                room.servers.len(),
                map.stale_storage_count(),
                map.in_safe_mode(),
                map.safe_mode_message(base::Moment::default())
            ));
        }
        for (id, needed) in room.needed.blocks.iter().filter(|(_, needed)| needed.is_complete) {
            let located = map.locations(*id, Reader::default(), 0, base::Moment::default());
            let holders = room.holders(&needed.block);
            // An unclean election gave up the close of the block's file, after the entries that it gave up had cost the finished replicas.
            // An unfinished replica is left. A recovery finishes it when the writer's lease is over, and no story waits so long.
            let waits_for_recovery = located.as_ref().is_some_and(|it| it.state == BlockState::Committed);
            if waits_for_recovery && holders.is_empty() && !room.replicas_of(*id).is_empty() {
                continue;
            }
            // Where all replicas are bad, readers are told of those, as in HDFS.
            let mut known: Vec<usize> = located
                .iter()
                .filter(|located| !located.corrupt)
                .flat_map(|located| &located.locations)
                .map(|location| super::room::server_of(location.server.uuid()))
                .collect();
            known.sort_unstable();
            let was_lost = room.needed.gone.contains(id);
            check::replicas_come_to_rest::known(&needed.block, &known, &holders, was_lost)
                .map_err(|broken| format!("{broken}; the data servers have {:?}", room.replicas_of(*id)))?;
            // Where nobody has written since the last takeover, a bad replica stays, and occupies its data server.
            let bad = if map.newcomer_count() > 0 { room.replicas_of(*id).len() - holders.len() } else { 0 };
            let wanted = usize::from(needed.replication).min(room.servers.len() - bad);
            check::replicas_come_to_rest::enough(&needed.block, &holders, wanted)
                .map_err(|broken| format!("{broken}; the data servers have {:?}", room.replicas_of(*id)))?;
        }
        for (server, it) in room.servers.iter().enumerate() {
            for replica in it.replicas.values().chain(it.removing.values()) {
                let id = replica.block.id;
                let may_stay = room.needed.blocks.contains_key(&id) || room.needed.is_skipped(id);
                check::replicas_come_to_rest::gone(server, &replica.block, may_stay)?;
            }
        }
        Ok(())
    }
}
