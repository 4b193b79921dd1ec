//! Random calls have the same answers where two groups hold the files as where one does.

mod cluster;

use base::GroupId;
use cluster::{Cluster, Plan, files::create_request, mkdirs_request, refusal};
use proto::{hdfs as p, protocol};
use rpc::{CallError, Client};
use std::{fmt::Debug, time::Duration};

/// Stories; with 300 it was played once.
const ROUNDS: u64 = 4;
const CALLS: u64 = 250;
const HOLDER: &str = "DFSClient_random_1";

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn path(&mut self) -> String {
        let depth = 1 + self.below(3);
        (0..depth).map(|_| format!("/{}", ["a", "b", "c", "d"][self.below(4) as usize])).collect()
    }
}

#[derive(Clone, Debug)]
enum Request {
    Mkdirs(String, bool),
    Create {
        path: String,
        overwrite: bool,
        parents: bool,
    },
    /// Is created and closed.
    File(String),
    Close(String),
    Delete(String, bool),
    Rename(String, String),
    Rename2(String, String, bool),
    SetPermission(String, u32),
    SetOwner(String, &'static str),
    SetTimes(String),
    SetReplication(String),
    Status(String),
    List(String),
    Batched(Vec<String>),
    /// Is refused, since no file has blocks here.
    Concat(String, Vec<String>),
    Sum(String),
    Usage(String),
}

fn some_request(dice: &mut Dice) -> Request {
    let (path, other) = (dice.path(), dice.path());
    let coin = dice.below(2) == 0;
    match dice.below(38) {
        0..4 => Request::Mkdirs(path, coin),
        4..8 => Request::Create { path, overwrite: dice.below(3) == 0, parents: coin },
        8 => Request::Close(path),
        9..11 => Request::Delete(path, coin),
        11..14 => Request::Rename(path, other),
        14..16 => Request::Rename2(path, other, coin),
        16 => Request::SetPermission(path, [0o700, 0o755, 0o777, 0o1777, 0o555][dice.below(5) as usize]),
        17 => Request::SetOwner(path, ["bob", "ann"][dice.below(2) as usize]),
        18 => Request::SetTimes(path),
        19 => Request::SetReplication(path),
        20..22 => Request::Status(path),
        22 => Request::Sum(path),
        23 => Request::Usage(path),
        27..31 => Request::File(path),
        31..33 => Request::Rename2(path, other, true),
        33..35 => Request::Batched(vec![path, other, dice.path(), dice.path()]),
        35..37 => Request::Concat(path, vec![other, dice.path()]),
        _ => Request::List(path),
    }
}

/// The answer, without what is different in each tree: ids and times.
async fn answer(client: &Client, request: &Request) -> String {
    match request {
        Request::Mkdirs(path, create_parent) => {
            let request = p::MkdirsRequestProto { create_parent: *create_parent, ..mkdirs_request(path) };
            told(client.call::<_, p::MkdirsResponseProto>("mkdirs", &request).await.map(|it| it.result))
        }
        Request::Create { path, overwrite, parents } => {
            let flag = if *overwrite { 3 } else { 1 };
            let request = p::CreateRequestProto {
                create_flag: flag,
                create_parent: *parents,
                ..create_request(path, HOLDER)
            };
            told(client.call::<_, p::CreateResponseProto>("create", &request).await.map(|it| shown(it.fs)))
        }
        Request::File(path) => {
            let made: Result<p::CreateResponseProto, _> =
                client.call("create", &create_request(path, HOLDER)).await;
            if let Ok(Some(file)) = made.as_ref().map(|made| made.fs.as_ref().and_then(|fs| fs.file_id)) {
                let request = p::CompleteRequestProto {
                    src: path.clone(),
                    client_name: HOLDER.into(),
                    last: None,
                    file_id: Some(file),
                };
                let _: p::CompleteResponseProto = client.call("complete", &request).await.unwrap();
            }
            told(made.map(|it| shown(it.fs)))
        }
        Request::Close(path) => {
            let request = p::CompleteRequestProto {
                src: path.clone(),
                client_name: HOLDER.into(),
                last: None,
                file_id: None,
            };
            let answer: Result<p::CompleteResponseProto, _> = client.call("complete", &request).await;
            // The text names the file's id.
            answer.map_or_else(|error| refusal(Err::<(), _>(error)).0, |answer| answer.result.to_string())
        }
        Request::Delete(path, recursive) => {
            let request = p::DeleteRequestProto { src: path.clone(), recursive: *recursive };
            told(client.call::<_, p::DeleteResponseProto>("delete", &request).await.map(|it| it.result))
        }
        Request::Rename(from, to) => {
            let request = p::RenameRequestProto { src: from.clone(), dst: to.clone() };
            told(client.call::<_, p::RenameResponseProto>("rename", &request).await.map(|it| it.result))
        }
        Request::Rename2(from, to, overwrite) => {
            let request = p::Rename2RequestProto {
                src: from.clone(),
                dst: to.clone(),
                overwrite_dest: *overwrite,
                move_to_trash: None,
            };
            told(client.call::<_, p::Rename2ResponseProto>("rename2", &request).await.map(|_| ()))
        }
        Request::SetPermission(path, perm) => {
            let permission = p::FsPermissionProto { perm: *perm };
            let request = p::SetPermissionRequestProto { src: path.clone(), permission };
            told(client.call::<_, p::SetPermissionResponseProto>("setPermission", &request).await.map(|_| ()))
        }
        Request::SetOwner(path, user) => {
            let request = p::SetOwnerRequestProto {
                src: path.clone(),
                username: Some((*user).into()),
                groupname: None,
            };
            told(client.call::<_, p::SetOwnerResponseProto>("setOwner", &request).await.map(|_| ()))
        }
        Request::SetTimes(path) => {
            let request = p::SetTimesRequestProto { src: path.clone(), mtime: 7_000, atime: u64::MAX };
            told(client.call::<_, p::SetTimesResponseProto>("setTimes", &request).await.map(|_| ()))
        }
        Request::SetReplication(path) => {
            let request = p::SetReplicationRequestProto { src: path.clone(), replication: 2 };
            told(
                client
                    .call::<_, p::SetReplicationResponseProto>("setReplication", &request)
                    .await
                    .map(|it| it.result),
            )
        }
        Request::Status(path) => {
            let request = p::GetFileInfoRequestProto { src: path.clone() };
            told(
                client
                    .call::<_, p::GetFileInfoResponseProto>("getFileInfo", &request)
                    .await
                    .map(|it| shown(it.fs)),
            )
        }
        Request::List(path) => told(list(client, path).await),
        Request::Concat(target, sources) => {
            let request = p::ConcatRequestProto { trg: target.clone(), srcs: sources.clone() };
            told(client.call::<_, p::ConcatResponseProto>("concat", &request).await)
        }
        Request::Batched(paths) => {
            let request = p::GetBatchedListingRequestProto { paths: paths.clone(), ..Default::default() };
            let answer: Result<p::GetBatchedListingResponseProto, _> =
                client.call("getBatchedListing", &request).await;
            told(answer.map(|answer| {
                let shown = |listing: p::BatchedDirectoryListingProto| {
                    let entries: Vec<_> =
                        listing.partial_listing.into_iter().map(|fs| shown(Some(fs))).collect();
                    (listing.parent_idx, entries, listing.exception)
                };
                let listings: Vec<_> = answer.listings.into_iter().map(shown).collect();
                (listings, answer.has_more, answer.start_after)
            }))
        }
        Request::Sum(path) => {
            let request = p::GetContentSummaryRequestProto { path: path.clone() };
            let answer: Result<p::GetContentSummaryResponseProto, _> =
                client.call("getContentSummary", &request).await;
            told(answer)
        }
        Request::Usage(path) => {
            let request = p::GetQuotaUsageRequestProto { path: path.clone() };
            told(client.call::<_, p::GetQuotaUsageResponseProto>("getQuotaUsage", &request).await)
        }
    }
}

async fn list(client: &Client, path: &str) -> Result<Option<Vec<String>>, CallError> {
    let request = p::GetListingRequestProto {
        src: path.into(),
        start_after: b"".to_vec().into(),
        need_location: false,
    };
    let answer: p::GetListingResponseProto = client.call("getListing", &request).await?;
    let shown = |fs| shown(Some(fs)).expect("it is there");
    Ok(answer.dir_list.map(|list| list.partial_listing.into_iter().map(shown).collect()))
}

fn shown(fs: Option<p::HdfsFileStatusProto>) -> Option<String> {
    fs.map(|fs| {
        let name = String::from_utf8_lossy(&fs.path).into_owned();
        let replication = fs.block_replication;
        format!("{name} {} {:o} {} {} {replication:?}", fs.file_type, fs.permission.perm, fs.owner, fs.group)
    })
}

fn told<T: Debug>(answer: Result<T, CallError>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => match refusal(Err::<(), _>(error)) {
            // Only its home knows the file that a sticky bit protects.
            (class, text) if text.contains("by sticky bit") => class,
            refusal => format!("{refusal:?}"),
        },
    }
}

/// Everything in the tree, as a walk from the root shows it.
async fn walk(client: &Client) -> Vec<String> {
    let (mut stack, mut seen) = (vec!["/".to_owned()], Vec::new());
    while let Some(path) = stack.pop() {
        let listed = list(client, &path).await.unwrap().unwrap_or_else(|| panic!("{path} is listed above"));
        for line in listed {
            let (name, rest) = line.split_once(' ').unwrap();
            let child = format!("{}/{name}", path.trim_end_matches('/'));
            if rest.starts_with('1') {
                stack.push(child.clone());
            }
            seen.push(format!("{child} {rest}"));
        }
    }
    seen.sort();
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_calls_have_the_same_answers_with_two_groups_as_with_one() {
    let (mut between, mut calls) = (0, 0);
    for seed in 0..ROUNDS {
        let one = Cluster::alone().await;
        let (first, active) = Cluster::in_sync(1).await;
        let (second, _) = Plan::further_group(&first, GroupId(2), 11, 1).await.in_sync().await;
        first.give_slots(active, GroupId(2)).await;
        let mut dice = Dice(seed);
        for number in 0..CALLS {
            let request = some_request(&mut dice);
            let user = [cluster::SUPERUSER, cluster::SUPERUSER, "bob"][dice.below(3) as usize];
            let door = if dice.below(2) == 0 { (&first, 1) } else { (&second, 11) };
            let client = |at: &Cluster, member| at.client_as(member, protocol::CLIENT_NAMENODE, user);
            let mut with_two = answer(&client(door.0, door.1), &request).await;
            for _ in 0..100 {
                if !with_two.contains("RetriableException") {
                    break;
                }
                // Stock clients come again.
                tokio::time::sleep(Duration::from_millis(20)).await;
                with_two = answer(&client(door.0, door.1), &request).await;
            }
            if with_two.contains("cannot be renamed into a directory of another group") {
                between += 1;
                continue;
            }
            let with_one = answer(&client(&one, 1), &request).await;
            // Only its home knows more of a file in another directory.
            let is_far = with_two.contains("is not in the same directory with the target");
            if is_far && matches!(request, Request::Concat(..)) && with_one.contains("Exception") {
                continue;
            }
            assert_eq!(with_two, with_one, "seed {seed}, call {number} of {user} at {}: {request:?}", door.1);
            calls += 1;
        }
        let (left, right) = (walk(&one.client(1)).await, walk(&second.client(11)).await);
        assert_eq!(left, right, "seed {seed}");
        assert_eq!(walk(&first.client(1)).await, right, "seed {seed}: by another door");
        one.end().await;
        second.end().await;
        first.end().await;
    }
    assert!(between < calls / 10, "{between} files were open, {calls} calls were compared");
}
