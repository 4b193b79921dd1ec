//! This version reads the bytes that earlier versions have written.

use base::{CallId, CallOrigin, Caller, ClientId, FsResult, Moment, Timestamp};
use namespace::{Context, Limits, Namespace, reads::get_file_info, reads::get_listing};

/// Written by a release that knew neither ACLs nor sections between the retry cache and the end: `/a` with a
/// file, an empty file and a directory with another file, and a sticky `/tmp`.
const VERSION_1: &[u8] = include_bytes!("data/version-1.image");

#[test]
fn an_image_of_version_1_is_the_same_tree() -> FsResult<()> {
    let read = |bytes: &[u8]| Namespace::read_image(5, &mut &bytes[..], bytes.len() as u64);
    let ns = read(VERSION_1).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ns.check_consistency(), Ok(()));
    let counts = ns.counts();
    assert_eq!((counts.files, counts.directories, counts.blocks), (3, 4, 2));
    let unknown = ns.unknown_replicas();
    assert_eq!((unknown.skipped().len(), unknown.held_since()), (0, None));
    let (caller, limits) = (Caller::simple("root", &["supergroup"]), Limits::default());
    let origin = CallOrigin {
        client_id: ClientId([0; 16]),
        call_id: CallId(1),
        retry_count: 0,
        repeats: 0,
        address: None,
    };
    let ctx = Context {
        caller: &caller,
        origin: Some(origin),
        fingerprint: 0,
        now: Timestamp::from_ms(1),
        moment: Moment::default(),
        limits: &limits,
        renewals: None,
        looks: None,
        told: None,
        room: None,
    };
    let status = |path: &str| get_file_info::get(&ns, &ctx, path).ok().flatten();
    let file = status("/a/b/f").unwrap_or_else(|| panic!("/a/b/f is there"));
    assert_eq!((file.owner, file.group, file.permission, file.length), ("ann", "staff", 0o644, 29));
    assert!(!file.has_acl);
    assert_eq!(status("/tmp").map(|tmp| tmp.permission), Some(0o1777));
    let page = get_listing::get(&ns, &ctx, "/a", b"", false)?.map(|page| page.entries);
    let names: Vec<_> = page.iter().flatten().map(|entry| String::from_utf8_lossy(entry.name)).collect();
    assert_eq!(names, ["b", "empty", "é"]);
    // And goes on in this version's bytes.
    let mut bytes = Vec::new();
    let written = ns.freeze().write(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    assert!(written.is_ok());
    assert_ne!(bytes, VERSION_1);
    let again = read(&bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.digest(), ns.digest());
    Ok(())
}
