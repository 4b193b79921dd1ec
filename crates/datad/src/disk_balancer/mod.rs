//! Replicas move between the volumes of this server until its disks are equally full: Hadoop's disk balancer.
//!
//! A plan says how many bytes go from which volume to which ([`plan`]). An operator's command has made it from the volumes' figures.
//! One plan runs at a time, on a thread of its own, at the rate that it asks for. Each replica is copied, checked and switched by
//! [`blockstore::PoolStore::move_to_volume`]; the metadata servers are told as of any move. After a restart no plan runs:
//! a new one is made of what is left.
//!
//! [`book`] has the plan that runs and its progress; [`run`] carries it out.

pub mod book;
pub mod plan;
pub mod run;
