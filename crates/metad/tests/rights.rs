//! Rights over real sockets: what is refused, in which class and words, and what the audit log tells of it.

mod cluster;

use base::FsError;
use cluster::{Plan, SUPERUSER, refusal};
use proto::{
    hdfs::{self as p, acl_entry_proto as acl, x_attr_proto::XAttrNamespaceProto as Space},
    protocol,
};

async fn refused<Q, A>(client: &rpc::Client, method: &'static str, request: &Q) -> FsError
where
    Q: prost::Message + prost::Name,
    A: prost::Message + prost::Name + Default,
{
    let (class, message) = refusal(client.call::<Q, A>(method, request).await);
    proto::exception::from_remote(&class, &message)
}

fn mkdirs(path: &str) -> p::MkdirsRequestProto {
    p::MkdirsRequestProto {
        unmasked: Some(p::FsPermissionProto { perm: 0o777 }),
        ..cluster::mkdirs_request(path)
    }
}

fn entry(name: &str) -> p::AclEntryProto {
    p::AclEntryProto {
        r#type: acl::AclEntryTypeProto::User as i32,
        scope: acl::AclEntryScopeProto::Access as i32,
        permissions: acl::FsActionProto::ReadExecute as i32,
        name: Some(name.into()),
    }
}

fn modify(names: &[String]) -> p::ModifyAclEntriesRequestProto {
    p::ModifyAclEntriesRequestProto {
        src: "/d".into(),
        acl_spec: names.iter().map(|name| entry(name)).collect(),
    }
}

fn xattr(space: Space, name: &str, length: usize) -> p::SetXAttrRequestProto {
    let value = Some(vec![7; length].into());
    let xattr = p::XAttrProto { namespace: space as i32, name: name.into(), value };
    p::SetXAttrRequestProto { src: "/d".into(), x_attr: Some(xattr), flag: Some(3) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_allowed_is_refused_as_by_hdfs_and_written_down() {
    let plan = Plan::alone().adjusted(|_, config| {
        config.user_groups.overrides =
            vec![("bob".into(), vec!["staff".into()]), ("carl".into(), vec!["supergroup".into()])];
        config.audit_log = Some(config.name_directory.with_file_name("logs").join("audit.log"));
    });
    let mut cluster = plan.start().await;
    let [alice, bob, carl] =
        [SUPERUSER, "bob", "carl"].map(|user| cluster.client_as(1, protocol::CLIENT_NAMENODE, user));

    let _: p::MkdirsResponseProto = alice.call("mkdirs", &mkdirs("/d")).await.unwrap();
    let _: p::ModifyAclEntriesResponseProto =
        alice.call("modifyAclEntries", &modify(&["bob".into()])).await.unwrap();
    let status = p::GetFileInfoRequestProto { src: "/d".into() };
    let info: p::GetFileInfoResponseProto = bob.call("getFileInfo", &status).await.unwrap();
    assert_eq!(info.fs.map(|fs| fs.flags()), Some(1), "the flag that says that there is an ACL");

    // chown by somebody who is not above all.
    let chown = |owner: &str| p::SetOwnerRequestProto {
        src: "/d".into(),
        username: Some(owner.into()),
        groupname: None,
    };
    let error = refused::<_, p::SetOwnerResponseProto>(&bob, "setOwner", &chown("bob")).await;
    let text = "Permission denied. user=bob is not the owner of inode=/d";
    assert_eq!(error, FsError::AccessDenied(text.into()));
    // By the group that the configuration puts him in, carl is.
    let _: p::SetOwnerResponseProto = carl.call("setOwner", &chown("bob")).await.unwrap();
    let error = refused::<_, p::SetOwnerResponseProto>(&bob, "setOwner", &chown("eve")).await;
    let text = "User bob is not a super user (non-super user cannot change owner).";
    assert_eq!(error, FsError::AccessDenied(text.into()));

    let names: Vec<String> = (0..33).map(|n| format!("u{n}")).collect();
    let error =
        refused::<_, p::ModifyAclEntriesResponseProto>(&bob, "modifyAclEntries", &modify(&names)).await;
    let text = "Invalid ACL: ACL has 33 access entries, which exceeds maximum of 32. Path: /d";
    assert_eq!(error, FsError::Acl(text.into()));

    // Attributes: too large, too many, somebody else's.
    let error =
        refused::<_, p::SetXAttrResponseProto>(&bob, "setXAttr", &xattr(Space::User, "a", 16_384)).await;
    assert!(matches!(error, FsError::InvalidArgument(text) if text.contains("16384")));
    let error =
        refused::<_, p::SetXAttrResponseProto>(&bob, "setXAttr", &xattr(Space::Trusted, "a", 1)).await;
    let text = "User doesn't have permission for xattr: trusted.a";
    assert_eq!(error, FsError::AccessDenied(text.into()));
    for n in 0..32 {
        let request = xattr(Space::User, &n.to_string(), 1);
        let _: p::SetXAttrResponseProto = bob.call("setXAttr", &request).await.unwrap();
    }
    let error = refused::<_, p::SetXAttrResponseProto>(&bob, "setXAttr", &xattr(Space::User, "33", 1)).await;
    let text = "Cannot add additional XAttr to inode, would exceed limit of 32";
    assert_eq!(error, FsError::Io(text.into()));
    // The connection is still there.
    let _: p::GetFileInfoResponseProto = bob.call("getFileInfo", &status).await.unwrap();

    drop((alice, bob, carl));
    cluster.stop(1).await;
    let log = std::fs::read_to_string(cluster.beside("logs/audit.log")).unwrap();
    let lines: Vec<&str> = log.lines().map(|line| line.split_once("audit: ").unwrap().1).collect();
    let line = |allowed: bool, user: &str, command: &str, permission: &str| {
        format!(
            "allowed={allowed}\tugi={user} (auth:SIMPLE)\tip=/127.0.0.1\tcmd={command}\tsrc=/d\tdst=null\t\
             perm={permission}\tproto=rpc"
        )
    };
    assert_eq!(
        lines[..6],
        [
            line(true, "alice", "mkdirs", "alice:supergroup:rwxr-xr-x"),
            line(true, "alice", "modifyAclEntries", "alice:supergroup:rwxr-xr-x"),
            line(true, "bob", "getfileinfo", "null"),
            line(false, "bob", "setOwner", "null"),
            line(true, "carl", "setOwner", "bob:supergroup:rwxr-xr-x"),
            line(false, "bob", "setOwner", "null"),
        ]
    );
    // Operations that failed for other reasons than rights left no line.
    assert_eq!(lines[6], line(false, "bob", "setXAttr", "null"));
    assert_eq!(lines.len(), 7 + 32 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_acts_for_another_only_where_the_configuration_lets_it() {
    let rows =
        [("knox.hosts", "127.0.0.1"), ("knox.users", "ann"), ("far.hosts", "10.0.0.1"), ("far.users", "*")];
    let rows: Vec<_> = rows.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let plan = Plan::alone().adjusted(move |_, config| config.proxies = base::Proxies::parse(&rows).unwrap());
    let mut cluster = plan.start().await;
    let options =
        |real: &str| rpc::ClientOptions { real_user: Some(real.into()), ..rpc::ClientOptions::default() };
    let client = |real: &str, effective: &str| {
        rpc::Client::connect(cluster.address(1), protocol::CLIENT_NAMENODE, effective, options(real))
    };
    let status = p::GetFileInfoRequestProto { src: "/".into() };
    let answer: Result<p::GetFileInfoResponseProto, _> =
        client("knox", "ann").call("getFileInfo", &status).await;
    assert!(answer.unwrap().fs.is_some());
    for (real, effective) in [("knox", "bob"), ("far", "ann"), ("ann", "bob"), (SUPERUSER, "ann")] {
        let answer: Result<p::GetFileInfoResponseProto, _> =
            client(real, effective).call("getFileInfo", &status).await;
        let text = cluster::refused(answer, proto::exception::AUTHORIZATION);
        assert_eq!(text, format!("User: {real} is not allowed to impersonate {effective}"));
    }
    cluster.stop_all().await;
}
