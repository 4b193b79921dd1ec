//! The beans of a NameNode, as HDFS's web pages and monitors read them from `/jmx`.
//!
//! Names and types are those of a Hadoop 3.5.0. An attribute that describes no part of Clover is left out, or tells the
//! number that is true: no file is encrypted, and no block is erasure-coded.

mod activity;
mod fs_namesystem;
mod name_node_info;

use crate::{admin_protocol::show, core::Core};
use ::blocks::{DataServer, ServerFilter, Stats};
use env::ProcessFacts;
use group::Role;
use measures::MethodFigures;
use namespace::Counts;
use serde_json::Value;
use std::sync::Arc;
use web::jmx::{Bean, BeanSource, process_beans};

/// The service that these beans are of.
const SERVICE: &str = "NameNode";

/// One look at the server, from which all beans are made.
struct Look<'a> {
    core: &'a Core,
    stats: Stats,
    counts: Counts,
    servers: Vec<Arc<DataServer>>,
    methods: Vec<MethodFigures>,
    process: ProcessFacts,
    /// The port of the RPC door, which stands in the names of some beans.
    port: u16,
    is_active: bool,
    /// Why the server is in safe mode.
    safe_mode: Option<String>,
}

impl<'a> Look<'a> {
    fn new(core: &'a Core) -> Self {
        let partition = &core.partition;
        let counts = partition.tree().namespace.counts();
        let (stats, servers) = {
            let blocks = partition.blocks.lock();
            (blocks.stats(), blocks.servers(ServerFilter::All))
        };
        Self {
            core,
            stats,
            counts,
            servers,
            methods: core.calls.methods(),
            process: ProcessFacts::now(),
            port: core.rpc_address.get().unwrap_or(&core.config.rpc_address).port(),
            is_active: matches!(partition.member.status().role, Role::Serving { .. }),
            safe_mode: show::safe_mode(partition),
        }
    }

    fn state(&self) -> &'static str {
        if self.is_active { "active" } else { "standby" }
    }

    fn name(&self, of: &str) -> String {
        format!("Hadoop:service={SERVICE},name={of}")
    }
}

pub fn source(core: &Arc<Core>) -> BeanSource {
    let core = core.clone();
    Arc::new(move || beans(&core))
}

fn beans(core: &Core) -> Vec<Bean> {
    let look = Look::new(core);
    let mut beans = process_beans(SERVICE, &look.process);
    beans.extend(name_node_info::beans(&look));
    beans.extend(fs_namesystem::beans(&look));
    beans.extend(activity::beans(&look));
    beans
}

/// The attributes of both objects.
fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(one), Value::Object(other)) = (one.as_object_mut(), other) {
        one.extend(other);
    }
    one
}

/// The share of `part` in `whole`, in percent.
fn percent(part: u64, whole: u64) -> f32 {
    if whole == 0 { 0.0 } else { (part as f64 * 100.0 / whole as f64) as f32 }
}
