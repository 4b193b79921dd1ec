//! The text of a check in the words of Hadoop's fsck. `hdfs fsck` takes its exit code from the last line.

use super::{
    block::{Block, Known, Leaving},
    java,
    request::Show,
    sums::{Cluster, File, Sums},
};
use base::AdminState;
use proto::clover::admin::ReplicaStandingProto as Standing;
use std::fmt::Write;

/// Things after which a line ends, so that a person sees the progress.
const THINGS_PER_LINE: u64 = 1_000;
/// Files for each of which a dot stands.
const FILES_PER_DOT: u64 = 100;

/// The text that has been said and not been sent, and the sums over all that was looked at.
#[derive(Debug, Default)]
pub struct Text {
    pub said: String,
    pub sums: Sums,
    /// Blocks that will be copied to another rack.
    pub queued: u64,
    show: Show,
    cluster: Cluster,
}

impl Text {
    pub fn new(show: Show, cluster: Cluster) -> Self {
        Self { show, cluster, ..Self::default() }
    }

    /// Before each thing that is looked at.
    pub fn look(&mut self) {
        let Sums { directories, symlinks, files, .. } = self.sums;
        if (directories + symlinks + files).is_multiple_of(THINGS_PER_LINE) {
            self.said.push('\n');
        }
    }

    pub fn directory(&mut self, path: &str) {
        self.sums.directories += 1;
        if self.show.files {
            let _ = writeln!(self.said, "{path} <dir>");
        }
    }

    pub fn symlink(&mut self, path: &str) {
        self.sums.symlinks += 1;
        if self.show.files {
            let _ = writeln!(self.said, "{path} <symlink>");
        }
    }

    /// Looks at a file. Returns whether it has lost a block.
    pub fn file(&mut self, file: &File) -> bool {
        if file.is_open && !self.show.open_files {
            self.sums.skip(file);
            return false;
        }
        self.sums.add(file, &self.cluster);
        self.head(file);
        let mut faults = Faults::default();
        let mut report = String::new();
        let shows_blocks = self.show.files && self.show.blocks;
        for (number, block) in file.blocks.iter().enumerate() {
            self.block(file, block, &mut faults);
            if shows_blocks {
                let _ = writeln!(report, "{number}. {}", self.block_line(block));
            }
        }
        if let Some(block) = file.unfinished.as_ref().filter(|_| shows_blocks) {
            let (number, name, bytes) = (file.blocks.len(), &block.name, block.bytes);
            let _ = write!(
                report,
                "\nUnder Construction Block:\n{number}. {name} len={bytes} Expected_repl={}{}",
                block.known.as_ref().map_or(block.servers.len(), Vec::len),
                self.places(block)
            );
        }
        self.end(file, &faults, &report);
        faults.is_lost()
    }

    fn head(&mut self, File { path, bytes, wanted, listed_blocks, is_open, .. }: &File) {
        let head = |open: &str| {
            format!(
                "{path} {bytes} bytes, replicated: replication={wanted}, {listed_blocks} block(s){open}: "
            )
        };
        if *is_open {
            self.said += &head(", OPENFORWRITE");
        } else if self.show.files {
            self.said += &head("");
        } else if self.sums.files.is_multiple_of(FILES_PER_DOT) {
            self.said.push('.');
        }
    }

    /// Says what is wrong with a block.
    fn block(&mut self, file: &File, block: &Block, faults: &mut Faults) {
        let (path, wanted, name) = (&file.path, file.wanted, &block.name);
        if block.is_corrupt {
            faults.corrupt += 1;
            faults.corrupt_bytes += block.bytes;
            let (pool, id) = (&block.pool, block.id);
            let _ = writeln!(self.said, "\n{path}: CORRUPT blockpool {pool} block blk_{id}");
        }
        if block.is_missing() {
            faults.missing += 1;
            faults.missing_bytes += block.bytes;
        }
        if block.lacking(wanted, Leaving::Counts) > 0 {
            faults.under_replicated += 1;
            if !self.show.files {
                let _ = write!(self.said, "\n{path}: ");
            }
            let counts = &block.counts;
            let maintained = match self.show.maintenance {
                // Hadoop writes no comma before the first number.
                true => format!(
                    "{}, entering maintenance replica(s) and {} in maintenance replica(s).",
                    counts.entering_maintenance, counts.in_maintenance
                ),
                false => ".".to_owned(),
            };
            let _ = writeln!(
                self.said,
                " Under replicated {name}. Target Replicas is {wanted} but found {} live replica(s), {} decommissioned \
                 replica(s), {} decommissioning replica(s){maintained}",
                counts.live, counts.decommissioned, counts.decommissioning
            );
        }
        let racks = block.racks_lacking(wanted, self.cluster.racks);
        if racks > 0 {
            faults.misplaced += 1;
            if !self.show.files {
                let line = if faults.under_replicated == 0 { "\n" } else { "" };
                let _ = write!(self.said, "{line}{path}: ");
            }
            let _ = writeln!(
                self.said,
                " Replica placement policy is violated for {name}. Block should be additionally replicated on {racks} \
                 more rack(s). Total number of racks in the cluster: {}",
                self.cluster.racks.unwrap_or_default()
            );
        }
    }

    fn block_line(&self, block: &Block) -> String {
        let line = format!("{} len={}", block.name, block.bytes);
        match block.is_missing() {
            true => line + " MISSING!",
            false => format!("{line} Live_repl={}{}", block.counts.live, self.places(block)),
        }
    }

    /// The places of a block, if they are told.
    fn places(&self, block: &Block) -> String {
        match (self.show.places(), &block.known) {
            (false, _) => String::new(),
            (true, Some(known)) => {
                let places: Vec<String> = known.iter().map(|replica| self.place(replica)).collect();
                format!("  [{}]", places.join(", "))
            }
            (true, None) => "  []".to_owned(),
        }
    }

    fn place(&self, replica: &Known) -> String {
        let server = &replica.server;
        let mut place = match self.show.racks {
            true => format!("{}/{}", server.rack, server.address),
            false => {
                let kind = server.storage_type.map_or("", |kind| kind.name());
                format!("DatanodeInfoWithStorage[{},{},{kind}]", server.address, server.storage)
            }
        };
        if self.show.upgrade_domains {
            let _ = write!(place, "(ud={})", server.upgrade_domain.as_deref().unwrap_or("undefined"));
        }
        if self.show.replica_details {
            let _ = write!(place, "({})", detail(replica, self.show.maintenance));
        }
        place
    }

    fn end(&mut self, File { path, .. }: &File, faults: &Faults, report: &str) {
        let Faults { missing, missing_bytes, corrupt, corrupt_bytes, .. } = faults;
        let (before, after) = match self.show.files {
            true => (" ".to_owned(), "\n"),
            false => (format!("\n{path}: "), "."),
        };
        if *missing > 0 {
            let _ =
                write!(self.said, "{before}MISSING {missing} blocks of total size {missing_bytes} B{after}");
        }
        if *corrupt > 0 {
            let _ =
                write!(self.said, "{before}CORRUPT {corrupt} blocks of total size {corrupt_bytes} B{after}");
        }
        if !self.show.files {
            return;
        }
        if !faults.is_lost() && faults.under_replicated == 0 && faults.misplaced == 0 {
            self.said += " OK\n";
        }
        if self.show.blocks {
            let _ = writeln!(self.said, "{report}");
        }
    }

    /// The sums. `data_servers`: those that are alive. `default_replication`: the replicas of a file for which none are named.
    pub fn totals(&mut self, data_servers: usize, default_replication: u32) {
        let sums = self.sums;
        let status = if sums.is_healthy() { "HEALTHY" } else { "CORRUPT" };
        let _ = writeln!(
            self.said,
            "\nStatus: {status}\n Number of data-nodes:\t{data_servers}\n Number of racks:\t\t{}\n \
             Total dirs:\t\t\t{}\n Total symlinks:\t\t{}\n\nReplicated Blocks:",
            self.cluster.racks.unwrap_or_default(),
            sums.directories,
            sums.symlinks
        );
        self.replicated(default_replication);
        self.said += ERASURE_CODED;
    }

    fn replicated(&mut self, default_replication: u32) {
        let sums = self.sums;
        let blocks = sums.listed_blocks;
        let share = |part: u64| match blocks {
            0 => String::new(),
            _ => format!(" ({} %)", java::percent(part, blocks)),
        };
        let text = &mut self.said;
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, " {label}:\t{value}");
        };
        let when = |is_told: bool, words: String| if is_told { words } else { String::new() };
        let open_bytes =
            when(sums.skipped.bytes > 0, format!(" (Total open files size: {} B)", sums.skipped.bytes));
        line("Total size", format!("{} B{open_bytes}", sums.bytes));
        let open_files =
            when(sums.skipped.files > 0, format!(" (Files currently being written: {})", sums.skipped.files));
        line("Total files", format!("{}{open_files}", sums.files));
        let average = sums
            .bytes
            .checked_div(blocks)
            .map(|bytes| format!(" (avg. block size {bytes} B)"))
            .unwrap_or_default();
        let open_blocks = when(
            sums.skipped.blocks > 0,
            format!(" (Total open file blocks (not validated): {})", sums.skipped.blocks),
        );
        line("Total blocks (validated)", format!("{blocks}{average}{open_blocks}"));
        if sums.corrupt_files > 0 || sums.below_minimum > 0 {
            let _ = writeln!(text, "{}", losses(&sums, self.cluster.min_replication, &share));
        }
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, " {label}:\t{value}");
        };
        let shared = |part: u64| format!("{part}{}", share(part));
        line("Minimally replicated blocks", shared(sums.blocks - sums.below_minimum));
        line("Over-replicated blocks", shared(sums.over_replicated));
        line("Under-replicated blocks", shared(sums.lacking_blocks));
        line("Mis-replicated blocks", format!("\t{}", shared(sums.on_few_racks)));
        line("Default replication factor", default_replication.to_string());
        let average = if blocks == 0 { 0.0 } else { sums.counted_replicas as f32 / blocks as f32 };
        line("Average block replication", java::float(average));
        line("Missing blocks", format!("\t{}", sums.missing));
        line("Corrupt blocks", format!("\t{}", sums.corrupt));
        let missing = when(
            sums.counted_replicas > 0,
            format!(" ({} %)", java::percent(sums.lacking_replicas, sums.replicas_wanted.max(1))),
        );
        line("Missing replicas", format!("\t{}{missing}", sums.lacking_replicas));
        for (label, replicas) in [
            ("DecommissionedReplicas", sums.decommissioned_replicas),
            ("DecommissioningReplicas", sums.decommissioning_replicas),
            ("EnteringMaintenanceReplicas", sums.entering_maintenance_replicas),
            ("InMaintenanceReplicas", sums.in_maintenance_replicas),
        ] {
            if replicas > 0 {
                line(label, replicas.to_string());
            }
        }
        line("Blocks queued for replication", self.queued.to_string());
    }
}

/// The box that tells losses.
fn losses(sums: &Sums, min_replication: usize, share: &dyn Fn(u64) -> String) -> String {
    const FRAME: &str = "  ********************************";
    let mut text = FRAME.to_owned();
    if sums.below_minimum > 0 {
        let _ = write!(
            text,
            "\n  UNDER MIN REPL'D BLOCKS:\t{}{}\n  MINIMAL BLOCK REPLICATION:\t{min_replication}",
            sums.below_minimum,
            share(sums.below_minimum)
        );
    }
    if sums.corrupt_files > 0 {
        let _ = write!(text, "\n  CORRUPT FILES:\t{}", sums.corrupt_files);
        if sums.missing_bytes > 0 {
            let (missing, bytes) = (sums.missing, sums.missing_bytes);
            let _ = write!(text, "\n  MISSING BLOCKS:\t{missing}\n  MISSING SIZE:\t\t{bytes} B");
        }
        if sums.corrupt > 0 {
            let (corrupt, bytes) = (sums.corrupt, sums.corrupt_bytes);
            let _ = write!(text, "\n  CORRUPT BLOCKS: \t{corrupt}\n  CORRUPT SIZE:\t\t{bytes} B");
        }
    }
    text + "\n" + FRAME
}

/// The sums of erasure-coded files, of which there are none.
const ERASURE_CODED: &str = "
Erasure Coded Block Groups:
 Total size:\t0 B
 Total files:\t0
 Total block groups (validated):\t0
 Minimally erasure-coded block groups:\t0
 Over-erasure-coded block groups:\t0
 Under-erasure-coded block groups:\t0
 Unsatisfactory placement block groups:\t0
 Average block group size:\t0.0
 Missing block groups:\t\t0
 Corrupt block groups:\t\t0
 Missing internal blocks:\t0
 Blocks queued for replication:\t0
";

/// The state of a replica. `maintenance`: servers in maintenance are told apart.
fn detail(replica: &Known, maintenance: bool) -> &'static str {
    match replica.server.state {
        AdminState::Decommissioned => return "DECOMMISSIONED",
        AdminState::DecommissionInProgress => return "DECOMMISSIONING",
        AdminState::EnteringMaintenance if maintenance => return "ENTERING MAINTENANCE",
        AdminState::InMaintenance if maintenance => return "IN MAINTENANCE",
        _ => {}
    }
    match replica.standing {
        Standing::ReplicaCorrupt => "CORRUPT",
        Standing::ReplicaExcess => "EXCESS",
        _ if replica.is_server_stale => "STALE_NODE",
        Standing::ReplicaDoubted => "STALE_BLOCK_CONTENT",
        _ if replica.is_storage_stale => "STALE_BLOCK_CONTENT",
        _ => "LIVE",
    }
}

/// The faults of one file.
#[derive(Default)]
struct Faults {
    missing: u64,
    missing_bytes: u64,
    corrupt: u64,
    corrupt_bytes: u64,
    under_replicated: u64,
    misplaced: u64,
}

impl Faults {
    fn is_lost(&self) -> bool {
        self.missing > 0 || self.corrupt > 0
    }
}

#[cfg(test)]
mod tests;
