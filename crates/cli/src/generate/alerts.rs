//! The rules for Prometheus.

/// The rules of a cluster of one group.
pub const RULES: &str = include_str!("alerts.yml");

/// The rules of a cluster of so many groups. With several, each number is looked at for each group.
pub fn text(groups: u32) -> String {
    let mut text = super::heading("What to alert on");
    if groups == 1 {
        return text + RULES;
    }
    // A 0 in the place of a number that is not there would hide a group that is away behind another one.
    text += &RULES
        .replace(" or vector(0)", "")
        .replace("max(", "max by (metadata_group) (")
        .replace("min(", "min by (metadata_group) (")
        .replace("sum(", "sum by (metadata_group) (")
        .replace("max by (code) (", "max by (metadata_group, code) (");
    for group in 1..=groups {
        text += &format!(
            "      - alert: CloverGroupSilent\n        expr: absent(clover_active{{metadata_group=\"{group}\"}})\n        for: 30s\n        \
             labels: {{severity: critical, metadata_group: \"{group}\"}}\n        annotations: {{summary: \"No metadata server of group {group} answers Prometheus\", \
             next: \"clover status\"}}\n"
        );
    }
    text
}
