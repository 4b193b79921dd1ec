//! Evens out the disks of one data server: makes a plan, hands it over, and tells how far it has come.

use super::{
    data_server::{DataServer, Named},
    orders::bandwidth,
    report::size,
};
use crate::{table, target::Target};
use anyhow::{Context, bail};
use proto::hdfs::{
    CancelPlanRequestProto, CancelPlanResponseProto, DatanodeVolumeInfoProto,
    DiskBalancerSettingRequestProto, DiskBalancerSettingResponseProto, GetVolumeReportRequestProto,
    GetVolumeReportResponseProto, QueryPlanStatusRequestProto, QueryPlanStatusResponseProto,
    SubmitDiskBalancerPlanRequestProto, SubmitDiskBalancerPlanResponseProto,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, SystemTime},
};

const LOOK: Duration = Duration::from_secs(1);
const MIB: u64 = 1 << 20;

/// Even out the disks of a data server: replicas move from full ones to empty ones of the same type.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Named,
    /// Only print what would be moved.
    #[arg(long, conflicts_with_all = ["status", "cancel"])]
    plan: bool,
    /// Only tell how far the running plan has come, or the last one.
    #[arg(long, conflicts_with = "cancel")]
    status: bool,
    /// End the running plan. Replicas that were moved stay where they are.
    #[arg(long)]
    cancel: bool,
    /// A disk counts as even if it is fuller or emptier than all together by no more than so many percent of its size.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=99))]
    threshold: u64,
    /// Move so many bytes a second from each disk, in whole MiB; with k, m, g for 1024 times as many.
    #[arg(long, value_name = "BYTES", default_value = "10m", value_parser = bandwidth)]
    bandwidth: u64,
    /// Do not wait for the end.
    #[arg(long)]
    no_wait: bool,
    /// Print JSON, one object a step.
    #[arg(long)]
    json: bool,
}

/// One disk, as the data server tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Disk {
    id: String,
    path: String,
    storage_type: i32,
    used: u64,
    /// The bytes that are used, and the bytes that are free for replicas, together.
    size: u64,
}

/// Bytes that go from one disk to another, by their places in the list.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    from: usize,
    to: usize,
    bytes: u64,
}

pub async fn run(target: &Target, args: Args) -> anyhow::Result<ExitCode> {
    let server = DataServer::find(target, &args.server)?;
    if args.cancel {
        let status = status(&server).await?;
        let order = CancelPlanRequestProto { plan_id: status.plan_id().to_owned() };
        let _: CancelPlanResponseProto = server.ask("cancelDiskBalancerPlan", &order).await?;
        return watch(&server, &args).await;
    }
    if args.status {
        let status = status(&server).await?;
        show(&status, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let disks = disks(&server).await?;
    let steps = plan(&disks, args.threshold);
    if steps.is_empty() || args.plan {
        show_plan(&disks, &steps, args.json);
        return Ok(ExitCode::SUCCESS);
    }
    submit(&server, &args, &disks, &steps).await?;
    match args.no_wait {
        true => Ok(ExitCode::SUCCESS),
        false => watch(&server, &args).await,
    }
}

async fn setting(server: &DataServer, key: &str) -> anyhow::Result<String> {
    let question = DiskBalancerSettingRequestProto { key: key.into() };
    let answer: DiskBalancerSettingResponseProto = server.ask("getDiskBalancerSetting", &question).await?;
    Ok(answer.value)
}

async fn status(server: &DataServer) -> anyhow::Result<QueryPlanStatusResponseProto> {
    server.ask("queryDiskBalancerPlan", &QueryPlanStatusRequestProto {}).await
}

async fn disks(server: &DataServer) -> anyhow::Result<Vec<Disk>> {
    let names: BTreeMap<String, String> =
        serde_json::from_str(&setting(server, "DiskBalancerVolumeName").await?)
            .context("the names of its volumes")?;
    let answer: GetVolumeReportResponseProto =
        server.ask("getVolumeReport", &GetVolumeReportRequestProto {}).await?;
    let disk = |(id, path): (String, String)| {
        let is_it = |info: &&DatanodeVolumeInfoProto| info.path == path;
        let info = answer.volume_info.iter().find(is_it)?;
        let (storage_type, used) = (info.storage_type, info.used_space);
        Some(Disk { id, storage_type, used, size: used.saturating_add(info.free_space), path })
    };
    Ok(names.into_iter().filter_map(disk).collect())
}

/// The moves after which each disk of a type is as full, in percent, as all disks of that type together. The fullest disk gives to the
/// emptiest, as much as one of the two wants, until none is beyond the threshold.
fn plan(disks: &[Disk], threshold_percent: u64) -> Vec<Step> {
    let mut types: Vec<i32> = disks.iter().map(|disk| disk.storage_type).collect();
    types.sort_unstable();
    types.dedup();
    types.into_iter().flat_map(|storage_type| plan_of_type(disks, storage_type, threshold_percent)).collect()
}

fn plan_of_type(disks: &[Disk], storage_type: i32, threshold_percent: u64) -> Vec<Step> {
    let of_type =
        |(at, disk): (usize, &Disk)| (disk.storage_type == storage_type && disk.size > 0).then_some(at);
    let places: Vec<usize> = disks.iter().enumerate().filter_map(of_type).collect();
    let sum = |of: fn(&Disk) -> u64| -> i128 { places.iter().map(|at| i128::from(of(&disks[*at]))).sum() };
    let (used, size) = (sum(|disk| disk.used), sum(|disk| disk.size));
    // How much more each disk has than its share.
    let mut excess: Vec<(i128, usize)> = places
        .iter()
        .map(|at| {
            (
                i128::from(disks[*at].used) - used.saturating_mul(i128::from(disks[*at].size)) / size.max(1),
                *at,
            )
        })
        .collect();
    let is_beyond = |(bytes, at): (i128, usize)| {
        bytes.abs() * 100 > i128::from(disks[at].size) * i128::from(threshold_percent)
    };
    let mut steps = Vec::new();
    // Each step makes one disk even, and no disk is met again that is even.
    for _ in 0..places.len() {
        excess.sort_unstable();
        let (Some(least), Some(most)) = (excess.first().copied(), excess.last().copied()) else { break };
        if !excess.iter().any(|disk| is_beyond(*disk)) {
            break;
        }
        let bytes = most.0.min(-least.0);
        if bytes <= 0 {
            break;
        }
        steps.push(Step { from: most.1, to: least.1, bytes: bytes as u64 });
        excess.iter_mut().filter(|disk| disk.1 == most.1).for_each(|disk| disk.0 -= bytes);
        excess.iter_mut().filter(|disk| disk.1 == least.1).for_each(|disk| disk.0 += bytes);
    }
    steps
}

/// The plan in the words of Hadoop's, which the server reads.
async fn submit(server: &DataServer, args: &Args, disks: &[Disk], steps: &[Step]) -> anyhow::Result<()> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let volume = |at: usize| json!({ "uuid": disks[at].id, "path": disks[at].path });
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            json!({
                "sourceVolume": volume(step.from),
                "destinationVolume": volume(step.to),
                "bytesToMove": step.bytes,
                "bandwidth": args.bandwidth.div_ceil(MIB),
            })
        })
        .collect();
    let plan = json!({
        "volumeSetPlans": steps,
        "nodeUUID": setting(server, "CloverNodeUuid").await?,
        "timeStamp": since.as_millis() as u64,
    });
    let order = SubmitDiskBalancerPlanRequestProto {
        // It only has to be another one each time.
        plan_id: format!("{:040x}", since.as_nanos()),
        plan: plan.to_string(),
        plan_version: Some(1),
        ignore_date_check: Some(true),
        plan_file: "clover admin disk-balancer".into(),
    };
    let _: SubmitDiskBalancerPlanResponseProto = server.ask("submitDiskBalancerPlan", &order).await?;
    Ok(())
}

/// Tells the progress until the plan has ended. Only a plan that was carried out is a success.
async fn watch(server: &DataServer, args: &Args) -> anyhow::Result<ExitCode> {
    loop {
        let status = status(server).await?;
        if status.result() != 1 {
            show(&status, args.json)?;
            let is_as_ordered = if args.cancel { status.result() != 0 } else { status.result() == 2 };
            return Ok(if is_as_ordered { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        if !args.json {
            show(&status, false)?;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn show_plan(disks: &[Disk], steps: &[Step], is_json: bool) {
    if steps.is_empty() && !is_json {
        println!("The disks are even: nothing is to be moved.");
    }
    for Step { from, to, bytes } in steps {
        let (from, to) = (&disks[*from].path, &disks[*to].path);
        match is_json {
            true => println!("{}", json!({ "from": from, "to": to, "bytes": bytes })),
            false => println!("{} would go from {from} to {to}", size(*bytes)),
        }
    }
}

fn show(status: &QueryPlanStatusResponseProto, is_json: bool) -> anyhow::Result<()> {
    let word = match status.result() {
        0 => "no plan since the start",
        1 => "running",
        2 => "done",
        3 => "cancelled",
        other => bail!("the server tells the state {other}, which is unknown"),
    };
    let entries: Vec<Value> =
        serde_json::from_str(status.current_status()).context("the steps of its plan")?;
    let number = |entry: &Value, field: &str| entry["workItem"][field].as_u64().unwrap_or(0);
    if is_json {
        for entry in &entries {
            let line = json!({
                "state": word,
                "from": entry["sourcePath"],
                "to": entry["destPath"],
                "bytes": number(entry, "bytesToCopy"),
                "bytes_moved": number(entry, "bytesCopied"),
                "blocks_moved": number(entry, "blocksCopied"),
                "errors": number(entry, "errorCount"),
                "error": entry["workItem"]["errMsg"],
            });
            println!("{line}");
        }
        return Ok(());
    }
    println!("{word}");
    if entries.is_empty() {
        return Ok(());
    }
    let mut rows =
        vec![["FROM", "TO", "WANTED", "MOVED", "BLOCKS", "ERRORS", "LAST ERROR"].map(str::to_owned).to_vec()];
    rows.extend(entries.iter().map(|entry| {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        vec![
            text(&entry["sourcePath"]),
            text(&entry["destPath"]),
            size(number(entry, "bytesToCopy")),
            size(number(entry, "bytesCopied")),
            number(entry, "blocksCopied").to_string(),
            number(entry, "errorCount").to_string(),
            text(&entry["workItem"]["errMsg"]),
        ]
    }));
    table::lines(&rows).iter().for_each(|line| println!("{line}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disks(of: &[(i32, u64, u64)]) -> Vec<Disk> {
        let disk = |(at, (storage_type, used, size)): (usize, &(i32, u64, u64))| Disk {
            id: format!("DS-{at}"),
            path: format!("/d{at}"),
            storage_type: *storage_type,
            used: *used,
            size: *size,
        };
        of.iter().enumerate().map(disk).collect()
    }

    fn step(from: usize, to: usize, bytes: u64) -> Step {
        Step { from, to, bytes }
    }

    #[test]
    fn a_new_disk_gets_its_share_from_the_fullest() {
        let three = disks(&[(1, 90, 100), (1, 60, 100), (1, 0, 100)]);
        assert_eq!(plan(&three, 5), [step(0, 2, 40), step(1, 2, 10)]);
        assert_eq!(plan(&three, 10), [step(0, 2, 40)], "what is left is within the threshold");
        assert_eq!(plan(&disks(&[(1, 600, 1_000), (1, 0, 500)]), 10), [step(0, 1, 200)], "by their sizes");
    }

    #[test]
    fn disks_within_the_threshold_stay() {
        assert_eq!(plan(&disks(&[(1, 55, 100), (1, 45, 100)]), 10), []);
        assert_eq!(plan(&disks(&[(1, 55, 100), (1, 45, 100)]), 4), [step(0, 1, 5)]);
    }

    #[test]
    fn types_are_not_mixed_and_odd_figures_do_no_harm() {
        assert_eq!(plan(&disks(&[(1, 90, 100), (2, 0, 100)]), 10), []);
        assert_eq!(plan(&[], 10), []);
        assert_eq!(plan(&disks(&[(1, 0, 0), (1, 0, 0)]), 10), []);
        plan(&disks(&[(1, u64::MAX, u64::MAX), (1, 0, u64::MAX), (1, 0, 1)]), 1);
    }
}
