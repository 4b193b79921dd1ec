use super::*;
use crate::parameters::Parameters;
use axum::http::Method;

fn parse(method: Method, query: &str) -> std::result::Result<Operation, (u16, String)> {
    Parameters::parse(query)
        .and_then(|parameters| Operation::parse(&method, &parameters))
        .map_err(|refusal| (refusal.status.as_u16(), refusal.message))
}

fn change(method: Method, query: &str) -> Change {
    match parse(method, query) {
        Ok(Operation::Change(change)) => change,
        other => panic!("{query}: {other:?}"),
    }
}

#[test]
fn operations_belong_to_their_methods() {
    assert_eq!(parse(Method::GET, "op=getfilestatus"), Ok(Operation::Ask(Question::FileStatus)));
    assert_eq!(parse(Method::PUT, "op=GETFILESTATUS").unwrap_err().0, 400);
    assert_eq!(parse(Method::GET, "op=DELETE").unwrap_err().0, 400);
    assert_eq!(parse(Method::GET, "").unwrap_err(), (400, "op=NULL is not supported".into()));
    assert_eq!(parse(Method::PATCH, "op=CREATE").unwrap_err().0, 405);
    let (_, long) = parse(Method::GET, &format!("op={}", "X".repeat(10_000))).unwrap_err();
    assert!(long.len() < 200, "{long}");
}

#[test]
fn hadoops_defaults_hold() {
    assert_eq!(
        parse(Method::GET, "op=OPEN"),
        Ok(Operation::Transfer(Transfer::Open { offset: 0, length: None }))
    );
    let Ok(Operation::Transfer(Transfer::Create(create))) = parse(Method::PUT, "op=CREATE") else { panic!() };
    assert_eq!(*create, Create { mode: Some(0o644), ..Create::default() });
    assert_eq!(change(Method::PUT, "op=MKDIRS"), Change::MakeDirectories { mode: 0o755, unmasked: None });
    assert_eq!(
        change(Method::PUT, "op=SETTIMES&accesstime=7"),
        Change::SetTimes { modified: -1, accessed: 7 }
    );
    assert_eq!(change(Method::DELETE, "op=DELETE"), Change::Delete { recursive: false });
}

#[test]
fn a_rename_with_options_is_the_newer_one() {
    let rename = |query| change(Method::PUT, query);
    assert_eq!(
        rename("op=RENAME&destination=/b&renameoptions="),
        Change::Rename { to: "/b".into(), options: None }
    );
    let options = Some(RenameOptions { overwrite: true, to_trash: false });
    assert_eq!(
        rename("op=RENAME&destination=/b&renameoptions=NONE,OVERWRITE"),
        Change::Rename { to: "/b".into(), options }
    );
    assert_eq!(parse(Method::PUT, "op=RENAME&destination=b").unwrap_err().0, 400);
    assert_eq!(parse(Method::PUT, "op=RENAME&destination=/a/../b").unwrap_err().0, 400);
}

#[test]
fn values_of_extended_attributes_have_three_forms() {
    let value =
        |text: &str| match parse(Method::PUT, &format!("op=SETXATTR&xattr.name=user.a&flag=CREATE&{text}")) {
            Ok(Operation::Change(Change::SetXattr { value, flags: 1, .. })) => Some(value),
            Ok(other) => panic!("{other:?}"),
            Err(_) => None,
        };
    assert_eq!(value("xattr.value=0x0aFF").unwrap(), [10, 255]);
    assert_eq!(value("xattr.value=0sCv8=").unwrap(), [10, 255]);
    assert_eq!(value("xattr.value=%22text%22").unwrap(), b"text");
    assert_eq!(value("xattr.value=text").unwrap(), b"text");
    assert_eq!(value("").unwrap(), b"");
    assert_eq!(value("xattr.value=0x0"), None);
    assert_eq!(value("xattr.value=0sCv8").unwrap(), [10, 255]);
    for damaged in ["0s!", "0SZ", "0sZg=", "0sZg==Zg==", "0sZ!==", "0s====", "0sZm9vY"] {
        assert_eq!(value(&format!("xattr.value={damaged}")), None, "{damaged}");
    }
}

#[test]
fn what_is_missing_or_out_of_range_is_refused() {
    for (method, query) in [
        (Method::PUT, "op=SETOWNER"),
        (Method::PUT, "op=SETXATTR&xattr.name=user.a"),
        (Method::GET, "op=GETXATTRS&xattr.name=user.a"),
        (Method::PUT, "op=SETREPLICATION&replication=0"),
        (Method::PUT, "op=SETREPLICATION&replication=40000"),
        (Method::PUT, "op=SETPERMISSION&permission=9"),
        (Method::PUT, "op=SETACL"),
        (Method::PUT, "op=SETACL&aclspec=nobody"),
        (Method::PUT, "op=RENAMESNAPSHOT&snapshotname=a"),
        (Method::PUT, "op=SETQUOTABYSTORAGETYPE&storagetype=TAPE&storagespacequota=1"),
        (Method::PUT, "op=CREATE&createflag=APPEND"),
        (Method::PUT, "op=CREATE&createflag=LAZY_PERSIST"),
        (Method::PUT, "op=CREATE&blocksize=0"),
        (Method::POST, "op=TRUNCATE"),
        (Method::POST, "op=CONCAT"),
        (Method::POST, "op=CONCAT&sources=a"),
        (Method::DELETE, "op=DELETESNAPSHOT"),
        (Method::DELETE, "op=DELETE&recursive=perhaps"),
        (Method::GET, "op=OPEN&offset=-1"),
        (Method::GET, "op=CHECKACCESS"),
        (Method::GET, "op=CHECKACCESS&fsaction=rwz"),
    ] {
        let refused = parse(method, query);
        assert!(matches!(refused, Err((400, _))), "{query}: {refused:?}");
    }
}
