//! The pages of a metadata server beside those that every server has.

use crate::{core::Core, fsimage, jmx};
use ::blocks::ServerFilter;
use group::Role;
use std::{collections::BTreeSet, sync::Arc};
use web::{
    Pages, Sources,
    in_sync::InSync,
    name_node::{NameNode, RackServer, Racks, name_node},
};

/// Adds them to those that the program has given.
pub fn put(core: &Arc<Core>, pages: &mut Pages) {
    let beans = jmx::source(core);
    let (active, placed, started) = (core.clone(), core.clone(), core.clone());
    let own = name_node(NameNode {
        is_active: Arc::new(move || jmx::is_active(&active)),
        racks: Arc::new(move || racks(&placed)),
        start: Arc::new(move || jmx::start(&started)),
    });
    let images = web::image_transfer::image_transfer(fsimage::source(core));
    let follower = core.clone();
    let in_sync = web::in_sync::in_sync(Arc::new(move || in_sync(&follower)));
    let router = std::mem::take(&mut pages.router).merge(own).merge(images).merge(in_sync);
    pages.router = router.merge(web::jmx::jmx(beans.clone())).merge(web::prom(beans.clone()));
    let counted = core.calls.clone();
    let (endangered, judged) = (core.clone(), core.clone());
    pages.sources = Sources {
        beans: Some(beans),
        calls: Some(Arc::new(move || counted.methods())),
        endangered: Some(Arc::new(move |count| endangered_files(&endangered, count))),
        superusers: Some(Arc::new(move |user| {
            let caller = judged.user_groups.caller(user, None, judged.moment());
            judged.config.limits.access.is_superuser(&caller)
        })),
    };
}

/// Paths of the first files that have a block with too few replicas. A file may have many such blocks: only the first of all are looked at.
fn endangered_files(core: &Core, count: usize) -> Vec<String> {
    const BLOCKS_MAX: usize = 1_000;
    let tree = core.partition.tree();
    let blocks = core.partition.blocks.lock();
    let mut seen = BTreeSet::new();
    let files = blocks.files_of_endangered_blocks().take(BLOCKS_MAX).flatten();
    let paths = files.filter(|file| seen.insert(*file)).filter_map(|file| tree.namespace.path_of(file));
    paths.take(count).collect()
}

/// A member that was removed from its group, or has failed, is in sync with nobody, whatever its last view says.
fn in_sync(core: &Core) -> InSync {
    let partition = &core.partition;
    let status = partition.member.status();
    let has_ended = partition.member.ended().borrow().is_some() || partition.condition.is_removed();
    let (is_in_sync, state) = match &status.role {
        _ if has_ended => (false, "failed"),
        Role::Stopped { .. } => (false, "failed"),
        Role::Serving { .. } | Role::Reading { .. } => (true, "active"),
        Role::Claiming | Role::Starting { .. } => (status.is_in_sync, "taking over"),
        Role::HandingOver { .. } => (status.is_in_sync, "handing over"),
        Role::Following if status.is_in_sync => (true, "standby"),
        Role::Following => (false, "junior"),
    };
    InSync { is_in_sync, state }
}

fn racks(core: &Core) -> Racks {
    let mut racks = Racks::new();
    for server in core.partition.blocks.lock().servers(ServerFilter::Live) {
        let (address, name) =
            (server.registration.transfer_address(), server.registration.host_name.to_string());
        racks.entry(server.rack.to_string()).or_default().insert(RackServer { address, name });
    }
    racks
}
