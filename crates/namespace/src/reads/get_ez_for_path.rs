//! The encryption zone of a path: none, since there are no zones.

use super::check_access::check_if_there;
use crate::{access::READ, readable::readable};

/// HDFS wants to be allowed to read the path, and does not mind if there is nothing there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! { Request => (), (path) "getEZForPath", |ns, ctx, req| check_if_there(ns, ctx, &req.path, READ) }
