//! What a call of `ClientProtocol` is about, by its bytes: the paths, the file, the block. Servers choose by that which group answers the call.

use crate::{
    fields::Fields,
    methods::{Method, Paths},
};

/// See the module's documentation. What cannot be read of the request is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The paths, in the order in which [`Paths`] tells of them. For `concat`: the target, and behind it the sources.
    pub paths: Vec<String>,
    /// The id of the file that is being written, from clients that tell it.
    pub file: Option<u64>,
    /// The first block.
    pub block: Option<u64>,
    /// Directories that are missing on the way are to be made.
    pub makes_parents: bool,
}

/// What a call of this method is about.
pub fn subject(method: &Method, request: &[u8]) -> Subject {
    let fields = Fields::of(request);
    let one = |number| fields.text(number).into_iter().collect();
    let paths = match method.paths {
        Paths::None => Vec::new(),
        Paths::One | Paths::Snapshot | Paths::TwoSnapshots => one(1),
        Paths::Second => one(2),
        Paths::Many => fields.texts(1),
        Paths::Two => fields.text(1).into_iter().chain(fields.text(2)).collect(),
        Paths::Concat => fields.text(1).into_iter().chain(fields.texts(2)).collect(),
    };
    let file = match method.name {
        "addBlock" => fields.number(5),
        "abandonBlock" | "complete" | "fsync" => fields.number(4),
        "getAdditionalDatanode" => fields.number(8),
        _ => None,
    };
    let block = match method.name {
        "updateBlockForPipeline" => block_in(request, 1),
        "updatePipeline" => block_in(request, 2),
        // A block stands in field 1 of each place.
        "reportBadBlocks" => Fields::messages(request, 1).first().and_then(|place| block_in(place, 1)),
        _ => None,
    };
    let makes_parents = match method.name {
        "create" => fields.is_set(5),
        "mkdirs" => fields.is_set(3),
        _ => false,
    };
    // Clients of before the ids of files say 0.
    Subject { paths, file: file.filter(|id| *id != 0), block, makes_parents }
}

/// The id of the block in a field: field 2 of an `ExtendedBlockProto`.
fn block_in(message: &[u8], field: u32) -> Option<u64> {
    Fields::messages(message, field).into_iter().rev().find_map(|block| Fields::of(block).number(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hdfs as p, methods};
    use prost::Message;

    fn of(method: &str, request: &impl Message) -> Subject {
        subject(methods::method(method).unwrap(), &request.encode_to_vec())
    }

    fn block(id: u64) -> p::ExtendedBlockProto {
        p::ExtendedBlockProto {
            pool_id: "BP-1".into(),
            block_id: id,
            generation_stamp: 7,
            num_bytes: Some(9),
        }
    }

    #[test]
    fn paths_files_and_blocks_are_found_where_each_request_has_them() {
        let rename = p::RenameRequestProto { src: "/a".into(), dst: "/b".into() };
        assert_eq!(of("rename", &rename).paths, ["/a", "/b"]);
        let concat = p::ConcatRequestProto { trg: "/t".into(), srcs: vec!["/a".into(), "/b".into()] };
        assert_eq!(of("concat", &concat).paths, ["/t", "/a", "/b"]);
        let add = p::AddBlockRequestProto {
            src: "/f".into(),
            client_name: "c".into(),
            file_id: Some(77),
            ..p::AddBlockRequestProto::default()
        };
        let added = of("addBlock", &add);
        assert_eq!((added.paths, added.file), (vec!["/f".to_owned()], Some(77)));
        let fsync = p::FsyncRequestProto {
            src: "/f".into(),
            client: "c".into(),
            last_block_length: None,
            file_id: Some(0),
        };
        assert_eq!(of("fsync", &fsync).file, None);
        let abandon = p::AbandonBlockRequestProto {
            b: block(5),
            src: "/f".into(),
            holder: "c".into(),
            file_id: Some(3),
        };
        let abandoned = of("abandonBlock", &abandon);
        assert_eq!((abandoned.paths, abandoned.file), (vec!["/f".to_owned()], Some(3)));
        let update = p::UpdateBlockForPipelineRequestProto { block: block(11), client_name: "c".into() };
        assert_eq!(of("updateBlockForPipeline", &update).block, Some(11));
        let bad = p::ReportBadBlocksRequestProto {
            blocks: vec![p::LocatedBlockProto { b: block(12), ..p::LocatedBlockProto::default() }],
        };
        assert_eq!(of("reportBadBlocks", &bad).block, Some(12));
        let create = p::CreateRequestProto {
            src: "/x/f".into(),
            create_parent: true,
            ..p::CreateRequestProto::default()
        };
        let created = of("create", &create);
        assert_eq!((created.paths, created.makes_parents), (vec!["/x/f".to_owned()], true));
        let complete = p::CompleteRequestProto {
            src: "/f".into(),
            client_name: "c".into(),
            last: None,
            file_id: Some(8),
        };
        assert_eq!(of("complete", &complete).file, Some(8));
    }

    /// A client chooses its bytes. The group that answers a call must be chosen by what is carried out then.
    #[test]
    fn a_request_is_about_what_its_decoder_finds_in_it() {
        let twice = |one: Vec<u8>, other: Vec<u8>| [one, other].concat();
        let subject_of = |method: &str, bytes: &[u8]| subject(methods::method(method).unwrap(), bytes);

        let delete = |path: &str| p::DeleteRequestProto { src: path.into(), recursive: true }.encode_to_vec();
        let bytes = twice(delete("/one"), delete("/other"));
        let decoded = p::DeleteRequestProto::decode(&bytes[..]).unwrap();
        assert_eq!(subject_of("delete", &bytes).paths, [decoded.src]);

        let create = p::CreateRequestProto { src: "/x/f".into(), ..p::CreateRequestProto::default() };
        // Field 5, the number 2.
        let bytes = twice(create.encode_to_vec(), vec![5 << 3, 2]);
        assert!(p::CreateRequestProto::decode(&bytes[..]).unwrap().create_parent);
        assert!(subject_of("create", &bytes).makes_parents);

        let add = |file| {
            p::AddBlockRequestProto { file_id: Some(file), ..p::AddBlockRequestProto::default() }
                .encode_to_vec()
        };
        assert_eq!(subject_of("addBlock", &twice(add(7), add(8))).file, Some(8));

        let update = |id| {
            p::UpdateBlockForPipelineRequestProto { block: block(id), client_name: "c".into() }
                .encode_to_vec()
        };
        let bytes = twice(update(11), update(12));
        let decoded = p::UpdateBlockForPipelineRequestProto::decode(&bytes[..]).unwrap();
        assert_eq!(subject_of("updateBlockForPipeline", &bytes).block, Some(decoded.block.block_id));
        // A block in two parts, of which the second says nothing about the id.
        let bytes = twice(update(11), vec![1 << 3 | 2, 2, 3 << 3, 9]);
        let decoded = p::UpdateBlockForPipelineRequestProto::decode(&bytes[..]).unwrap();
        assert_eq!(subject_of("updateBlockForPipeline", &bytes).block, Some(decoded.block.block_id));
    }

    #[test]
    fn what_is_no_message_is_about_nothing() {
        let method = methods::method("addBlock").unwrap();
        assert_eq!(subject(method, b"\xff\xff\xff"), Subject::default());
    }
}
