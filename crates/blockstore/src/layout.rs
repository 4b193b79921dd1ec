//! The places of files in a data directory. The names are Hadoop's, to the letter:
//!
//! ```text
//! DIR/in_use.lock
//! DIR/current/VERSION
//! DIR/current/BP-…/current/VERSION
//! DIR/current/BP-…/current/finalized/subdirX/subdirY/blk_N, blk_N_GS.meta
//! DIR/current/BP-…/current/rbw/blk_N, blk_N_GS.meta        being written
//! DIR/current/BP-…/tmp/blk_N, blk_N_GS.meta                being copied; emptied at start
//! ```
//!
//! X is bits 16-20 of the block id, Y bits 8-12 (layout -57: 32 by 32 directories).

use base::{Block, BlockId, GenerationStamp};
use std::path::{Path, PathBuf};

/// The data layout that this crate reads and writes. Lower numbers are newer layouts.
pub const LAYOUT_VERSION: i64 = -57;

/// Directories at each of the two levels below `finalized`.
pub const SUBDIRECTORY_COUNT: u64 = 32;

pub const LOCK_FILE: &str = "in_use.lock";
pub const VERSION_FILE: &str = "VERSION";
pub const POOL_PREFIX: &str = "BP-";
pub const BLOCK_PREFIX: &str = "blk_";
const META_SUFFIX: &str = ".meta";

/// The part of the directory in which a replica's two files lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Finalized,
    BeingWritten,
    Temporary,
}

/// The paths of one data directory.
#[derive(Clone, Debug)]
pub struct VolumePaths {
    pub root: PathBuf,
}

impl VolumePaths {
    pub fn lock(&self) -> PathBuf {
        self.root.join(LOCK_FILE)
    }

    pub fn current(&self) -> PathBuf {
        self.root.join("current")
    }

    pub fn version(&self) -> PathBuf {
        self.current().join(VERSION_FILE)
    }

    pub fn pool(&self, pool: &str) -> PoolPaths {
        PoolPaths { root: self.current().join(pool) }
    }
}

/// The paths of one pool in one data directory.
#[derive(Clone, Debug)]
pub struct PoolPaths {
    pub root: PathBuf,
}

impl PoolPaths {
    pub fn current(&self) -> PathBuf {
        self.root.join("current")
    }

    pub fn version(&self) -> PathBuf {
        self.current().join(VERSION_FILE)
    }

    pub fn finalized(&self) -> PathBuf {
        self.current().join("finalized")
    }

    /// The root of a place; replicas lie right in it, but for finalized ones.
    pub fn place(&self, place: Place) -> PathBuf {
        match place {
            Place::Finalized => self.finalized(),
            Place::BeingWritten => self.current().join("rbw"),
            Place::Temporary => self.root.join("tmp"),
        }
    }

    /// The directory of a replica's two files.
    pub fn directory(&self, place: Place, id: BlockId) -> PathBuf {
        match place {
            Place::Finalized => {
                let (first, second) = subdirectories(id);
                self.finalized().join(format!("subdir{first}")).join(format!("subdir{second}"))
            }
            Place::BeingWritten | Place::Temporary => self.place(place),
        }
    }

    pub fn block(&self, place: Place, id: BlockId) -> PathBuf {
        self.directory(place, id).join(block_name(id))
    }

    pub fn meta(&self, place: Place, id: BlockId, stamp: GenerationStamp) -> PathBuf {
        self.directory(place, id).join(meta_name(id, stamp))
    }
}

pub fn subdirectories(id: BlockId) -> (u64, u64) {
    ((id.0 >> 16) & (SUBDIRECTORY_COUNT - 1), (id.0 >> 8) & (SUBDIRECTORY_COUNT - 1))
}

/// Ids are signed in names: very old clusters drew them at random.
pub fn block_name(id: BlockId) -> String {
    format!("{BLOCK_PREFIX}{}", id.0 as i64)
}

pub fn meta_name(id: BlockId, stamp: GenerationStamp) -> String {
    format!("{BLOCK_PREFIX}{}_{stamp}{META_SUFFIX}", id.0 as i64)
}

/// The meaning of a file name in a replica directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    Block(BlockId),
    /// The block that a meta file belongs to; its `length` is 0.
    Meta(Block),
}

impl FileName {
    /// The block that the file belongs to.
    pub fn id(self) -> BlockId {
        match self {
            Self::Block(id) => id,
            Self::Meta(block) => block.id,
        }
    }
}

/// `None` for files that are not a replica's.
pub fn parse_name(name: &str) -> Option<FileName> {
    let rest = name.strip_prefix(BLOCK_PREFIX)?;
    match rest.strip_suffix(META_SUFFIX) {
        None => Some(FileName::Block(parse_id(rest)?)),
        Some(rest) => {
            let (id, stamp) = rest.rsplit_once('_')?;
            let generation_stamp = GenerationStamp(stamp.parse().ok()?);
            Some(FileName::Meta(Block { id: parse_id(id)?, generation_stamp, length: 0 }))
        }
    }
}

fn parse_id(digits: &str) -> Option<BlockId> {
    Some(BlockId(digits.parse::<i64>().ok()? as u64))
}

/// Whether a pool id is one name of one directory: it comes from the network and becomes part of paths.
pub fn is_pool_name(pool: &str) -> bool {
    pool.starts_with(POOL_PREFIX)
        && pool.len() <= 255
        && !pool.contains(['/', '\0'])
        && Path::new(pool).iter().count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hadoops() {
        let pool = VolumePaths { root: "/d".into() }.pool("BP-1-127.0.0.1-2");
        let id = BlockId(1_073_741_825 + (3 << 16) + (33 << 8));
        assert_eq!(
            pool.meta(Place::Finalized, id, GenerationStamp(1001)).to_str().unwrap(),
            "/d/current/BP-1-127.0.0.1-2/current/finalized/subdir3/subdir1/blk_1073946881_1001.meta"
        );
        assert_eq!(
            pool.block(Place::BeingWritten, id).to_str().unwrap(),
            "/d/current/BP-1-127.0.0.1-2/current/rbw/blk_1073946881"
        );
        assert_eq!(
            pool.block(Place::Temporary, BlockId(-5i64 as u64)).to_str().unwrap(),
            "/d/current/BP-1-127.0.0.1-2/tmp/blk_-5"
        );
    }

    #[test]
    fn names_are_read_back() {
        let id = BlockId(-12i64 as u64);
        let stamp = GenerationStamp(1001);
        assert_eq!(parse_name(&block_name(id)), Some(FileName::Block(id)));
        assert_eq!(
            parse_name(&meta_name(id, stamp)),
            Some(FileName::Meta(Block { id, generation_stamp: stamp, length: 0 }))
        );
        for other in
            ["blk_", "blk_x", "blk_1.meta", "blk_1_x.meta", "VERSION", "blk_1_2", "blk_99999999999999999999"]
        {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_pool_name_stays_in_its_directory() {
        assert!(is_pool_name("BP-1-127.0.0.1-2"));
        for bad in ["", "..", "BP-/../..", "/BP-1", "BP-1/x", "x"] {
            assert!(!is_pool_name(bad), "{bad}");
        }
    }
}
