//! How long calls take and who makes them, as Prometheus reads it.

use crate::core::Core;
use env::Clock;
use measures::WINDOWS;
use std::fmt;
use web::prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

/// How many pairs of a user and a method are shown for each window, the busiest ones: HDFS's nntop shows as many.
const TOP_MAX: usize = 10;

pub fn put(core: &Core, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    web::put_calls(encoder, "clover_rpc", &core.calls.methods())?;
    put_others(core, encoder)?;
    put_users(core, encoder)
}

fn put_others(core: &Core, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let flushes = core.partition.member.flush_times();
    let help = "How long entries took until they were on this member's disk; one flush for all that waited";
    web::put_times(encoder, ("clover_journal_flush_seconds", help), [(Vec::new(), &flushes)])?;

    let to_active = core.partition.forwarder.times_away();
    let to_groups = core.doors.iter().map(|doors| doors.times_away()).next().unwrap_or_default();
    let sets = [("active", &to_active), ("group", &to_groups)];
    let sets = sets.into_iter().map(|(to, figures)| (vec![("to", to)], figures));
    let help = "How long calls were away that the active of this group, or another group, has answered";
    web::put_times(encoder, ("clover_call_forward_seconds", help), sets)
}

fn put_users(core: &Core, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let now = env::SystemClock.moment();
    let windows =
        WINDOWS.map(|window_s| (window_s.to_string(), core.calls.top_users(window_s, now, TOP_MAX)));
    if windows.iter().all(|(_, top)| top.is_empty()) {
        return Ok(());
    }
    let help = "Calls by the busiest users in the last seconds";
    let mut family = encoder.encode_descriptor("clover_rpc_user_calls", help, None, MetricType::Gauge)?;
    for (window_s, top) in &windows {
        for of in top {
            let labels = [("window_seconds", &**window_s), ("user", &of.user), ("method", of.method)];
            ConstGauge::new(of.calls as i64).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
