use super::*;

/// Reads an ACL in the form that `setfacl` takes: `default:user:ann:rwx,mask::r-x`.
fn acl(text: &str) -> Vec<AclEntry> {
    text.split(',').filter(|part| !part.is_empty()).map(entry).collect()
}

fn entry(text: &str) -> AclEntry {
    let (scope, rest) = match text.strip_prefix("default:") {
        Some(rest) => (Scope::Default, rest),
        None => (Scope::Access, text),
    };
    let parts: Vec<&str> = rest.split(':').collect();
    let kind = match parts[0] {
        "user" => Kind::User,
        "group" => Kind::Group,
        "mask" => Kind::Mask,
        _ => Kind::Other,
    };
    let name = (!parts[1].is_empty()).then(|| parts[1].into());
    let bits = parts[2].chars().fold(0, |bits, letter| bits << 1 | u8::from(letter != '-'));
    AclEntry::new(scope, kind, name, bits)
}

fn text(entries: FsResult<Vec<AclEntry>>) -> String {
    match entries {
        Ok(entries) => entries.iter().map(AclEntry::to_string).collect::<Vec<_>>().join(","),
        Err(error) => error.to_string(),
    }
}

const MINIMAL: &str = "user::rwx,group::r-x,other::---";

#[test]
fn merging_adds_replaces_and_works_out_the_mask() {
    let merged = |existing: &str, sent: &str| text(merge(&acl(existing), &acl(sent)));
    assert_eq!(merged(MINIMAL, "user:bruce:rw-"), "user::rwx,user:bruce:rw-,group::r-x,mask::rwx,other::---");
    let existing = "user::rwx,user:bruce:rw-,group::r-x,mask::rwx,other::---";
    assert_eq!(
        merged(existing, "user:bruce:r--,group::r--"),
        "user::rwx,user:bruce:r--,group::r--,mask::r--,other::---"
    );
    // A mask that the caller gives is taken as it is.
    assert_eq!(
        merged(existing, "mask::--x,user:clark:rwx"),
        "user::rwx,user:bruce:rw-,user:clark:rwx,group::r-x,mask::--x,other::---"
    );
    // One of a scope that the caller left alone stays.
    assert_eq!(
        merged("user::rwx,user:bruce:rw-,group::r-x,mask::---,other::---", "default:user:diana:r--"),
        "user::rwx,user:bruce:rw-,group::r-x,mask::---,other::---,default:user::rwx,default:user:diana:r--,\
         default:group::r-x,default:mask::r-x,default:other::---"
    );
}

/// HDFS looks each entry up in what was sent by a binary search, and minds only what it would add twice.
#[test]
fn an_entry_that_is_sent_twice_is_the_one_that_a_binary_search_meets() {
    let merged = |sent: &str| text(merge(&acl(MINIMAL), &acl(sent)));
    assert_eq!(merged("user::rw-,group::--x,group::rw-,user::rwx"), "user::rwx,group::--x,other::---");
    assert!(merged("user:ann:r--,user:ann:rw-").contains("multiple entries with same scope, type and name."));
}

#[test]
fn a_mask_alone_makes_an_extended_acl() {
    assert_eq!(text(merge(&acl(MINIMAL), &acl("mask::r--"))), "user::rwx,group::r-x,mask::r--,other::---");
}

#[test]
fn what_a_default_acl_lacks_is_copied_from_the_access_acl() {
    assert_eq!(
        text(replace(&acl(MINIMAL), &acl("default:group::---"))),
        "user::rwx,group::r-x,other::---,default:user::rwx,default:group::---,default:other::---"
    );
}

#[test]
fn replacing_one_scope_leaves_the_other() {
    let existing = "user::rwx,user:bruce:rwx,group::r-x,mask::rwx,other::---,\
                    default:user::rwx,default:group::r-x,default:other::---";
    assert_eq!(
        text(replace(&acl(existing), &acl("user::rw-,group::r--,other::r--"))),
        "user::rw-,group::r--,other::r--,default:user::rwx,default:group::r-x,default:other::---"
    );
    assert_eq!(
        text(replace(&acl(existing), &acl("user::rw-,user:diana:r--,group::r--,mask::rwx"))),
        "Invalid ACL: the user, group and other entries are required."
    );
}

#[test]
fn removing_entries_keeps_or_recalculates_the_mask() {
    let existing = "user::rwx,user:bruce:rw-,user:diana:r--,group::r--,mask::rw-,other::---";
    assert_eq!(
        text(remove(&acl(existing), &acl("user:bruce:---"))),
        "user::rwx,user:diana:r--,group::r--,mask::r--,other::---"
    );
    assert_eq!(
        text(remove(&acl(existing), &acl("mask::---"))),
        "Invalid ACL: mask is required and cannot be deleted."
    );
    // With the last named entry gone the mask may go as well.
    assert_eq!(
        text(remove(&acl(existing), &acl("user:bruce:---,user:diana:---,mask::---"))),
        "user::rwx,group::r--,other::---"
    );
    assert_eq!(
        text(remove(&acl(existing), &acl("user::---"))),
        "Invalid ACL: the user, group and other entries are required."
    );
    // Nothing to remove is no error.
    assert_eq!(text(remove(&acl(existing), &acl("group:nobody:---"))), existing);
    let defaults = "user::rwx,group::r-x,other::---,default:user::rwx,default:group::r-x,default:other::---";
    assert_eq!(text(remove_default(&acl(defaults))), MINIMAL);
    // The default owner is borrowed again as long as the default ACL is there.
    assert_eq!(text(remove(&acl(defaults), &acl("default:user::---"))), defaults);
}

#[test]
fn lists_that_cannot_be_are_refused_with_hadoops_words() {
    let merged = |sent: &str| text(merge(&acl(MINIMAL), &acl(sent)));
    assert_eq!(
        merged("user:bruce:r--,user:bruce:rw-"),
        "Invalid ACL: multiple entries with same scope, type and name."
    );
    assert_eq!(
        merged("mask:bruce:r--"),
        "Invalid ACL: this entry type must not have a name: mask:bruce:r--."
    );
    assert_eq!(
        merged("default:other:bruce:r--"),
        "Invalid ACL: this entry type must not have a name: default:other:bruce:r--."
    );
}

#[test]
fn thirty_two_entries_of_a_scope_and_no_more() {
    let users = |count: usize| (0..count).map(|n| format!("user:u{n:02}:r--")).collect::<Vec<_>>().join(",");
    // Three that are there, 28 users and the mask.
    assert_eq!(merge(&acl(MINIMAL), &acl(&users(28))).map(|whole| whole.len()), Ok(32));
    assert_eq!(
        text(merge(&acl(MINIMAL), &acl(&users(29)))),
        "Invalid ACL: ACL has 33 access entries, which exceeds maximum of 32."
    );
    // Counted before anything is made of what was sent.
    assert_eq!(
        text(remove(&acl(MINIMAL), &acl(&users(33)))),
        "Invalid ACL: ACL has 33 access entries, which exceeds maximum of 32."
    );
    let default = users(33).replace("user:", "default:user:");
    assert_eq!(
        text(merge(&acl(MINIMAL), &acl(&default))),
        "Invalid ACL: ACL has 33 default entries, which exceeds maximum of 32."
    );
}
