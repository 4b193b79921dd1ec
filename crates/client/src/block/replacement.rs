//! Another server for a pipeline that has lost one: chosen by the metadata service, brought up to date by a server that
//! is left.

use super::{
    PipelineKeeper,
    connection::{address, describe},
    pipe::Pipe,
};
use proto::hdfs::{DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto, StorageTypeProto};
use std::fmt;

/// Servers tried for one place, as in Hadoop's client: each after the one before could not be brought up to date.
const ATTEMPTS_MAX: usize = 3;

/// When another server is looked for (`dfs.client.block.write.replace-datanode-on-failure.policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplacementPolicy {
    /// The servers left go on alone.
    Never,
    /// A lost server is replaced if the file is to have three copies or more, and half of them or fewer are left, or
    /// readers may count on the bytes already.
    #[default]
    Default,
    Always,
}

impl fmt::Display for ReplacementPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "NEVER",
            Self::Default => "DEFAULT",
            Self::Always => "ALWAYS",
        })
    }
}

/// Whether and how a server that a pipeline has lost is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replacement {
    pub policy: ReplacementPolicy,
    /// If no other server can be had, the remaining ones go on. When this is false, the write fails instead.
    pub is_best_effort: bool,
    /// The number of remaining servers that suffice to go on if the metadata service knows no other server; 0 if no
    /// number does.
    pub servers_min: u16,
}

impl Replacement {
    /// Whether a pipeline with so many servers left gets another one.
    pub fn is_wanted(&self, replication: u16, left: usize, is_promised: bool) -> bool {
        let replication = usize::from(replication);
        if left == 0 || left >= replication {
            return false;
        }
        match self.policy {
            ReplacementPolicy::Never => false,
            ReplacementPolicy::Default => replication >= 3 && (left <= replication / 2 || is_promised),
            ReplacementPolicy::Always => true,
        }
    }

    fn goes_on_with(&self, left: usize) -> bool {
        self.servers_min > 0 && left >= usize::from(self.servers_min)
    }
}

/// Adds a server to a pipeline that is about to be set up again, if its options ask for one. An error ends the write.
/// `block` is as the servers know it, `sent` how many of its bytes they may have.
pub(super) async fn replace(
    pipe: &mut Pipe,
    keeper: &dyn PipelineKeeper,
    block: &ExtendedBlockProto,
    is_promised: bool,
    sent: u64,
) -> Result<(), String> {
    let (replacement, replication) = (pipe.options().replacement, pipe.options().replication);
    if !replacement.is_wanted(replication, pipe.nodes().len(), is_promised) {
        return Ok(());
    }
    match add_server(pipe, keeper, block, sent).await {
        Err(reason) if replacement.is_best_effort => {
            let left = pipe.nodes().len();
            tracing::warn!(block = describe(block), reason, left, "a pipeline goes on without a replacement");
            Ok(())
        }
        outcome => outcome,
    }
}

async fn add_server(
    pipe: &mut Pipe,
    keeper: &dyn PipelineKeeper,
    block: &ExtendedBlockProto,
    sent: u64,
) -> Result<(), String> {
    let mut unreachable = Vec::new();
    let mut attempt = 0;
    loop {
        let located = keeper.another_server(block, pipe.nodes(), pipe.storage_ids(), &unreachable).await?;
        let Some(added) = pipe.addition(&located) else {
            let reason = none_left(pipe, &located);
            if !pipe.options().replacement.goes_on_with(pipe.nodes().len()) {
                return Err(reason);
            }
            tracing::warn!(block = describe(block), reason, "a pipeline goes on without a replacement");
            return Ok(());
        };
        let source = attempt % pipe.nodes().len();
        match pipe.transfer(block, source, &located, added, sent).await {
            Ok(()) => {
                tracing::info!(
                    block = describe(block),
                    server = address(&located.locs[added]),
                    "a pipeline got another server"
                );
                pipe.take(located);
                return Ok(());
            }
            Err(reason) => {
                let target = located.locs[added].clone();
                let (from, to) = (address(&pipe.nodes()[source]), address(&target));
                tracing::warn!(
                    block = describe(block),
                    reason,
                    from,
                    to,
                    "a replacement was not brought up to date"
                );
                unreachable.push(target);
                attempt += 1;
                if attempt == ATTEMPTS_MAX {
                    return Err(format!("Failed to add a datanode. {to} from {from}: {reason}"));
                }
            }
        }
    }
}

/// Hadoop's words, for which people search.
fn none_left(pipe: &Pipe, answer: &LocatedBlockProto) -> String {
    let current = list(&answer.locs, &answer.storage_i_ds, &answer.storage_types);
    let original = list(pipe.nodes(), pipe.storage_ids(), pipe.storage_types());
    format!(
        "Failed to replace a bad datanode on the existing pipeline due to no more good datanodes being available \
         to try. (Nodes: current=[{current}], original=[{original}]). The current failed datanode replacement \
         policy is {}, and a client may configure this via \
         'dfs.client.block.write.replace-datanode-on-failure.policy' in its configuration.",
        pipe.options().replacement.policy
    )
}

fn list(nodes: &[DatanodeInfoProto], storage_ids: &[String], storage_types: &[i32]) -> String {
    let server = |(index, node): (usize, &DatanodeInfoProto)| {
        let storage = storage_ids.get(index).map_or("", String::as_str);
        let kind = storage_types.get(index).and_then(|kind| StorageTypeProto::try_from(*kind).ok());
        let kind = kind.unwrap_or(StorageTypeProto::Disk).as_str_name();
        format!("DatanodeInfoWithStorage[{},{storage},{kind}]", address(node))
    };
    nodes.iter().enumerate().map(server).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hadoop's `hdfs-default.xml`, of the policy DEFAULT: r is the replication, n the datanodes that are left; a new
    /// one is added "only if r is greater than or equal to 3 and either (1) floor(r/2) is greater than or equal to
    /// n; or (2) r is greater than n and the block is hflushed/appended".
    #[test]
    fn the_default_policy_replaces_what_hadoops_does() {
        let wanted =
            |replication, left, is_promised| Replacement::default().is_wanted(replication, left, is_promised);
        for (replication, left, plain, promised) in [
            (1, 0, false, false),
            (2, 1, false, false),
            (3, 0, false, false),
            (3, 1, true, true),
            (3, 2, false, true),
            (3, 3, false, false),
            (4, 2, true, true),
            (5, 3, false, true),
            (10, 5, true, true),
            (10, 6, false, true),
        ] {
            assert_eq!(wanted(replication, left, false), plain, "{replication} {left}");
            assert_eq!(wanted(replication, left, true), promised, "{replication} {left} promised");
        }
    }

    #[test]
    fn the_other_policies_ask_nothing() {
        for (policy, wanted) in [(ReplacementPolicy::Never, false), (ReplacementPolicy::Always, true)] {
            let replacement = Replacement { policy, ..Replacement::default() };
            assert_eq!(replacement.is_wanted(2, 1, false), wanted);
            assert_eq!(replacement.is_wanted(3, 1, true), wanted);
            assert!(!replacement.is_wanted(3, 3, true), "nothing is lost");
            assert!(!replacement.is_wanted(3, 0, true), "nobody is left to bring another one up to date");
        }
    }
}
