//! The refusals of a server in safe mode.

use crate::partition::Partition;
use ::blocks::BlockMap;
use base::FsResult;
use namespace::FileBlock;
use serving::admission::SafeMode;

/// Refuses when nothing may be changed. `what` is the beginning of Hadoop's sentence, "Cannot delete /x".
pub fn refuse_in_safe_mode(partition: &Partition, what: impl FnOnce() -> String) -> FsResult<()> {
    let blocks = partition.blocks.lock();
    match blocks.in_safe_mode() {
        false => Ok(()),
        true => Err(safe_mode(partition, &blocks).refuse(&what())),
    }
}

/// Refuses to say where `blocks` are while safe mode is on and no replica of one of them was reported.
pub fn refuse_unknown_places(partition: &Partition, path: &str, blocks: &[FileBlock]) -> FsResult<()> {
    let map = partition.blocks.lock();
    // Other groups know where the blocks of their pools are.
    let mut own = blocks.iter().filter(|it| partition.other_group_of(it.block.id).is_none());
    if !map.in_safe_mode() || own.all(|it| map.has_place(it.block.id)) {
        return Ok(());
    }
    Err(safe_mode(partition, &map).refuse_places(path))
}

fn safe_mode(partition: &Partition, blocks: &BlockMap) -> SafeMode {
    SafeMode {
        is_of_start: blocks.in_safe_mode_of_start(),
        tip: blocks.safe_mode_message(partition.moment()),
        host: partition.config.host_name(),
        is_alone: partition.is_alone(),
    }
}
