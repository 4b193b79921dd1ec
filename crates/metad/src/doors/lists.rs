//! Lists over all groups, a page at a time, put together from the pages of each.

use base::GroupId;
use bytes::Bytes;
use prost::{DecodeError, Message};
use proto::hdfs as p;
use std::collections::BTreeMap;

/// The answers to the parts of a call, by group.
pub type Parts = BTreeMap<GroupId, Bytes>;

/// Files in one page of HDFS's `listCorruptFileBlocks`: a group whose page is full may have more.
const CORRUPT_PAGE: usize = 500;

/// The files that are being written, in the order of their ids. A group that has more has told all up to its last one, so the page ends with the
/// lowest of these.
pub fn open_files(parts: Parts) -> Result<Bytes, DecodeError> {
    let mut all = p::ListOpenFilesResponseProto::default();
    let mut end = i64::MAX;
    for part in parts.into_values() {
        let part = p::ListOpenFilesResponseProto::decode(part)?;
        if part.has_more {
            all.has_more = true;
            end = end.min(part.entries.last().map_or(i64::MAX, |entry| entry.id));
        }
        all.entries.extend(part.entries);
        all.types = part.types;
    }
    all.entries.retain(|entry| entry.id <= end);
    all.entries.sort_by_key(|entry| entry.id);
    Ok(all.encode_to_vec().into())
}

/// The files that have lost a block. The cookie is the last block that was looked at, and the blocks of one group have higher ids than those of the groups
/// before it: so one cookie is enough for all groups, and the page ends with the first group that may have more.
pub fn corrupt_files(parts: Parts) -> Result<Bytes, DecodeError> {
    let mut all = p::CorruptFileBlocksProto::default();
    for part in parts.into_values() {
        let part = p::ListCorruptFileBlocksResponseProto::decode(part)?.corrupt;
        let is_full = part.files.len() >= CORRUPT_PAGE;
        // A group that has no blocks behind the cookie gives it back.
        let looked_at = |cookie: &str| cookie.parse::<u64>().unwrap_or(0);
        if looked_at(&part.cookie) >= looked_at(&all.cookie) {
            all.cookie = part.cookie;
        }
        all.files.extend(part.files);
        if is_full {
            break;
        }
    }
    Ok(p::ListCorruptFileBlocksResponseProto { corrupt: all }.encode_to_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<M: Message>(answers: impl IntoIterator<Item = M>) -> Parts {
        (1..).map(GroupId).zip(answers.into_iter().map(|answer| answer.encode_to_vec().into())).collect()
    }

    fn open(ids: &[i64], has_more: bool) -> p::ListOpenFilesResponseProto {
        let entry = |id: &i64| p::OpenFilesBatchResponseProto { id: *id, ..Default::default() };
        p::ListOpenFilesResponseProto {
            entries: ids.iter().map(entry).collect(),
            has_more,
            types: Vec::new(),
        }
    }

    #[test]
    fn a_page_of_open_files_ends_where_a_group_may_have_more() {
        let page = |answers: Vec<p::ListOpenFilesResponseProto>| {
            let page = p::ListOpenFilesResponseProto::decode(open_files(parts(answers)).unwrap()).unwrap();
            (page.entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), page.has_more)
        };
        assert_eq!(page(vec![open(&[1, 9], false), open(&[4], false)]), (vec![1, 4, 9], false));
        // Between 4 and 9 the second group may have others.
        assert_eq!(page(vec![open(&[1, 9], false), open(&[2, 4], true)]), (vec![1, 2, 4], true));
        assert_eq!(page(vec![open(&[1, 3], true), open(&[2, 4], true)]), (vec![1, 2, 3], true));
        assert_eq!(page(vec![open(&[], false), open(&[], false)]), (vec![], false));
    }

    #[test]
    fn lost_blocks_are_listed_group_by_group_behind_one_cookie() {
        let part = |count: usize, cookie: u64| p::ListCorruptFileBlocksResponseProto {
            corrupt: p::CorruptFileBlocksProto {
                files: (0..count).map(|number| format!("/{cookie}-{number}")).collect(),
                cookie: cookie.to_string(),
            },
        };
        let page = |answers: Vec<p::ListCorruptFileBlocksResponseProto>| {
            let merged = corrupt_files(parts(answers)).unwrap();
            let page = p::ListCorruptFileBlocksResponseProto::decode(merged).unwrap().corrupt;
            (page.files.len(), page.cookie)
        };
        let of_second = (1 << 52) + 5;
        assert_eq!(page(vec![part(2, 7), part(3, of_second)]), (5, of_second.to_string()));
        assert_eq!(page(vec![part(CORRUPT_PAGE, 7), part(3, of_second)]), (CORRUPT_PAGE, "7".to_owned()));
        // The first group has nothing more, and gives the cookie back that it was asked with.
        assert_eq!(page(vec![part(0, of_second), part(0, of_second)]), (0, of_second.to_string()));
    }
}
