use super::{
    Appended, BatchedListing, BatchedPage, FileStatus, Listing, LocatedBlock, LocatedBlocks, Many, Only,
    Place, Put, SnapshotStatus, SnapshottableDirectory, WithLocations, Writer, encoded,
};
use crate::{
    common::TokenProto,
    hdfs::{self as p, StorageTypeProto, datanode_info_proto::AdminState, hdfs_file_status_proto::FileType},
};
use bytes::Bytes;
use proptest::{collection::vec, option, prelude::*};
use prost::Message;

/// The hand-written encoding is, byte for byte, that of the generated code.
fn assert_same<M: Message + Default + PartialEq + std::fmt::Debug>(written: &[u8], generated: &M) {
    assert_eq!(&M::decode(written).expect("it can be read"), generated);
    assert_eq!(written, generated.encode_to_vec(), "the same message in other bytes");
}

/// Numbers of all lengths: as many small as large.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift)
}

fn short() -> impl Strategy<Value = u32> {
    number().prop_map(|number| number as u32)
}

/// Texts short and long, of any characters: lengths from either side of what one byte of length can say.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z]{1,12}", "\\PC{0,40}", "[ -~é本🦀]{20,255}"]
}

/// The name of a file is bytes, whether or not they are text.
fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![text().prop_map(String::into_bytes), vec(any::<u8>(), 0..256)]
}

prop_compose! {
    fn status()(
        (is_directory, has_acl, snapshot_enabled) in any::<(bool, bool, bool)>(),
        path in name(),
        (length, modification_time, access_time, blocksize, file_id) in
            (number(), number(), number(), number(), number()),
        (permission, replication, storage_policy, children) in
            (0..0o2000u32, any::<u16>(), any::<u8>(), any::<u32>()),
        (owner, group) in (text(), text()),
    ) -> p::HdfsFileStatusProto {
        p::HdfsFileStatusProto {
            file_type: if is_directory { FileType::IsDir } else { FileType::IsFile } as i32,
            path: path.into(),
            length,
            permission: p::FsPermissionProto { perm: permission },
            owner,
            group,
            modification_time,
            access_time,
            symlink: None,
            block_replication: Some(replication.into()),
            blocksize: Some(blocksize),
            locations: None,
            file_id: Some(file_id),
            children_num: Some(children as i32),
            file_encryption_info: None,
            storage_policy: Some(storage_policy.into()),
            ec_policy: None,
            flags: Some(u32::from(has_acl) | u32::from(snapshot_enabled) << 3),
            namespace: None,
        }
    }
}

prop_compose! {
    fn server()(
        (ip_addr, host_name, datanode_uuid, rack, software_version) in (text(), text(), text(), text(), text()),
        ports in any::<[u16; 4]>(),
        numbers in [number(), number(), number(), number(), number(), number(), number()],
        (xceivers, blocks) in (short(), short()),
    ) -> p::DatanodeInfoProto {
        let [xfer_port, info_port, ipc_port, info_secure_port] = ports.map(u32::from);
        p::DatanodeInfoProto {
            id: p::DatanodeIdProto {
                ip_addr,
                host_name,
                datanode_uuid,
                xfer_port,
                info_port,
                ipc_port,
                info_secure_port: Some(info_secure_port),
            },
            capacity: Some(numbers[0]),
            dfs_used: Some(numbers[1]),
            remaining: Some(numbers[2]),
            block_pool_used: Some(numbers[3]),
            last_update: None,
            xceiver_count: Some(xceivers),
            location: Some(rack),
            non_dfs_used: Some(numbers[4]),
            admin_state: Some(AdminState::Normal as i32),
            cache_capacity: Some(numbers[5]),
            cache_used: Some(numbers[6]),
            last_update_monotonic: None,
            upgrade_domain: None,
            last_block_report_time: None,
            last_block_report_monotonic: None,
            num_blocks: Some(blocks),
            software_version: Some(software_version),
        }
    }
}

prop_compose! {
    fn block()(
        (pool_id, corrupt) in (text(), any::<bool>()),
        (block_id, generation_stamp, length, offset) in (number(), number(), number(), number()),
        places in vec((server(), 1..7i32, text()), 0..5),
    ) -> p::LocatedBlockProto {
        let count = places.len();
        let mut block = p::LocatedBlockProto {
            b: p::ExtendedBlockProto { pool_id, block_id, generation_stamp, num_bytes: Some(length) },
            offset,
            locs: Vec::new(),
            corrupt,
            block_token: TokenProto::default(),
            is_cached: vec![false; count],
            storage_types: Vec::new(),
            storage_i_ds: Vec::new(),
            block_indices: None,
            block_tokens: Vec::new(),
        };
        for (server, kind, storage) in places {
            block.locs.push(server);
            block.storage_types.push(kind);
            block.storage_i_ds.push(storage);
        }
        block
    }
}

prop_compose! {
    fn blocks()(
        (file_length, under_construction, is_last_block_complete) in (number(), any::<bool>(), any::<bool>()),
        blocks in vec(block(), 0..4),
        last_block in option::of(block()),
    ) -> p::LocatedBlocksProto {
        p::LocatedBlocksProto {
            file_length,
            blocks,
            under_construction,
            last_block,
            is_last_block_complete,
            file_encryption_info: None,
            ec_policy: None,
        }
    }
}

/// A view of the status in this message.
fn status_view(status: &p::HdfsFileStatusProto) -> FileStatus<'_> {
    FileStatus {
        is_directory: status.file_type() == FileType::IsDir,
        path: &status.path,
        length: status.length,
        permission: status.permission.perm as u16,
        owner: &status.owner,
        group: &status.group,
        modified: status.modification_time,
        accessed: status.access_time,
        replication: status.block_replication() as u16,
        block_size: status.blocksize(),
        file_id: status.file_id(),
        children: status.children_num() as u32,
        storage_policy: status.storage_policy() as u8,
        has_acl: status.flags() & 1 != 0,
        snapshot_enabled: status.flags() & 8 != 0,
    }
}

fn block_view(
    block: &p::LocatedBlockProto,
) -> LocatedBlock<'_, impl ExactSizeIterator<Item = Place<'_>> + Clone> {
    let place = |at: usize| {
        let server = &block.locs[at];
        Place {
            ip: &server.id.ip_addr,
            host_name: &server.id.host_name,
            uuid: &server.id.datanode_uuid,
            transfer_port: server.id.xfer_port as u16,
            info_port: server.id.info_port as u16,
            ipc_port: server.id.ipc_port as u16,
            info_secure_port: server.id.info_secure_port() as u16,
            capacity: server.capacity(),
            dfs_used: server.dfs_used(),
            remaining: server.remaining(),
            block_pool_used: server.block_pool_used(),
            xceivers: server.xceiver_count(),
            rack: server.location(),
            non_dfs_used: server.non_dfs_used(),
            cache_capacity: server.cache_capacity(),
            cache_used: server.cache_used(),
            blocks: server.num_blocks(),
            software_version: server.software_version(),
            admin_state: server.admin_state(),
            storage: &block.storage_i_ds[at],
            storage_type: StorageTypeProto::try_from(block.storage_types[at]).unwrap(),
        }
    };
    LocatedBlock {
        pool: &block.b.pool_id,
        id: block.b.block_id,
        generation_stamp: block.b.generation_stamp,
        length: block.b.num_bytes(),
        offset: block.offset,
        corrupt: block.corrupt,
        places: (0..block.locs.len()).map(place),
    }
}

fn blocks_view(blocks: &p::LocatedBlocksProto) -> impl Put {
    LocatedBlocks {
        length: blocks.file_length,
        blocks: blocks.blocks.iter().map(block_view),
        under_construction: blocks.under_construction,
        last: blocks.last_block.as_ref().map(block_view),
        is_last_complete: blocks.is_last_block_complete,
    }
}

fn located_view(status: &p::HdfsFileStatusProto) -> impl Put {
    WithLocations { status: status_view(status), locations: status.locations.as_ref().map(blocks_view) }
}

proptest! {
    #[test]
    fn a_status_is_the_generated_one(fs in option::of(status())) {
        let written = encoded(Only(fs.as_ref().map(status_view)));
        assert_same(&written, &p::GetFileInfoResponseProto { fs });
    }

    #[test]
    fn a_status_with_places_is_the_generated_one(status in status(), locations in option::of(blocks())) {
        let fs = p::HdfsFileStatusProto { locations, ..status };
        let written = encoded(Only(Some(located_view(&fs))));
        assert_same(&written, &p::GetLocatedFileInfoResponseProto { fs: Some(fs) });
    }

    #[test]
    fn blocks_are_the_generated_ones(blocks in blocks()) {
        let written = encoded(Only(Some(blocks_view(&blocks))));
        assert_same(&written, &p::GetBlockLocationsResponseProto { locations: Some(blocks) });
    }

    #[test]
    fn an_opened_file_is_the_generated_one(block in option::of(block()), stat in status()) {
        let written = encoded(Appended { block: block.as_ref().map(block_view), status: status_view(&stat) });
        assert_same(&written, &p::AppendResponseProto { block, stat: Some(stat) });
    }

    #[test]
    fn a_page_is_the_generated_one(statuses in vec(status(), 0..30), remaining in short()) {
        let entries = statuses.iter().map(status_view);
        let written = encoded(Only(Some(Listing { entries, remaining })));
        let listing = p::DirectoryListingProto { partial_listing: statuses, remaining_entries: remaining };
        assert_same(&written, &p::GetListingResponseProto { dir_list: Some(listing) });
    }

    #[test]
    fn many_pages_are_the_generated_ones(
        listings in vec(page(), 0..6),
        has_more in any::<bool>(),
        start_after in name(),
    ) {
        let pages = listings.iter().map(page_view);
        let written = encoded(BatchedListing { pages, has_more, start_after: &start_after });
        let start_after = Bytes::from(start_after);
        assert_same(&written, &p::GetBatchedListingResponseProto { listings, has_more, start_after });
    }

    #[test]
    fn lists_of_snapshots_are_the_generated_ones(
        directories in vec((status(), short(), short(), name()), 0..6),
        snapshots in vec((status(), short(), name(), any::<bool>()), 0..6),
    ) {
        let written = encoded(Only(Some(Many(directories.iter().map(|(status, quota, snapshots, parent)| {
            SnapshottableDirectory { status: status_view(status), quota: *quota, snapshots: *snapshots, parent }
        })))));
        let generated = |(dir_status, snapshot_quota, snapshot_number, parent): (_, _, _, Vec<u8>)| {
            let parent_fullpath = parent.into();
            p::SnapshottableDirectoryStatusProto { dir_status, snapshot_quota, snapshot_number, parent_fullpath }
        };
        let snapshottable_dir_listing = directories.into_iter().map(generated).collect();
        let list = p::SnapshottableDirectoryListingProto { snapshottable_dir_listing };
        let generated = p::GetSnapshottableDirListingResponseProto { snapshottable_dir_list: Some(list) };
        assert_same(&written, &generated);

        let written = encoded(Only(Some(Many(snapshots.iter().map(|(status, id, parent, is_deleted)| {
            SnapshotStatus { status: status_view(status), id: *id, parent, is_deleted: *is_deleted }
        })))));
        let generated = |(dir_status, snapshot_id, parent, is_deleted): (_, _, Vec<u8>, _)| {
            p::SnapshotStatusProto { dir_status, snapshot_id, parent_fullpath: parent.into(), is_deleted }
        };
        let list = p::SnapshotListingProto { snapshot_listing: snapshots.into_iter().map(generated).collect() };
        assert_same(&written, &p::GetSnapshotListingResponseProto { snapshot_list: Some(list) });
    }
}

fn page() -> impl Strategy<Value = p::BatchedDirectoryListingProto> {
    let listed = (vec(status(), 0..8), short()).prop_map(|(partial_listing, parent_idx)| {
        p::BatchedDirectoryListingProto { partial_listing, parent_idx, exception: None }
    });
    let refused = (text(), text(), short()).prop_map(|(class_name, message, parent_idx)| {
        let exception = Some(p::RemoteExceptionProto { class_name, message: Some(message) });
        p::BatchedDirectoryListingProto { partial_listing: Vec::new(), parent_idx, exception }
    });
    prop_oneof![3 => listed, 1 => refused]
}

fn page_view(page: &p::BatchedDirectoryListingProto) -> impl Put {
    let entries = match &page.exception {
        Some(exception) => Err(exception.clone()),
        None => Ok(page.partial_listing.iter().map(status_view)),
    };
    BatchedPage { parent: page.parent_idx, entries }
}

/// A message of one field of bytes, that is wrong about its length.
struct Guess<'a> {
    about: usize,
    bytes: &'a [u8],
}

impl Put for Guess<'_> {
    fn about(&self) -> usize {
        self.about
    }

    fn put(self, out: &mut Writer) {
        out.bytes(1, self.bytes);
    }
}

#[test]
fn a_wrong_guess_of_a_length_changes_nothing() {
    let lengths = [0, 1, 124, 125, 126, 127, 128, 129, 16_380, 16_381, 16_384, 2_097_147, 2_097_152];
    for length in lengths {
        let bytes: Vec<u8> = (0..length).map(|at: usize| at as u8).collect();
        for about in [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152] {
            let mut out = Writer::with_capacity(0);
            out.uint(3, 7);
            out.nested(500, about, |out| {
                out.message(2, Guess { about, bytes: &bytes });
                out.int(3, -1);
            });
            out.bytes(4, b"the end");
            let inner = p::FsPermissionProto { perm: 0 };
            out.generated(5, &inner);

            let mut message = Vec::new();
            prost::encoding::bytes::encode(1, &bytes, &mut message);
            let mut nested = Vec::new();
            prost::encoding::bytes::encode(2, &message, &mut nested);
            prost::encoding::int32::encode(3, &-1, &mut nested);
            let mut expected = Vec::new();
            prost::encoding::uint32::encode(3, &7, &mut expected);
            prost::encoding::bytes::encode(500, &nested, &mut expected);
            prost::encoding::bytes::encode(4, &b"the end".to_vec(), &mut expected);
            prost::encoding::message::encode(5, &inner, &mut expected);
            assert!(out.finish() == expected, "{length} bytes, said to be {about}");
        }
    }
}
