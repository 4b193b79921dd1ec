//! The block map as its driver sees it.

mod balancing;
mod cluster;
mod copying;
mod doubt;
mod findings;
mod forged;
mod hostile_reports;
mod knowing;
mod late_words;
mod leaving;
mod leaving_attacked;
#[cfg(feature = "broken")]
mod left_out;
mod listing;
mod lost_storages;
mod moved;
mod newcomers;
mod newcomers_attacked;
mod ordered;
mod placing;
mod policies;
mod random;
mod random_orders;
mod reconsidered;
mod satisfying;
mod satisfying_attacked;
mod slow;
mod spread;
mod spread_attacked;
mod standby;
mod standing;
mod starting;
mod takeover;
mod unknown;
mod whole_reports;
mod writing;
