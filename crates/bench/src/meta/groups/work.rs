//! The calls on the directories of known homes.

use crate::meta::{
    Op, mix, requests,
    workload::{self, Calls},
};
use bytes::BytesMut;

/// The work in some directories. Operations go round them.
#[derive(Clone, Debug)]
pub struct Work {
    pub op: Op,
    /// The first part of its files' names.
    stem: String,
    /// A directory, and the one to which files are renamed from there.
    pub places: Vec<(String, String)>,
    /// Files that were made before, for operations that go round them.
    pub files: u64,
}

impl Work {
    /// Renames stay within these directories.
    pub fn within(op: Op, directories: &[String], files: u64) -> Self {
        let listed: Vec<String>;
        let directories = match op {
            // Those that hold nothing but what the list is to show.
            Op::List => {
                listed = directories.iter().map(|directory| format!("{directory}/listed")).collect();
                &listed
            }
            _ => directories,
        };
        let next = directories.iter().cycle().skip(1);
        let places = directories.iter().zip(next).map(|(from, to)| (from.clone(), to.clone())).collect();
        Self { op, stem: op.name(), places, files }
    }

    /// Renames go from a directory of each home to one of the next home.
    pub fn across(op: Op, homes: &[&[String]], files: u64) -> Self {
        let next = homes.iter().cycle().skip(1);
        let pairs = homes.iter().zip(next).flat_map(|(from, to)| from.iter().zip(to.iter()));
        let places = pairs.map(|(from, to)| (from.clone(), to.clone())).collect();
        Self { op, stem: op.name(), places, files }
    }

    /// The work that makes the files of this one.
    pub fn preparation(&self) -> Option<Self> {
        match self.op {
            Op::Open | Op::Stat | Op::List | Op::Rename | Op::RenameAcross | Op::Delete | Op::Mix => {
                Some(self.making())
            }
            Op::Null | Op::Create | Op::Touch | Op::Mkdir => None,
        }
    }

    pub fn making(&self) -> Self {
        Self { op: Op::Touch, ..self.clone() }
    }

    fn file(&self, index: u64) -> String {
        format!("{}/{}-{index}", self.place(index).0, self.stem)
    }

    fn place(&self, index: u64) -> &(String, String) {
        &self.places[(index % self.places.len() as u64) as usize]
    }

    /// Files go to and fro, so that there is always one to rename.
    fn renamed(&self, index: u64) -> (String, String) {
        let (file, turn) = (index % self.files, index / self.files);
        let here = self.file(file);
        let there = format!("{}/{}-{file}-moved", self.place(file).1, self.stem);
        if turn.is_multiple_of(2) { (here, there) } else { (there, here) }
    }
}

impl Calls for Work {
    fn asks_for_yes(&self, index: u64) -> bool {
        self.op.asks_for_yes(index)
    }

    fn put(&self, out: &mut BytesMut, index: u64, step: u32, client: &str) -> Option<&'static str> {
        match (self.op, step) {
            (Op::Stat, 0) => {
                requests::named(out, "getFileInfo", &requests::stat(self.file(index % self.files)))
            }
            (Op::Open, 0) => {
                requests::named(out, "getBlockLocations", &requests::open(self.file(index % self.files)))
            }
            (Op::List, 0) => requests::named(out, "getListing", &requests::list(self.place(index).0.clone())),
            (Op::Mix, 0) => mix::put(out, index, self, client),
            (Op::Rename | Op::RenameAcross, 0) => {
                let (from, to) = self.renamed(index);
                requests::named(out, "rename", &requests::rename(from, to))
            }
            (op, step) => workload::on_new_file(out, op, step, || self.file(index), client),
        }
    }
}

impl mix::Names for Work {
    fn file(&self, index: u64) -> String {
        self.file(index % self.files)
    }

    fn made(&self, number: u64) -> String {
        format!("{}/{}-made-{number}", self.place(number).0, self.stem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(home: &str) -> Vec<String> {
        (0..3).map(|number| format!("/{home}{number}")).collect()
    }

    #[test]
    fn files_go_to_another_directory_of_their_home_and_back() {
        let work = Work::within(Op::Rename, &directories("a"), 10);
        assert_eq!(work.renamed(4), ("/a1/rename-4".into(), "/a2/rename-4-moved".into()));
        assert_eq!(work.renamed(14), ("/a2/rename-4-moved".into(), "/a1/rename-4".into()));
        assert_eq!(work.renamed(24), work.renamed(4));
        assert_eq!(work.renamed(2).1, "/a0/rename-2-moved");
    }

    #[test]
    fn files_go_from_each_home_to_another() {
        let (a, b) = (directories("a"), directories("b"));
        let work = Work::across(Op::RenameAcross, &[&a, &b], 12);
        assert_eq!(work.renamed(1), ("/a1/rename-across-1".into(), "/b1/rename-across-1-moved".into()));
        assert_eq!(work.renamed(4), ("/b1/rename-across-4".into(), "/a1/rename-across-4-moved".into()));
    }

    #[test]
    fn a_file_is_made_where_it_is_used() {
        let work = Work::within(Op::Delete, &directories("a"), 10);
        assert_eq!(work.preparation().map(|making| making.file(5)), Some("/a2/delete-5".into()));
        assert!(Work::within(Op::Mkdir, &directories("a"), 10).preparation().is_none());
    }
}
