//! A plan of Hadoop's disk balancer: JSON, as `hdfs diskbalancer -plan` writes it (`NodePlan`).

use serde_json::Value;

/// A plan has at most a step for each pair of disks. No server has so many disks that its plan is longer than this.
const STEP_COUNT_MAX: usize = 4_096;
const PLAN_BYTES_MAX: usize = 4 << 20;

/// The moves between the volumes of one data server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The data server that it was made for.
    pub node_uuid: String,
    /// Milliseconds since 1970.
    pub made_ms: u64,
    pub steps: Vec<Step>,
}

/// So many bytes go from one volume to another. Numbers that are 0 are the server's to choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The storage ids.
    pub source: String,
    pub target: String,
    /// For messages: the directory that the plan names as the source.
    pub source_path: String,
    pub target_path: String,
    pub bytes: u64,
    /// In MiB.
    pub bandwidth_per_second: u64,
    pub error_count_max: u64,
    pub tolerance_percent: u64,
}

/// Reads a plan.
///
/// # Errors
/// It is too long, no JSON, or lacks what a plan has; the text says which.
pub fn parse(text: &str) -> Result<Plan, String> {
    if text.len() > PLAN_BYTES_MAX {
        return Err(format!("the plan has {} bytes, and may have {PLAN_BYTES_MAX}", text.len()));
    }
    let plan: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let steps = plan["volumeSetPlans"].as_array().ok_or("the plan has no volumeSetPlans")?;
    if steps.len() > STEP_COUNT_MAX {
        return Err(format!("the plan has {} steps, and may have {STEP_COUNT_MAX}", steps.len()));
    }
    Ok(Plan {
        node_uuid: plan["nodeUUID"].as_str().unwrap_or_default().to_owned(),
        made_ms: plan["timeStamp"].as_u64().unwrap_or(0),
        steps: steps.iter().map(step).collect::<Result<_, _>>()?,
    })
}

fn step(step: &Value) -> Result<Step, String> {
    let text = |volume: &str, field: &str| step[volume][field].as_str().map(str::to_owned);
    let id = |volume: &str| text(volume, "uuid").ok_or(format!("a step has no uuid of its {volume}"));
    // A negative number is the server's to choose as well.
    let number = |field: &str| step[field].as_u64().unwrap_or(0);
    Ok(Step {
        source: id("sourceVolume")?,
        target: id("destinationVolume")?,
        source_path: text("sourceVolume", "path").unwrap_or_default(),
        target_path: text("destinationVolume", "path").unwrap_or_default(),
        bytes: step["bytesToMove"].as_u64().ok_or("a step has no bytesToMove")?,
        bandwidth_per_second: number("bandwidth"),
        error_count_max: number("maxDiskErrors"),
        tolerance_percent: number("tolerancePercent"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_as_hadoop_writes_it() {
        let text = r#"{"volumeSetPlans":[{"@class":"org.apache.hadoop.hdfs.server.diskbalancer.planner.MoveStep",
            "sourceVolume":{"path":"/d0/","capacity":100,"storageType":"DISK","used":50,"reserved":0,"uuid":"DS-0",
            "failed":false,"volumeDataDensity":0.1,"skip":false,"transient":false,"readOnly":false},
            "destinationVolume":{"path":"/d1/","uuid":"DS-1"},"idealStorage":0.25,"bytesToMove":25,"volumeSetID":"x",
            "maxDiskErrors":0,"tolerancePercent":0,"bandwidth":7}],
            "nodeName":"h","nodeUUID":"U","port":9867,"timeStamp":12}"#;
        let step = Step {
            source: "DS-0".into(),
            target: "DS-1".into(),
            source_path: "/d0/".into(),
            target_path: "/d1/".into(),
            bytes: 25,
            bandwidth_per_second: 7,
            ..Step::default()
        };
        assert_eq!(parse(text), Ok(Plan { node_uuid: "U".into(), made_ms: 12, steps: vec![step] }));
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in [
            "",
            "{",
            "[]",
            "{}",
            "null",
            r#"{"volumeSetPlans":7}"#,
            r#"{"volumeSetPlans":[{}]}"#,
            r#"{"volumeSetPlans":[{"sourceVolume":{"uuid":"a"},"destinationVolume":{"uuid":"b"},"bytesToMove":-1}]}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err(), "a deep one");
        let many = format!(r#"{{"volumeSetPlans":[{}0]}}"#, "0,".repeat(STEP_COUNT_MAX));
        assert!(parse(&many).unwrap_err().contains("may have"));
    }
}
