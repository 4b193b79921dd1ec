//! What random histories have found, as stories.

use super::cluster::{
    files::{client_at, create_request, numbered, repeated},
    two::{ELEVENTH, Two},
};
use base::ClientId;
use proto::hdfs as p;
use rpc::CallError;

/// The group that has made a file answers for that when the call is repeated, though others have moved the directory since: by its path, another group decides the call
/// now, and would refuse it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_is_not_refused_that_was_made_before_its_directory_moved() {
    let two = Two::start(1, "/h").await;
    for (home, member) in [(0, 1), (1, ELEVENTH)] {
        let servers = if home == 0 { &two.first } else { &two.second };
        let away = &two.homes[1 - home];
        let client = client_at(servers.address(member), ClientId([home as u8 + 1; 16]));
        // In a directory of the one home, in a directory of the other one.
        let (from, to) = (&two.homes[home], format!("{away}/moved"));
        let request = p::CreateRequestProto {
            create_parent: false,
            ..create_request(&format!("{from}/f"), "DFSClient_found_1")
        };
        let made: p::CreateResponseProto = client.call_as(numbered(1), "create", &request).await.unwrap();
        let rename = p::Rename2RequestProto {
            src: from.clone(),
            dst: to.clone(),
            overwrite_dest: false,
            move_to_trash: None,
        };
        let _: p::Rename2ResponseProto = client.call_as(numbered(2), "rename2", &rename).await.unwrap();
        two.wait_until_same().await;
        let again: Result<p::CreateResponseProto, CallError> =
            client.call_as(repeated(1), "create", &request).await;
        let id = |answer: p::CreateResponseProto| answer.fs.and_then(|fs| fs.file_id);
        assert_eq!(id(again.unwrap()), id(made));
        // Back again.
        let back = p::Rename2RequestProto { src: to, dst: from.clone(), ..rename };
        let _: p::Rename2ResponseProto = client.call_as(numbered(3), "rename2", &back).await.unwrap();
    }
    two.end().await;
}
