//! The places of blocks, in both forms, and checksums.

use super::{named, signed};
use client::FileChecksum;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use proto::common::TokenProto;
use proto::hdfs::{
    DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto, LocatedBlocksProto, StorageTypeProto,
};
use serde_json::{Value, json};

/// Bytes of a checksum: two figures and an MD5.
const CHECKSUM_BYTES: usize = 28;

/// The value of `LocatedBlocks`.
pub fn located_blocks(located: &LocatedBlocksProto) -> Value {
    let blocks: Vec<_> = located.blocks.iter().map(located_block).collect();
    named(
        "LocatedBlocks",
        json!({
            "fileLength": signed(located.file_length),
            "isLastBlockComplete": located.is_last_block_complete,
            "isUnderConstruction": located.under_construction,
            "lastLocatedBlock": located.last_block.as_ref().map(located_block),
            "locatedBlocks": blocks,
        }),
    )
}

fn located_block(located: &LocatedBlockProto) -> Value {
    let cached = located.locs.iter().zip(&located.is_cached).filter(|(_, is_cached)| **is_cached);
    json!({
        "block": block(&located.b),
        "blockToken": { "urlString": token(&located.block_token) },
        "cachedLocations": cached.map(|(server, _)| data_server(server)).collect::<Vec<_>>(),
        "isCorrupt": located.corrupt,
        "locations": located.locs.iter().map(data_server).collect::<Vec<_>>(),
        "startOffset": signed(located.offset),
        "storageTypes": media(located),
    })
}

fn block(block: &ExtendedBlockProto) -> Value {
    json!({
        "blockId": signed(block.block_id),
        "blockPoolId": block.pool_id,
        "generationStamp": signed(block.generation_stamp),
        "numBytes": signed(block.num_bytes()),
    })
}

fn media(located: &LocatedBlockProto) -> Vec<&'static str> {
    located.storage_types().map(|medium: StorageTypeProto| medium.as_str_name()).collect()
}

fn transfer_address(server: &DatanodeInfoProto) -> String {
    format!("{}:{}", server.id.ip_addr, server.id.xfer_port)
}

fn data_server(server: &DatanodeInfoProto) -> Value {
    let id = &server.id;
    let mut value = json!({
        "adminState": server.admin_state().as_str_name(),
        "blockPoolUsed": signed(server.block_pool_used()),
        "cacheCapacity": signed(server.cache_capacity()),
        "cacheUsed": signed(server.cache_used()),
        "capacity": signed(server.capacity()),
        "dfsUsed": signed(server.dfs_used()),
        "hostName": id.host_name,
        "infoPort": id.info_port,
        "infoSecurePort": id.info_secure_port(),
        "ipAddr": id.ip_addr,
        "ipcPort": id.ipc_port,
        "lastBlockReportMonotonic": signed(server.last_block_report_monotonic()),
        "lastBlockReportTime": signed(server.last_block_report_time()),
        "lastUpdate": signed(server.last_update()),
        "lastUpdateMonotonic": signed(server.last_update_monotonic()),
        "name": transfer_address(server),
        "networkLocation": server.location(),
        "remaining": signed(server.remaining()),
        "storageID": id.datanode_uuid,
        "xceiverCount": server.xceiver_count(),
        "xferPort": id.xfer_port,
    });
    if let Some(domain) = &server.upgrade_domain {
        value["upgradeDomain"] = json!(domain);
    }
    value
}

/// The value of `BlockLocations`, which Hadoop's `FileSystem` knows by that name.
pub fn block_locations(located: &LocatedBlocksProto) -> Value {
    let block = |located: &LocatedBlockProto| {
        let each = |tell: fn(&DatanodeInfoProto) -> String| located.locs.iter().map(tell).collect::<Vec<_>>();
        let cached = located.locs.iter().zip(&located.is_cached).filter(|(_, is_cached)| **is_cached);
        json!({
            "cachedHosts": cached.map(|(server, _)| server.id.host_name.clone()).collect::<Vec<_>>(),
            "corrupt": located.corrupt,
            "hosts": each(|server| server.id.host_name.clone()),
            "length": signed(located.b.num_bytes()),
            "names": each(transfer_address),
            "offset": signed(located.offset),
            "storageTypes": media(located),
            "topologyPaths": each(|server| format!("{}/{}", server.location(), transfer_address(server))),
        })
    };
    // Java's client asks for the ranges of whole blocks, that of a block being written among them.
    let being_written = located.last_block.as_ref().filter(|last| {
        located.under_construction && !located.blocks.iter().any(|known| known.offset == last.offset)
    });
    let blocks: Vec<_> = located.blocks.iter().chain(being_written).map(block).collect();
    named("BlockLocations", json!({ "BlockLocation": blocks }))
}

/// A token as Hadoop writes it into a URL: its four parts, each behind its length, in base64 for URLs.
fn token(token: &TokenProto) -> String {
    let parts: [&[u8]; 4] =
        [&token.identifier, &token.password, token.kind.as_bytes(), token.service.as_bytes()];
    let mut bytes = Vec::new();
    for part in parts {
        length_into(&mut bytes, part.len());
        bytes.extend_from_slice(part);
    }
    BASE64URL_NOPAD.encode(&bytes)
}

/// Java's `WritableUtils.writeVInt` for a number that is not below 0.
fn length_into(bytes: &mut Vec<u8>, length: usize) {
    if length <= 127 {
        return bytes.push(length as u8);
    }
    let digits = (length as u64).to_be_bytes();
    let count = digits.iter().skip_while(|digit| **digit == 0).count();
    bytes.push((-112 - count as i8) as u8);
    bytes.extend(&digits[digits.len() - count..]);
}

pub fn file_checksum(checksum: &FileChecksum) -> Value {
    let bytes = HEXLOWER.encode(&checksum.bytes());
    named(
        "FileChecksum",
        json!({ "algorithm": checksum.algorithm(), "bytes": bytes, "length": CHECKSUM_BYTES }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn an_empty_token_is_hadoops() {
        let empty = TokenProto { identifier: Bytes::new(), password: Bytes::new(), ..Default::default() };
        assert_eq!(token(&empty), "AAAAAA");
        let long = TokenProto { identifier: vec![0; 300].into(), ..empty };
        // -114 and two bytes.
        assert!(token(&long).starts_with("jgEs"), "{}", token(&long));
    }
}
