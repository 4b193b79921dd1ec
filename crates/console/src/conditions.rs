//! The conditions of the cluster, each with the page that shows more.

use crate::cluster::Cluster;
use verdict::{Code, Severity};

/// Something that a person should look into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub severity: Severity,
    /// Its name, which stays the same.
    pub name: &'static str,
    pub text: String,
    /// The next thing to do.
    pub remedy: String,
    pub page: &'static str,
}

/// All conditions, errors first.
pub fn of(cluster: &Cluster) -> Vec<Condition> {
    let judged = verdict::judge(&cluster.facts);
    let shown = judged.conditions.into_iter().map(|condition| Condition {
        severity: condition.severity,
        name: condition.code.as_str(),
        text: condition.text,
        remedy: condition.remedy,
        page: page(condition.code),
    });
    let mut conditions: Vec<Condition> = shown.collect();
    conditions.sort_by_key(|condition| std::cmp::Reverse(condition.severity));
    conditions
}

fn page(code: Code) -> &'static str {
    match code {
        Code::SafeMode | Code::NoAnswer => "/start",
        Code::BlocksMissing | Code::BlocksCorrupt | Code::BlocksUnderReplicated | Code::DeletionsHeld => {
            "/blocks"
        }
        Code::NoDataServer
        | Code::DataServerDead
        | Code::DataServerStale
        | Code::DataServerSlow
        | Code::DiskSlow
        | Code::AddressContested
        | Code::VolumeFailed
        | Code::DiskNearlyFull
        | Code::CapacityNearlyFull => "/data-servers",
        _ => "/group",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict::{Blocks, Data, DataServer, Facts, Group, Leader};

    #[test]
    fn a_cluster_that_is_well_has_no_condition_and_the_worst_comes_first() {
        let live = DataServer { is_alive: true, is_in_service: true, ..DataServer::default() };
        let group = |blocks| {
            let data = Data { blocks, servers: vec![live.clone()], ..Data::default() };
            Group { number: 1, leader: Leader::Serves(1), data: Some(data), ..Group::default() }
        };
        let of_blocks = |blocks| {
            let facts = Facts { groups: vec![group(blocks)], ..Facts::default() };
            of(&Cluster { facts, ..Cluster::default() })
        };
        assert_eq!(of_blocks(Blocks::default()), []);
        let ill = of_blocks(Blocks { missing: 1, under_replicated: 3, ..Blocks::default() });
        assert_eq!(
            (ill[0].name, ill[0].page, ill[0].severity),
            ("BLOCKS_MISSING", "/blocks", Severity::Error)
        );
        assert!(ill.iter().any(|one| one.name == "BLOCKS_UNDER_REPLICATED"), "{ill:?}");
        // One question without an answer is no fault of the cluster.
        let slow = Cluster { unanswered: vec!["why".to_owned()], ..Cluster::default() };
        assert_eq!(of(&slow), []);
    }
}
