//! The pages of a metadata server beside those that every server has.

use crate::{core::Core, fsimage, jmx};
use ::blocks::ServerFilter;
use std::{collections::BTreeSet, sync::Arc};
use web::{
    Pages, Sources,
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
    let router = std::mem::take(&mut pages.router).merge(own).merge(images);
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

fn racks(core: &Core) -> Racks {
    let mut racks = Racks::new();
    for server in core.partition.blocks.lock().servers(ServerFilter::Live) {
        let (address, name) =
            (server.registration.transfer_address(), server.registration.host_name.to_string());
        racks.entry(server.rack.to_string()).or_default().insert(RackServer { address, name });
    }
    racks
}
