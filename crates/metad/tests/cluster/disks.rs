//! The disks of members, and the directories on them.

use super::{Cluster, failing_disk::FailingDisk};
use env::Env;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

impl Cluster {
    /// The disk of a member, in all of its lives.
    pub fn disk_of(&self, member: u32) -> FailingDisk {
        self.disks[&member].clone()
    }

    /// The world of a member, with its disk.
    pub fn env_of(&self, member: u32) -> Env {
        Env { disk: Arc::new(self.disk_of(member)), ..(self.world_of)(member).0 }
    }

    /// The directory in which a member keeps its log and its images.
    pub fn store(&self, member: u32) -> PathBuf {
        metad::format::Layout::of(&self.name_directory(member), base::GroupId::ROOT).store
    }

    /// The names of what was put aside in a member's store.
    pub fn set_aside(&self, member: u32) -> Vec<String> {
        let names = std::fs::read_dir(self.store(member)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("set-aside")).collect()
    }

    /// Takes a copy of a member's directory; [`Cluster::put_back`] puts it in its place.
    pub fn keep(&self, member: u32) {
        copy(&self.name_directory(member), &self.kept(member));
    }

    /// The member's directory is what it was when [`Cluster::keep`] was called.
    pub fn put_back(&self, member: u32) {
        self.lose(member);
        std::fs::rename(self.kept(member), self.name_directory(member)).unwrap();
    }

    /// The member's directory is gone, if there is one.
    pub fn lose(&self, member: u32) {
        match std::fs::remove_dir_all(self.name_directory(member)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            _ => {}
        }
    }

    fn kept(&self, member: u32) -> PathBuf {
        self.name_directory(member).with_extension("kept")
    }
}

/// Copies a directory and all below it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
