//! The two beans of an RPC port: all of its calls together, and each method.

use super::{Beans, Counters, Record};
use measures::{Figures, MethodFigures, STAGES};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The records of metrics that these beans are made from.
const RPC: Record = Record {
    name: "rpc",
    counters: Counters::AllBut(&[
        "CallQueueLength",
        "NumDroppedConnections",
        "NumOpenConnections",
        "TotalRequests",
    ]),
};
const RPC_DETAILED: Record = Record { name: "rpcdetailed", counters: Counters::AllBut(&[]) };

/// An RPC port and its calls since the start.
pub struct RpcPort<'a> {
    pub port: u16,
    /// The protocol that Hadoop names the port's server by: "ClientNamenodeProtocol".
    pub server_name: &'static str,
    pub host_name: &'a str,
    pub methods: &'a [MethodFigures],
    /// Open connections.
    pub connections: usize,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Connections that the server has refused since its start.
    pub dropped: u64,
}

/// Puts `RpcActivityForPort…` of a service (`NameNode`, `DataNode`). `look` is asked if the bean is made.
pub fn put_rpc_port<'a>(beans: &mut Beans<'_>, service: &str, port: u16, look: impl FnOnce() -> RpcPort<'a>) {
    let own = format!("RpcActivityForPort{port}");
    beans.put_record(format!("Hadoop:service={service},name={own}"), RPC, own, || all_calls(&look()));
}

/// Puts `RpcDetailedActivityForPort…` of a service. A DataNode of Hadoop shows none.
pub fn put_rpc_methods<'a>(
    beans: &mut Beans<'_>,
    service: &str,
    port: u16,
    look: impl FnOnce() -> RpcPort<'a>,
) {
    let own = format!("RpcDetailedActivityForPort{port}");
    beans.put_record(format!("Hadoop:service={service},name={own}"), RPC_DETAILED, own, || {
        each_method(&look())
    });
}

/// The mean in milliseconds, as Hadoop tells times.
pub fn mean_ms(figures: &Figures) -> f64 {
    figures.mean_ns() as f64 / 1e6
}

fn all_calls(port: &RpcPort<'_>) -> Value {
    let mut sums: [Figures; STAGES.len()] = Default::default();
    for of in port.methods {
        sums.iter_mut().zip(&of.stages).for_each(|(sum, stage)| sum.add(stage));
    }
    let [queue, processing, total] = sums;
    let refused: u64 = port.methods.iter().map(|of| of.refused).sum();
    json!({
        "tag.port": port.port.to_string(),
        "tag.serverName": port.server_name,
        "tag.Context": "rpc",
        "tag.Hostname": port.host_name,
        "ReceivedBytes": port.received_bytes,
        "SentBytes": port.sent_bytes,
        "RpcQueueTimeNumOps": queue.count(),
        "RpcQueueTimeAvgTime": mean_ms(&queue),
        "RpcProcessingTimeNumOps": processing.count(),
        "RpcProcessingTimeAvgTime": mean_ms(&processing),
        "RpcResponseTimeNumOps": total.count(),
        "RpcResponseTimeAvgTime": mean_ms(&total),
        "RpcCallSuccesses": total.count().saturating_sub(refused),
        "RpcSlowCalls": 0,
        "TotalRequests": total.count(),
        "NumOpenConnections": port.connections,
        "CallQueueLength": 0,
        "NumDroppedConnections": port.dropped,
        "RpcAuthenticationFailures": 0,
        "RpcAuthenticationSuccesses": 0,
        "RpcAuthorizationFailures": 0,
        "RpcClientBackoff": 0,
    })
}

/// Each method that has been called, under Hadoop's name of its numbers: `GetFileInfoNumOps`.
fn each_method(port: &RpcPort<'_>) -> Value {
    let mut counted: BTreeMap<String, Figures> = BTreeMap::new();
    for of in port.methods {
        counted.entry(capitalised(of.method)).or_default().add(&of.stages[1]);
    }
    let mut attributes = Map::new();
    attributes.insert("tag.port".into(), port.port.to_string().into());
    attributes.insert("tag.Context".into(), "rpcdetailed".into());
    attributes.insert("tag.Hostname".into(), port.host_name.into());
    for (name, figures) in counted {
        attributes.insert(format!("{name}NumOps"), figures.count().into());
        attributes.insert(format!("{name}AvgTime"), mean_ms(&figures).into());
    }
    Value::Object(attributes)
}

fn capitalised(method: &str) -> String {
    let mut letters = method.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}
