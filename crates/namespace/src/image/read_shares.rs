//! Reads the section about the quotas that several groups share.

use super::{
    SHARES_VERSION, Section,
    read::{Image, Result},
};
use crate::{
    codec::{Field, Reader},
    shares::Share,
};
use base::InodeId;

/// More than the shares of as many groups as there can be take.
const SHARE_BYTES_LIMIT: u64 = 1 << 16;

impl Image<'_> {
    /// Some of the directories may come later, with what only snapshots have.
    pub(super) fn shares(&mut self) -> Result<()> {
        self.section = Section::Shares;
        let version = self.byte()?;
        if version != SHARES_VERSION {
            return Err(self.malformed(format!("version {version} is not known; {SHARES_VERSION} is")));
        }
        let mut last = InodeId(0);
        for _ in 0..self.number()? {
            let id = InodeId(self.below(InodeId::LIMIT, "inode id")?);
            if id <= last {
                return Err(self.malformed(format!("inode {id} comes after inode {last}")));
            }
            last = id;
            let mut bytes = Vec::new();
            for _ in 0..self.below(SHARE_BYTES_LIMIT, "length of a share")? {
                bytes.push(self.byte()?);
            }
            let mut input = Reader::new(&bytes);
            let share = Share::decode(&mut input).and_then(|share| input.finish().map(|()| share));
            let share = share.map_err(|error| self.malformed(format!("the share of inode {id}: {error}")))?;
            self.shares.push((id, share));
        }
        Ok(())
    }

    /// To be called once the quotas are attached.
    pub(super) fn attach_shares(&mut self) -> Result<()> {
        for (id, share) in std::mem::take(&mut self.shares) {
            if !self.ns.tree.quotas.contains_key(&id) {
                self.section = Section::Shares;
                return Err(self.malformed(format!("inode {id} has no quota that could be shared")));
            }
            self.ns.set_share(id, Some(share));
        }
        Ok(())
    }
}
