//! The question of `hdfs fsck`, as it stands in a URI.

use crate::parameters::Parameters;

/// The parameters of a question: the files that fsck looks at, the details that it tells, and what it does about damage. Some parameters count whatever
/// their value is, as in Hadoop: `files=` says as much as `files=1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub show: Show,
    /// Copy the blocks that damaged files still have to `/lost+found`.
    pub moves: bool,
    /// Delete files with lost blocks.
    pub deletes: bool,
    /// Have blocks copied that are on too few racks.
    pub replicates: bool,
    /// The snapshots below the path are looked at as well.
    pub snapshots: bool,
    /// The client gave `-showprogress`, which has no effect any more.
    pub asks_for_progress: bool,
    /// List the lost blocks, instead of looking at files.
    pub lists_lost_blocks: bool,
    /// The lost blocks that were told before.
    pub told_before: u64,
    /// Tell about these blocks, instead of looking at files.
    pub blocks: Option<Vec<String>>,
}

/// The details that are told of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Show {
    pub files: bool,
    pub blocks: bool,
    pub locations: bool,
    pub racks: bool,
    pub replica_details: bool,
    pub upgrade_domains: bool,
    pub storage_policies: bool,
    pub maintenance: bool,
    /// Files that are being written are looked at as well.
    pub open_files: bool,
}

impl Show {
    /// Whether the places of blocks are told.
    pub fn places(&self) -> bool {
        self.locations || self.racks || self.replica_details || self.upgrade_domains
    }
}

impl Request {
    pub fn of(parameters: &Parameters) -> Self {
        let has = |name: &str| parameters.has(name);
        // As Java's `split` does it: words that are empty at the end do not count.
        let words = |text: &str| text.trim_end_matches(' ').split(' ').map(str::to_owned).collect();
        Self {
            path: parameters.get("path").unwrap_or("/").to_owned(),
            show: Show {
                files: has("files"),
                blocks: has("blocks"),
                locations: has("locations"),
                racks: has("racks"),
                replica_details: has("replicadetails"),
                upgrade_domains: has("upgradedomains"),
                storage_policies: has("storagepolicies"),
                maintenance: has("maintenance"),
                open_files: has("openforwrite"),
            },
            moves: has("move"),
            deletes: has("delete"),
            replicates: has("replicate"),
            snapshots: has("includesnapshots"),
            asks_for_progress: has("showprogress"),
            lists_lost_blocks: has("listcorruptfileblocks"),
            // A cookie that is no number begins anew, as in Hadoop.
            told_before: parameters.get("startblockafter").and_then(|text| text.parse().ok()).unwrap_or(0),
            blocks: has("blockid").then(|| words(parameters.get("blockid").unwrap_or_default())),
        }
    }

    /// Whether something is changed, and not only looked at.
    pub fn changes(&self) -> bool {
        self.moves || self.deletes || self.replicates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Request {
        Request::of(&Parameters::parse(query).unwrap())
    }

    #[test]
    fn the_stock_tool_s_parameters_are_understood() {
        let request = of("ugi=ann&files=1&blocks=1&racks=1&openforwrite=1&includeSnapshots=1&path=%2Fa+b");
        let show = Show { files: true, blocks: true, racks: true, open_files: true, ..Show::default() };
        assert_eq!(request, Request { path: "/a b".into(), show, snapshots: true, ..Request::default() });
        assert!(!request.changes());
        for change in ["move=1", "delete=1", "replicate=1", "delete="] {
            assert!(of(change).changes(), "{change}");
        }
        let blocks = of("ugi=ann&blockId=blk_1+blk_2+&path=%2F").blocks.unwrap();
        assert_eq!(blocks, ["blk_1", "blk_2"]);
        assert_eq!(of("blockId=").blocks.unwrap(), [""]);
        assert_eq!(of("listcorruptfileblocks=1&startblockafter=500").told_before, 500);
    }
}
