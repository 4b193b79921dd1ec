//! Has a data server read its configuration file again, and says what has become of it.

use super::data_server::{DataServer, Named};
use crate::target::Target;
use proto::hdfs::{
    GetReconfigurationStatusRequestProto, GetReconfigurationStatusResponseProto,
    StartReconfigurationRequestProto, StartReconfigurationResponseProto,
};
use serde_json::json;
use std::{process::ExitCode, time::Duration};

const LOOK: Duration = Duration::from_millis(200);

/// Have a data server read its file again: directories come and go, without a restart.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Named,
    /// Only tell what the last order has come to.
    #[arg(long)]
    status: bool,
    /// Print JSON, one object a changed property.
    #[arg(long)]
    json: bool,
}

pub async fn run(target: &Target, args: Args) -> anyhow::Result<ExitCode> {
    let server = DataServer::find(target, &args.server)?;
    if !args.status {
        let order = StartReconfigurationRequestProto {};
        let _: StartReconfigurationResponseProto = server.ask("startReconfiguration", &order).await?;
    }
    let status = loop {
        let question = GetReconfigurationStatusRequestProto {};
        let status: GetReconfigurationStatusResponseProto =
            server.ask("getReconfigurationStatus", &question).await?;
        if status.start_time == 0 || status.end_time.is_some() {
            break status;
        }
        tokio::time::sleep(LOOK).await;
    };
    for change in &status.changes {
        let (new, error) = (change.new_value(), change.error_message.as_deref());
        match args.json {
            true => {
                let line =
                    json!({ "property": change.name, "old": change.old_value, "new": new, "error": error });
                println!("{line}");
            }
            false => {
                println!("{}: {} -> {new}", change.name, change.old_value);
                error.into_iter().for_each(|error| println!("    FAILED: {error}"));
            }
        }
    }
    if status.changes.is_empty() && !args.json {
        println!(
            "{}",
            if status.start_time == 0 { "No order was given." } else { "Nothing was to be changed." }
        );
    }
    let has_failed = status.changes.iter().any(|change| change.error_message.is_some());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
