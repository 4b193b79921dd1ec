//! The hot paths of the servers, as plain functions that do a fixed amount of work.
//!
//! `make instructions` has Valgrind count the instructions of each, and holds the counts against
//! `tests/instructions/record.tsv`. Seconds differ from machine to machine and from minute to minute. Instructions do not, so that
//! a change that makes a path five per cent longer is seen at once.
//!
//! Each path is prepared first, which is not counted: [`tree::Tree`], [`report::Report`], [`read::Block`]. The tests show that a path
//! does what its name says.

pub mod read;
pub mod report;
pub mod tree;
