//! Where an order for a data server comes from, in words.

use proto::clover::admin::{DataServerWishProto as Wish, OrderedServerProto};

/// The word for an order: "decommission", "maintenance".
pub fn word(wish: Wish) -> &'static str {
    match wish {
        Wish::InService => "in service",
        Wish::Decommission => "decommission",
        Wish::Maintenance => "maintenance",
    }
}

/// The sources that order the server out of service now: the journal, the files of the active, or both.
pub fn words(server: &OrderedServerProto) -> Vec<&'static str> {
    let mut words = Vec::new();
    if server.journal.is_some() && !server.is_over() {
        words.push("journal");
    }
    if server.files.is_some() {
        words.push("files");
    }
    words
}

/// The state of the server by the group that tells of it, in the words of the report.
pub fn state(server: &OrderedServerProto) -> &'static str {
    match server.admin_state.as_deref() {
        None => "not known",
        Some("NORMAL") => "in service",
        Some("DECOMMISSION_INPROGRESS") => "being decommissioned",
        Some("DECOMMISSIONED") => "decommissioned",
        Some("ENTERING_MAINTENANCE") => "entering maintenance",
        Some("IN_MAINTENANCE") => "in maintenance",
        Some(_) => "in a state that this program does not know",
    }
}

/// Whether the group knows a server at this place, and has not heard of it for long.
pub fn is_dead(server: &OrderedServerProto) -> bool {
    server.uuid.is_some() && !server.is_alive()
}

/// For a dead server that was ordered out of service for good.
pub fn dead_text(address: &str) -> String {
    format!(
        "{address} is dead. Unless it was said before that it may be switched off, keep its disks until `clover fsck /` finds no missing block."
    )
}

/// Whether no block of the group needs the server, so that it may be switched off for what was ordered. The group does not say so of a dead
/// server: nothing is known of what it alone may have.
pub fn may_be_off(server: &OrderedServerProto, wish: Wish) -> bool {
    let state = server.admin_state();
    match wish {
        Wish::Decommission | Wish::Maintenance if !server.is_alive() => false,
        Wish::Decommission => state == "DECOMMISSIONED",
        Wish::Maintenance => state == "IN_MAINTENANCE" || state == "DECOMMISSIONED",
        Wish::InService => true,
    }
}
