//! Stores that the disk has changed, in a group of three: nothing is given up that somebody still has.

mod cluster;

use cluster::{Cluster, Plan, page, until};
use journal::record::{HEADER_BYTES, Header};
use proto::clover::admin as p;
use std::{collections::BTreeMap, path::PathBuf};

/// The place of each record of a member's log, by its sn: file, offset and length in bytes.
fn records(cluster: &Cluster, member: u32) -> BTreeMap<u64, (PathBuf, usize, usize)> {
    let log = cluster.store(member).join("log");
    let mut found = BTreeMap::new();
    for path in std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = std::fs::read(&path).unwrap();
        for at in (4096..bytes.len().saturating_sub(HEADER_BYTES)).step_by(8) {
            if let Some(header) = Header::decode(&bytes[at..]) {
                found.insert(header.id.sn.0, (path.clone(), at, header.record_bytes()));
            }
        }
    }
    found
}

/// Changes one bit of the payload of a record.
fn flip(cluster: &Cluster, member: u32, sn: u64) {
    let (path, at, bytes) = records(cluster, member).remove(&sn).expect("the log has this entry");
    let mut content = std::fs::read(&path).unwrap();
    content[at + (HEADER_BYTES + bytes) / 2] ^= 0x10;
    std::fs::write(&path, content).unwrap();
}

fn generation(cluster: &Cluster, member: u32) -> u64 {
    journal::survey::survey(&*env::Env::production().disk, &cluster.store(member)).unwrap().state.generation
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_by_key(|name| name.parse::<u32>().unwrap());
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_logs_damaged_in_different_places_lose_nothing() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    for number in 0..40 {
        cluster.mkdirs(first, &format!("/kept/{number}")).await;
    }
    cluster.wait_until_equal().await;
    cluster.kill_all().await;
    // Two good copies of every record are left.
    for (member, sn) in [(1, 8), (2, 15), (3, 22)] {
        flip(&cluster, member, sn);
    }
    let generations: Vec<u64> = (1..=3).map(|member| generation(&cluster, member)).collect();

    cluster.restart_together(&[1, 2, 3]).await;
    let active = cluster.wait_for_active(&[]).await;
    let names = sorted(cluster.names(active, "/kept").await);
    assert_eq!(names, (0..40).map(|number| number.to_string()).collect::<Vec<_>>());
    cluster.wait_in_sync(active, 3).await;
    cluster.mkdirs(active, "/more").await;
    cluster.wait_until_equal().await;
    let after: Vec<u64> = (1..=3).map(|member| generation(&cluster, member)).collect();
    assert_eq!(after, generations, "no store was given up");
    cluster.end().await;
}

/// The port has the pages of a start, then those of a repair, and in the end the server's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_damaged_member_tells_on_its_http_port_what_it_lacks_and_then_comes_up() {
    let pages = cluster::free_address();
    let plan = Plan::group(3).adjusted(move |member, config| {
        config.http_address = (member == 1).then_some(pages);
    });
    let (mut cluster, first) = plan.in_sync().await;
    for number in 0..10 {
        cluster.mkdirs(first, &format!("/kept/{number}")).await;
    }
    cluster.wait_until_equal().await;
    cluster.kill_all().await;
    flip(&cluster, 1, 8);

    let mut starting = cluster.begin_together(&[1]);
    until("the damaged member says so", async || {
        let told = page(pages, "/health").await.unwrap_or_default();
        told.starts_with("HTTP/1.1 503") && told.contains("\"state\":\"damaged\"")
    })
    .await;
    starting.extend(cluster.begin_together(&[2, 3]));
    for member in 1..=3 {
        cluster.await_start(&mut starting, member).await;
    }
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 3).await;
    let told = page(pages, "/health").await.unwrap();
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_log_whose_last_entry_has_rotted_goes_on_with_the_others_and_takes_no_lead_alone() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    for number in 0..10 {
        cluster.mkdirs(first, &format!("/kept/{number}")).await;
    }
    cluster.wait_until_equal().await;
    cluster.kill_all().await;
    // The last entry of one, and one before it of each of the others.
    let last = *records(&cluster, 1).keys().next_back().unwrap();
    for (member, sn) in [(1, last), (2, last - 1), (3, last - 2)] {
        flip(&cluster, member, sn);
    }
    cluster.restart_together(&[1, 2, 3]).await;
    let active = cluster.wait_for_active(&[]).await;
    let names = sorted(cluster.names(active, "/kept").await);
    assert_eq!(names, (0..10).map(|number| number.to_string()).collect::<Vec<_>>());
    cluster.wait_in_sync(active, 3).await;
    cluster.wait_until_equal().await;
    assert_eq!((1..=3).map(|member| generation(&cluster, member)).collect::<Vec<_>>(), [0, 0, 0]);
    cluster.end().await;
}

/// Asks a member whose server is not up yet.
fn admin(address: &str) -> rpc::Client {
    rpc::Client::connect(address.to_owned(), proto::protocol::ADMIN, "alice", rpc::ClientOptions::default())
}

/// The answer of a damaged member about itself, once it satisfies `is_it`.
async fn shown(
    cluster: &Cluster,
    member: u32,
    is_it: impl Fn(&p::MemberProto) -> bool,
) -> p::GetGroupResponseProto {
    let mut found = None;
    until("the member says so", async || {
        let address = cluster.told_address(member);
        let shown: Result<p::GetGroupResponseProto, _> =
            admin(&address).call("getGroup", &p::GetGroupRequestProto { is_local: Some(true) }).await;
        let is_so = |shown: &p::GetGroupResponseProto| {
            shown.members.iter().any(|one| one.member == member && is_it(one))
        };
        found = shown.ok().filter(is_so);
        found.is_some()
    })
    .await;
    found.expect("it was seen")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_entry_that_no_log_has_is_waited_for_by_name_until_an_operator_gives_it_up() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    for number in 0..20 {
        cluster.mkdirs(first, &format!("/kept/{number}")).await;
    }
    cluster.wait_until_equal().await;
    cluster.kill_all().await;
    const LOST: u64 = 12;
    for member in 1..=3 {
        flip(&cluster, member, LOST);
    }
    let mut starting = cluster.begin_together(&[1, 2, 3]);
    let is_lost = |one: &p::MemberProto| {
        let reason = one.reason();
        one.role() == p::RoleProto::Repairing
            && reason.contains(&format!("entry {LOST} cannot be read"))
            && reason.contains("no member has them, and all have answered")
    };
    let mut view = None;
    for member in 1..=3 {
        view = shown(&cluster, member, is_lost).await.view;
    }
    // The member that was stopped last is still among the complete ones, although its store is damaged.
    let view = view.unwrap();
    let complete: Vec<u32> = view.in_sync.iter().chain(&view.exiles).map(|store| store.member).collect();
    let (elected, others) = (complete[0], complete[1..].to_vec());
    assert!(!others.is_empty(), "{view:?}");

    // Only by order, with all that it costs said before.
    let address = cluster.told_address(elected);
    let order = |i_accept_loss, off: &[u32]| p::UncleanElectRequestProto {
        i_accept_loss: Some(i_accept_loss),
        off: off.to_vec(),
    };
    let by_name: Result<p::UncleanElectResponseProto, _> =
        admin(&address).call("uncleanElect", &order(true, &others)).await;
    assert!(by_name.unwrap_err().to_string().contains("needs a proof of the cluster's secret"));
    let asked: p::UncleanElectResponseProto =
        cluster.order_at(address.clone(), elected, "uncleanElect", &order(false, &[])).await.unwrap();
    assert!(asked.message().contains("can be read up to sn 11") && !asked.is_done(), "{asked:?}");
    let refused: Result<p::UncleanElectResponseProto, _> =
        cluster.order_at(address.clone(), elected, "uncleanElect", &order(true, &others[1..])).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains(&format!("members {} may hold everything", others[0])), "{refused}");
    let done: p::UncleanElectResponseProto =
        cluster.order_at(address.clone(), elected, "uncleanElect", &order(true, &others)).await.unwrap();
    assert!(done.is_done() && done.message().contains("Give the same order again"), "{done:?}");
    cluster.await_start(&mut starting, elected).await;
    cluster.elect(elected).await;

    // The others follow with what is left of theirs.
    for member in cluster.others(elected) {
        cluster.await_start(&mut starting, member).await;
    }
    cluster.tend_until("it serves", |cluster| cluster.replica(elected).is_serving()).await;
    let names = sorted(cluster.names(elected, "/kept").await);
    // The first entry is that of the epoch, the second makes /kept and /kept/0 at once.
    assert_eq!(names, (0..LOST as u32 - 2).map(|number| number.to_string()).collect::<Vec<_>>());
    cluster.mkdirs(elected, "/more").await;
    let in_sync = |cluster: &Cluster| Some(cluster.replica(elected).status().view?.0.in_sync.len());
    cluster.tend_until("all are in sync", |cluster| in_sync(cluster) >= Some(3)).await;
    cluster.wait_until_equal().await;
    cluster.end().await;
}
