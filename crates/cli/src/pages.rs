//! The pages that servers get from this program: their settings and the levels of their log, beside those of WebHDFS.

use crate::{
    config::{key::Key, settings::Settings, table},
    log,
};
use std::sync::Arc;
use web::{Pages, hosts::Hosts, log_levels::log_level, origin::Origins, settings::conf};

/// Adds the pages of the program to those of a server of the role that has the keys of `tables`. `origins`: those whose pages may change something. `hosts`: the names
/// by which browsers may call.
pub fn put(
    pages: &mut Pages,
    settings: &Settings,
    tables: &[&'static [Key]],
    origins: Origins,
    hosts: Hosts,
) {
    pages.hosts = hosts;
    let rows = table::of(settings, tables);
    let mut router = std::mem::take(&mut pages.router).merge(conf(Arc::new(move || rows.clone())));
    if let Some(levels) = log::levels() {
        router = router.merge(log_level(levels, origins));
    }
    pages.router = router;
}
