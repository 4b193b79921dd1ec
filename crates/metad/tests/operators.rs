//! The answers of a group of three to operators, and to clients that ask a standby.

mod cluster;

use cluster::{Cluster, SUPERUSER, until};
use proto::{
    clover::admin as p,
    common as ha,
    exception::{ACCESS_CONTROL, RETRIABLE, SERVICE_FAILED},
    protocol,
};
use rpc::{CallError, Client};

async fn mkdir(client: &Client, path: &str) -> Result<bool, CallError> {
    cluster::try_mkdirs(client, path).await
}

async fn exists(client: &Client, path: &str) -> bool {
    cluster::exists(client, path).await.unwrap()
}

fn role(group: &p::GetGroupResponseProto, member: u32) -> p::RoleProto {
    group.members.iter().find(|one| one.member == member).expect("every member is listed").role()
}

/// The active, and another.
async fn start() -> (Cluster, u32, u32) {
    let (cluster, active) = Cluster::in_sync(3).await;
    let standby = cluster.others(active)[0];
    (cluster, active, standby)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_shows_the_same_group() {
    let (cluster, active, standby) = start().await;
    for asked in [active, standby] {
        let group = cluster.group(asked).await;
        assert_eq!(group.answered_by, active, "{group:#?}");
        assert_eq!(group.active_unreachable, None);
        assert_eq!(group.is_writable, Some(true));
        let view = group.view.clone().unwrap();
        assert_eq!((view.active, view.in_sync.len(), view.members.len()), (Some(active), 3, 3));
        for member in 1..=3 {
            let expected = if member == active { p::RoleProto::Active } else { p::RoleProto::Standby };
            assert_eq!(role(&group, member), expected, "{member} of {group:#?}");
        }
        assert_eq!(group.takeovers.len(), 1, "{group:#?}");
        assert_eq!(group.takeovers[0].member, Some(active));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_takeovers_of_all_members_are_shown_and_who_cannot_tell_is_named() {
    let (mut cluster, first, _) = start().await;
    let _: p::HandOverResponseProto =
        cluster.order(first, "handOver", &p::HandOverRequestProto::default()).await.unwrap();
    let second = cluster.wait_for_active(&[first]).await;
    let third = (1..=3).find(|member| ![first, second].contains(member)).unwrap();
    let by = |group: &p::GetGroupResponseProto| -> Vec<Option<u32>> {
        group.takeovers.iter().map(|takeover| takeover.member).collect()
    };
    for asked in 1..=3 {
        let shown = cluster.group(asked).await;
        assert_eq!((by(&shown), &shown.silent), (vec![Some(first), Some(second)], &vec![]), "{shown:#?}");
    }
    // The standbys have heard of both elections from the member that led.
    wait_until_all_know(&cluster, 2).await;
    cluster.stop(first).await;
    let shown = cluster.group(third).await;
    assert_eq!((by(&shown), &shown.silent), (vec![Some(first), Some(second)], &vec![first]), "{shown:#?}");

    // And after a restart of all, one of them with a damaged record.
    let before = shown.takeovers;
    for member in [second, third] {
        cluster.kill(member).await;
    }
    std::fs::write(cluster.name_directory(third).join("takeovers"), "rotten").unwrap();
    for member in [second, third] {
        cluster.restart(member).await;
    }
    let next = cluster.wait_for_active(&[]).await;
    wait_until_all_know(&cluster, 3).await;
    for asked in [second, third] {
        let shown = cluster.group(asked).await;
        assert_eq!(shown.takeovers[..2], before, "with all their stages and times");
        assert_eq!(shown.takeovers.last().unwrap().member, Some(next));
    }
}

/// Each member of those that run has heard of so many takeovers, those of others too.
async fn wait_until_all_know(cluster: &Cluster, count: usize) {
    for member in cluster.running() {
        let client = cluster.client_as(member, protocol::ADMIN, "anybody");
        let only_it = p::GetGroupRequestProto { is_local: Some(true) };
        until("the member knows of them", async || {
            let told: p::GetGroupResponseProto = client.call("getGroup", &only_it).await.unwrap();
            told.takeovers.len() >= count
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_a_standby_write_and_read_as_if_it_led_and_go_on_after_a_switch() {
    let (mut cluster, active, standby) = start().await;
    let client = cluster.client(standby);
    mkdir(&client, "/a").await.unwrap();
    assert!(exists(&client, "/a").await);
    let refused = cluster.client_as(standby, protocol::CLIENT_NAMENODE, "bob");
    let error = mkdir(&refused, "/not-bobs").await.unwrap_err();
    assert_eq!(error.class(), Some(ACCESS_CONTROL), "{error}");
    assert!(error.to_string().contains("user=bob"), "{error}");

    // The active ends without a word; a call sent meanwhile waits and is answered.
    let answer: p::FailActiveResponseProto =
        cluster.order(standby, "failActive", &p::FailActiveRequestProto::default()).await.unwrap();
    assert_eq!(answer.failed, Some(active));
    let ended = cluster.server(active).ended().await;
    assert!(matches!(ended, metad::Ended::Restart(_)), "{ended:?}");
    let writing = tokio::spawn({
        let client = client.clone();
        async move {
            for number in 0..20 {
                assert!(mkdir(&client, &format!("/b{number}")).await.unwrap());
            }
        }
    });
    cluster.stop(active).await;
    writing.await.unwrap();
    let next = cluster.wait_for_active(&[active]).await;
    for number in 0..20 {
        assert!(exists(&cluster.client(next), &format!("/b{number}")).await);
    }
    let shown = cluster.group(standby).await;
    assert_eq!(shown.takeovers.last().unwrap().member, Some(next), "{shown:#?}");
    assert_ne!(role(&shown, active), p::RoleProto::Active);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_active_without_the_others_reads_by_the_coordinators_word_and_takes_no_changes() {
    let (mut cluster, active, _) = start().await;
    let client = cluster.client(active);
    mkdir(&client, "/before").await.unwrap();
    for member in cluster.others(active) {
        cluster.stop(member).await;
    }
    // The last to leave is an exile: it could be elected, and grants no lease.
    cluster.wait_in_sync(active, 1).await;
    assert!(exists(&client, "/before").await);
    assert!(!exists(&client, "/never").await, "an absence is a statement as well");
    let refused = mkdir(&client, "/after").await.unwrap_err();
    assert_eq!(refused.class(), Some(RETRIABLE), "{refused}");
    assert!(refused.to_string().contains("1 of the 2 copies"), "{refused}");
    let shown = cluster.group(active).await;
    assert_eq!(shown.is_writable, Some(false));
    assert_eq!(shown.answered_by, active);
}

#[tokio::test(flavor = "multi_thread")]
async fn haadmin_sees_states_and_moves_the_active() {
    let (cluster, active, standby) = start().await;
    let status = async |member: u32| -> ha::GetServiceStatusResponseProto {
        let client = cluster.client_as(member, protocol::HA_SERVICE, SUPERUSER);
        client.call("getServiceStatus", &ha::GetServiceStatusRequestProto {}).await.unwrap()
    };
    assert_eq!(status(active).await.state(), ha::HaServiceStateProto::Active);
    let seen = status(standby).await;
    assert_eq!(seen.state(), ha::HaServiceStateProto::Standby);
    assert_eq!((seen.ready_to_become_active, seen.not_ready_reason), (Some(true), None));

    // These are the steps of `haadmin -failover`: one member becomes standby, then the other active.
    let info = || ha::HaStateChangeRequestInfoProto { req_source: ha::HaRequestSource::RequestByUser as i32 };
    let from = cluster.client_as(active, protocol::HA_SERVICE, SUPERUSER);
    let request = ha::TransitionToStandbyRequestProto { req_info: info() };
    let _: ha::TransitionToStandbyResponseProto = from.call("transitionToStandby", &request).await.unwrap();
    assert_eq!(status(active).await.state(), ha::HaServiceStateProto::Standby);
    let to = cluster.client_as(standby, protocol::HA_SERVICE, SUPERUSER);
    let request = ha::TransitionToActiveRequestProto { req_info: info() };
    let _: ha::TransitionToActiveResponseProto = to.call("transitionToActive", &request).await.unwrap();
    assert_eq!(status(standby).await.state(), ha::HaServiceStateProto::Active);

    let stranger = cluster.client_as(standby, protocol::HA_SERVICE, "bob");
    let request = ha::TransitionToStandbyRequestProto { req_info: info() };
    let error = stranger
        .call::<_, ha::TransitionToStandbyResponseProto>("transitionToStandby", &request)
        .await
        .unwrap_err();
    assert_eq!(error.class(), Some(ACCESS_CONTROL), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unclean_election_tells_before_it_does_and_does_nothing_to_a_group_that_lives() {
    let (cluster, active, standby) = start().await;
    let elect = |request: p::UncleanElectRequestProto| {
        let cluster = &cluster;
        async move { cluster.order::<_, p::UncleanElectResponseProto>(standby, "uncleanElect", &request).await }
    };
    let told = elect(p::UncleanElectRequestProto::default()).await.unwrap();
    assert_eq!(told.is_done, Some(false));
    assert!(told.message().contains("lost for ever"), "{}", told.message());

    let accepted = |off: Vec<u32>| p::UncleanElectRequestProto { i_accept_loss: Some(true), off };
    let error = elect(accepted(vec![])).await.unwrap_err();
    assert_eq!(error.class(), Some(SERVICE_FAILED), "{error}");
    assert!(error.to_string().contains("hold everything"), "{error}");
    let all = cluster.others(standby);
    let error = elect(accepted(all)).await.unwrap_err();
    assert_eq!(error.class(), Some(SERVICE_FAILED), "{error}");
    assert_eq!(cluster.wait_for_active(&[]).await, active);
    assert_eq!(cluster.group(active).await.unclean_elections, Some(1), "the order is noted all the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gives_an_order_by_a_name_alone() {
    let (cluster, active, standby) = start().await;
    for member in [active, standby] {
        // Anybody may call itself by the superuser's name.
        let client = cluster.client_as(member, protocol::ADMIN, SUPERUSER);
        let fail = p::FailActiveRequestProto::default();
        let error = client.call::<_, p::FailActiveResponseProto>("failActive", &fail).await.unwrap_err();
        assert_eq!(error.class(), Some(ACCESS_CONTROL), "{error}");
        assert!(
            error.to_string().contains("--secret-file") && error.to_string().contains("--config"),
            "{error}"
        );
        let remove = p::RemoveMemberRequestProto { member: standby, in_sync_min: None };
        let error =
            client.call::<_, p::RemoveMemberResponseProto>("removeMember", &remove).await.unwrap_err();
        assert_eq!(error.class(), Some(ACCESS_CONTROL), "{error}");
        let hand = p::HandOverRequestProto::default();
        let error = client.call::<_, p::HandOverResponseProto>("handOver", &hand).await.unwrap_err();
        assert_eq!(error.class(), Some(ACCESS_CONTROL), "{error}");
        // Nor with another secret.
        let challenge: p::ChallengeResponseProto =
            client.call("challenge", &p::ChallengeRequestProto {}).await.unwrap();
        let guessed = metad::peers::Secret::new(b"a secret of another cluster").unwrap();
        let order = metad::prove_order(&guessed, &challenge, "failActive", Default::default());
        let error = client.call::<_, p::FailActiveResponseProto>("order", &order).await.unwrap_err();
        assert_eq!(error.class(), Some(ACCESS_CONTROL), "{error}");
        assert!(error.to_string().contains("another secret"), "{error}");
    }
    assert_eq!(cluster.group(active).await.view.unwrap().members, [1, 2, 3]);
    assert_eq!(cluster.wait_for_active(&[]).await, active);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_removed_and_added_by_the_active_whoever_is_asked() {
    let (cluster, active, standby) = start().await;
    let third = (1..=3).find(|member| ![active, standby].contains(member)).unwrap();
    let request = p::RemoveMemberRequestProto { member: third, in_sync_min: None };
    let _: p::RemoveMemberResponseProto = cluster.order(standby, "removeMember", &request).await.unwrap();
    let view = cluster.group(active).await.view.unwrap();
    assert!(!view.members.contains(&third), "{view:?}");
    let again: p::RemoveMemberResponseProto = cluster.order(standby, "removeMember", &request).await.unwrap();
    assert!(again.message().contains("already"), "{}", again.message());

    let request = p::RemoveMemberRequestProto { member: active, in_sync_min: None };
    let refused = cluster.order::<_, p::RemoveMemberResponseProto>(standby, "removeMember", &request).await;
    let error = refused.unwrap_err();
    assert_eq!(error.class(), Some(SERVICE_FAILED), "{error}");
    let request = p::AddMemberRequestProto { member: third, in_sync_min: None };
    let _: p::AddMemberResponseProto = cluster.order(standby, "addMember", &request).await.unwrap();
    assert_eq!(cluster.group(active).await.view.unwrap().members, [1, 2, 3]);
}
