//! The numbers of a member whose group shares a namespace with others. In a cluster of one group they are 0, but for `clover_directory_log_serving`.

use super::{Numbers, counters, gauges, labelled};
use std::{fmt, sync::atomic::Ordering};
use web::prometheus_client::encoding::DescriptorEncoder;

impl Numbers {
    /// What this member's group knows of the directory log, and what it has to tell others about blocks. Only actives know how far others are.
    pub(super) fn encode_groups(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let partition = &self.core.partition;
        let shown = partition.directories.show();
        let (kept, kept_bytes, exported, messages) = {
            let tree = partition.tree();
            let (kept, kept_bytes) = tree.namespace.kept_directory_entries();
            (kept, kept_bytes, tree.namespace.exported_files(), tree.namespace.messages_waiting())
        };
        gauges(
            encoder,
            &[
                (
                    "clover_directory_log_end",
                    "The last entry of the directory log that this group's active has",
                    shown.end.0,
                ),
                (
                    "clover_directory_log_visible",
                    "The last one that is visible, as the root group's active knows, or that another group has applied",
                    shown.visible.0,
                ),
                (
                    "clover_directory_log_serving",
                    "1 while this member is the active of the root group, or leads another group that follows the directory log",
                    shown.is_serving.into(),
                ),
                (
                    "clover_directory_log_trouble",
                    "1 when this group cannot follow the directory log: an operator must look",
                    shown.trouble.is_some().into(),
                ),
                ("clover_directory_log_in_doubt", "Entries in doubt", shown.in_doubt as u64),
                (
                    "clover_directory_log_waiting_calls",
                    "Calls that wait for entries, or for what other groups tell",
                    shown.waiting as u64,
                ),
                (
                    "clover_directory_log_holds",
                    "Facts that this group keeps still for the root group",
                    shown.holds as u64,
                ),
                (
                    "clover_directory_log_kept_entries",
                    "Entries that the root group keeps for groups that have not carried them out",
                    kept,
                ),
                ("clover_directory_log_kept_bytes", "Bytes of those entries", kept_bytes as u64),
                (
                    "clover_exported_files",
                    "Files of other groups, of which this group has blocks or has made the name",
                    exported,
                ),
                (
                    "clover_orders_waiting",
                    "Messages with orders about blocks that other groups have not carried out",
                    messages,
                ),
            ],
        )?;
        let left_out = partition.orders_left_out.load(Ordering::Relaxed);
        counters(
            encoder,
            &[(
                "clover_orders_left_out",
                "Orders of other groups about blocks that this group has lost, or could not carry out",
                left_out,
            )],
        )?;
        let followers = || shown.groups.iter().map(|standing| (standing.group.to_string(), standing));
        let lags = followers().filter_map(|(group, standing)| {
            Some((group, shown.visible.0.saturating_sub(standing.committed?.0)))
        });
        labelled(
            encoder,
            (
                "clover_directory_log_lag_entries",
                "Visible entries that a group has not carried out yet, as the root group's active sees it",
                "group",
            ),
            lags,
        )?;
        let leases = followers().map(|(group, standing)| (group, u64::from(standing.is_leased)));
        labelled(
            encoder,
            ("clover_directory_log_leased", "1 while a group has a directory lease", "group"),
            leases,
        )
    }
}
