//! Two groups in one cluster: each leads itself, and neither is taken for the other. The directories that both hold are told of in
//! `directory_log.rs`, calls from one group to the other in `doors.rs`.

mod cluster;

use base::{GroupId, Level, MemberId};
use cluster::{Cluster, Plan, spoken};
use env::Env;
use metad::{FormatError, GroupConfig};
use proto::{clover::admin as a, protocol};
use rpc::CallError;

const SECOND: GroupId = GroupId(2);
/// The first member of the second group.
const ELEVENTH: u32 = 11;

/// The directory of one more member of a group, made with the coordinator of this cluster.
fn more(of: &Cluster, name: &str, id: GroupId, member: u32) -> (std::path::PathBuf, GroupConfig) {
    let of_member = of.members().next().unwrap();
    let (id, member) = (id, MemberId(member));
    let group = GroupConfig { id, member, members: vec![member], ..of.config(of_member).group };
    (of.beside(name), group)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_group_leads_itself() {
    let (first, active) = Cluster::in_sync(2).await;
    let plan = Plan::further_group(&first, SECOND, ELEVENTH, 3).await;
    let (mut second, active_of_second) = plan.in_sync().await;
    let (of_first, of_second) = (first.group(active).await, second.group(active_of_second).await);
    assert_eq!((of_first.group, of_second.group), (1, 2));
    assert_eq!(of_first.cluster_id, of_second.cluster_id);
    let numbers = |group: &a::GetGroupResponseProto| -> Vec<u32> {
        let mut numbers: Vec<u32> = group.members.iter().map(|member| member.member).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!((numbers(&of_first), numbers(&of_second)), (vec![1, 2], vec![11, 12, 13]));

    // Data servers are told of a pool for each group.
    let pool = async |cluster: &Cluster, member| {
        spoken::version(&cluster.client_as(member, protocol::DATANODE, "hdfs")).await.block_pool_id
    };
    let (pool_of_first, pool_of_second) = (pool(&first, active).await, pool(&second, active_of_second).await);
    assert_ne!(pool_of_first, pool_of_second);
    for other in second.others(active_of_second) {
        assert_eq!(pool(&second, other).await, pool_of_second, "all members of a group name one pool");
    }

    // What befalls one group leaves the other alone.
    let epoch = first.group(active).await.view.unwrap().epoch;
    second.kill(active_of_second).await;
    let next = second.wait_for_active(&[active_of_second]).await;
    first.mkdirs(active, "/goes-on").await;
    assert_eq!(first.group(active).await.view.unwrap().epoch, epoch);
    // It comes back from its own directory, which says of which group it is.
    second.restart(active_of_second).await;
    second.wait_in_sync(next, 3).await;
    second.wait_until_equal().await;
    second.end().await;
    first.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_is_made_once_and_a_member_is_of_one_group() {
    let (first, active) = Cluster::in_sync(2).await;
    let env = Env::production();
    let before = first.fetched_tree().await;
    let (directory, group) = more(&first, "early", SECOND, 11);
    let early = metad::found_group(&env, &directory, &group, &before).unwrap_err();
    assert!(early.to_string().contains("has not added it to the namespace"), "{early}");
    let root = first.tree_with(SECOND).await;
    let found = |name, id, member| {
        let (directory, group) = more(&first, name, id, member);
        metad::found_group(&env, &directory, &group, &root)
    };
    let join = |name, id, member| {
        let (directory, group) = more(&first, name, id, member);
        metad::join(&env, &directory, &group)
    };
    let none = join("none", SECOND, 12);
    assert!(matches!(none, Err(FormatError::NoGroup(SECOND))), "{none:?}");
    for impossible in [GroupId::ROOT, GroupId(0), GroupId(129)] {
        let refused = found("impossible", impossible, 11).unwrap_err();
        assert!(matches!(refused, FormatError::NoFurtherGroup { .. }), "{refused}");
    }
    let taken = found("taken", SECOND, 2).unwrap_err();
    assert!(taken.to_string().starts_with("member 2 belongs to group 1"), "{taken}");

    let made = found("made", SECOND, 11).unwrap();
    assert_eq!((made.group, made.first_level), (SECOND, Level::NEWEST));
    let read = metad::read_cluster(&env, &first.beside("made")).unwrap();
    assert_eq!((read.group, read.block_pool), (SECOND, made.block_pool));
    let again = found("again", SECOND, 12).unwrap_err();
    assert!(again.to_string().contains("has this group already"), "{again}");
    let joined = join("joined", SECOND, 12).unwrap();
    assert_eq!(joined.group, SECOND);

    // Neither a new directory nor an order takes a number from another group.
    let taken = join("taken", SECOND, 1).unwrap_err();
    assert!(
        matches!(taken, FormatError::MemberTaken { member: MemberId(1), group: GroupId::ROOT }),
        "{taken}"
    );
    let request = a::AddMemberRequestProto { member: 11, in_sync_min: None };
    let order: Result<a::AddMemberResponseProto, CallError> =
        first.order(active, "addMember", &request).await;
    let said = order.unwrap_err().to_string();
    assert!(said.contains("member 11 belongs to group 2"), "{said}");
    first.end().await;
}

/// Older releases do not know what the root group would write for a further group.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_root_group_of_an_older_level_takes_no_further_group_before_it_is_raised() {
    let (first, active) = Plan::group(2).at_level(Level::NOTED_ANSWERS).in_sync().await;
    let request = a::AddGroupRequestProto { group: 2 };
    let answer: Result<a::AddGroupResponseProto, CallError> = first.order(active, "addGroup", &request).await;
    let said = answer.unwrap_err().to_string();
    assert!(said.contains("is at level 3") && said.contains("clover admin upgrade finalize"), "{said}");
    let raise = a::RaiseLevelRequestProto { is_confirmed: Some(true), level: None };
    let _: a::RaiseLevelResponseProto = first.order(active, "raiseLevel", &raise).await.unwrap();
    first.mkdirs(active, "/a").await;
    let plan = Plan::further_group(&first, SECOND, ELEVENTH, 2).await;
    let (second, active_of_second) = plan.in_sync().await;
    let level = second.replica(active_of_second).status().view.unwrap().0.level;
    assert_eq!(level, Level::NEWEST, "it begins at the level of the root group");
    second.end().await;
    first.end().await;
}
