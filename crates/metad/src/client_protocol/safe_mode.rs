//! The refusals of a server in safe mode.

use crate::partition::Partition;
use ::blocks::BlockMap;
use base::{FsError, FsResult};
use namespace::FileBlock;

/// Refuses when nothing may be changed. `what` is the beginning of Hadoop's sentence, "Cannot delete /x".
pub fn refuse_in_safe_mode(partition: &Partition, what: impl FnOnce() -> String) -> FsResult<()> {
    let blocks = partition.blocks.lock();
    if !blocks.in_safe_mode() {
        return Ok(());
    }
    // As HDFS does with several NameNodes: a member that has just started and was made the active at once soon has
    // its reports, and no call is to fail meanwhile.
    Err(in_safe_mode(partition, &blocks, &what(), blocks.in_safe_mode_of_start()))
}

/// Refuses to say where `blocks` are while safe mode is on and no replica of one of them was reported: a reader that
/// is told of no place gives up on the file, though it is whole. In a group the reader is to ask again, even if an
/// operator has turned safe mode on, as in HDFS.
pub fn refuse_unknown_places(partition: &Partition, path: &str, blocks: &[FileBlock]) -> FsResult<()> {
    let map = partition.blocks.lock();
    if !map.in_safe_mode() || blocks.iter().all(|it| map.has_place(it.block.id)) {
        return Ok(());
    }
    Err(in_safe_mode(partition, &map, &format!("Zero blocklocations for {path}"), true))
}

/// HDFS's sentence. Where there are several members, a client whose patience is asked for tries again.
fn in_safe_mode(partition: &Partition, blocks: &BlockMap, what: &str, ask_for_patience: bool) -> FsError {
    let tip = blocks.safe_mode_message(partition.moment());
    let host = partition.config.host_name();
    let text = format!("{what}. Name node is in safe mode.\n{tip} NamenodeHostName:{host}");
    match ask_for_patience && partition.member.peer_address().is_some() {
        true => FsError::Retry(format!("{}: {text}", proto::exception::SAFE_MODE)),
        false => FsError::SafeMode(text),
    }
}
