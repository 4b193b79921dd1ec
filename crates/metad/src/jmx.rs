//! The beans of a NameNode, as HDFS's web pages and monitors read them from `/jmx`.
//!
//! Names and types are those of a Hadoop 3.5.0. An attribute that describes no part of Clover is left out, or tells the
//! number that is true: no file is encrypted, and no block is erasure-coded.

mod activity;
mod fs_namesystem;
mod name_node_info;
mod slow;
mod startup;

use crate::{admin_protocol::show, core::Core, start::Progress};
use ::blocks::{DataServer, ServerFilter, Stats};
use base::Moment;
use env::{Env, ProcessFacts};
use group::Role;
use measures::MethodFigures;
use namespace::Counts;
use serde_json::Value;
use std::{cell::OnceCell, sync::Arc};
use web::jmx::{BeanSource, Beans, put_process_beans};

/// The service that these beans are of.
const SERVICE: &str = "NameNode";

/// One look at the server, from which all beans are made. A fact that no bean needs is not looked up.
struct Look<'a> {
    core: &'a Core,
    of_blocks: OnceCell<(Stats, Vec<Arc<DataServer>>)>,
    counts: OnceCell<Counts>,
    methods: OnceCell<Vec<MethodFigures>>,
    process: OnceCell<ProcessFacts>,
    safe_mode: OnceCell<Option<String>>,
    /// The port of the RPC door, which stands in the names of some beans.
    port: u16,
}

impl<'a> Look<'a> {
    fn new(core: &'a Core) -> Self {
        Self {
            core,
            of_blocks: OnceCell::new(),
            counts: OnceCell::new(),
            methods: OnceCell::new(),
            process: OnceCell::new(),
            safe_mode: OnceCell::new(),
            port: core.rpc_address.get().unwrap_or(&core.config.rpc_address).port(),
        }
    }

    fn of_blocks(&self) -> &(Stats, Vec<Arc<DataServer>>) {
        self.of_blocks.get_or_init(|| {
            let blocks = self.core.partition.blocks.lock();
            (blocks.stats(), blocks.servers(ServerFilter::All))
        })
    }

    fn stats(&self) -> &Stats {
        &self.of_blocks().0
    }

    fn servers(&self) -> &[Arc<DataServer>] {
        &self.of_blocks().1
    }

    fn counts(&self) -> &Counts {
        self.counts.get_or_init(|| self.core.partition.tree().namespace.counts())
    }

    fn methods(&self) -> &[MethodFigures] {
        self.methods.get_or_init(|| self.core.calls.methods())
    }

    fn process(&self) -> &ProcessFacts {
        self.process.get_or_init(ProcessFacts::now)
    }

    /// Why the server is in safe mode.
    fn safe_mode(&self) -> Option<&str> {
        self.safe_mode.get_or_init(|| show::safe_mode(&self.core.partition)).as_deref()
    }

    /// When the server was started, in milliseconds since 1970.
    fn started_ms(&self) -> u64 {
        let up_ms = self.core.moment().ms_since(self.core.partition.started());
        self.core.env.clock.timestamp().ms.saturating_sub(up_ms)
    }

    fn state(&self) -> &'static str {
        if is_active(self.core) { "active" } else { "standby" }
    }

    fn name(&self, of: &str) -> String {
        name_of(of)
    }
}

/// The whole name of a bean of this service.
fn name_of(bean: &str) -> String {
    format!("Hadoop:service={SERVICE},name={bean}")
}

/// Whether this member leads its group and answers clients.
pub fn is_active(core: &Core) -> bool {
    matches!(core.partition.member.status().role, Role::Serving { .. })
}

/// The answer of `/startupProgress`.
pub fn start(core: &Core) -> Value {
    startup::page(core)
}

/// The answer of `/startupProgress` while the server still reads what it has.
pub fn start_of_loading(progress: &Progress, now: Moment) -> Value {
    startup::page_of_loading(progress, now)
}

/// The beans of a server that still reads what it has.
pub fn source_of_loading(progress: &Arc<Progress>, env: &Env) -> BeanSource {
    let (progress, env) = (progress.clone(), env.clone());
    Arc::new(move |beans| startup::put_loading(&progress, env.clock.moment(), beans))
}

pub fn source(core: &Arc<Core>) -> BeanSource {
    let core = core.clone();
    Arc::new(move |beans| put_beans(&core, beans))
}

fn put_beans(core: &Core, beans: &mut Beans<'_>) {
    let look = Look::new(core);
    put_process_beans(beans, SERVICE, || look.process().clone());
    name_node_info::put(&look, beans);
    fs_namesystem::put(&look, beans);
    activity::put(&look, beans);
    startup::put(&look, beans);
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
