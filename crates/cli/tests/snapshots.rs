//! Snapshots by the commands that a person uses, on a whole cluster, over a power cut.

mod demo;

use demo::{Demo, Output};

fn admin(demo: &Demo, words: &[&str]) -> Output {
    let mut command = demo::clover(&demo.local());
    command.args(["admin", "--fs", &demo.uri()]).args(words);
    demo::run(command)
}

fn said(output: Output) -> String {
    assert_eq!(output.code, 0, "{}", output.text);
    output.text
}

#[test]
fn a_snapshot_shows_what_was_there_before_a_power_cut_and_after() {
    let mut demo = Demo::start();
    std::fs::write(demo.local().join("one"), "one\n").unwrap();
    std::fs::write(demo.local().join("two"), "two\n").unwrap();
    demo.must(&["-mkdir", "-p", "/d/sub"]);
    demo.must(&["-put", "one", "two", "/d/sub"]);
    assert_eq!(
        demo.fs(None, &["-createSnapshot", "/d", "s"]).text,
        "createSnapshot: Directory is not a snapshottable directory: /d\n"
    );
    assert_eq!(said(admin(&demo, &["allow-snapshot", "/d"])), "Allowing snapshot on /d succeeded\n");
    let made = demo.must(&["-createSnapshot", "/d", "s"]);
    assert_eq!(made.text, "Created snapshot /d/.snapshot/s\n");
    demo.must(&["-rm", "-skipTrash", "/d/sub/one"]);
    demo.must(&["-mv", "/d/sub/two", "/d/three"]);

    demo.kill_and_start();
    assert_eq!(demo.must(&["-cat", "/d/.snapshot/s/sub/one"]).text, "one\n");
    assert_eq!(demo.must(&["-cat", "/d/.snapshot/s/sub/two"]).text, "two\n");
    assert_eq!(demo.must(&["-ls", "-C", "/d/sub"]).text, "");
    assert_eq!(
        said(admin(&demo, &["snapshot-diff", "/d", "s", "."])),
        "Difference between snapshot s and current directory under directory /d:\n\
         M\t.\nM\t./sub\n-\t./sub/one\nR\t./sub/two -> ./three\n"
    );
    assert_eq!(
        said(admin(&demo, &["snapshot-diff", "--json", "/d", ".", ".snapshot/s"])),
        "{\"change\":\"M\",\"path\":\".\",\"target\":null}\n\
         {\"change\":\"M\",\"path\":\"./sub\",\"target\":null}\n\
         {\"change\":\"+\",\"path\":\"./sub/one\",\"target\":null}\n\
         {\"change\":\"R\",\"path\":\"./three\",\"target\":\"./sub/two\"}\n"
    );
    let refused = demo.fs(None, &["-rm", "-r", "-skipTrash", "/d"]);
    let reason = "The directory /d cannot be deleted since /d is snapshottable and already has snapshots";
    assert_eq!((refused.code, refused.text), (1, format!("rm: {reason}\n")));
    let refused = demo.fs(None, &["-touchz", "/d/.snapshot/s/new"]);
    assert_eq!(refused.text, "touchz: Modification on a read-only snapshot is disallowed\n");

    let renamed = demo.must(&["-renameSnapshot", "/d", "s", "t"]);
    assert_eq!(renamed.text, "Renamed snapshot s to t under /d\n");
    let listed = said(admin(&demo, &["ls-snapshot", "--json", "/d"]));
    assert!(listed.contains("\"path\":\"/d/.snapshot/t\"") && listed.lines().count() == 1, "{listed}");
    let roots = said(admin(&demo, &["ls-snapshottable-dir", "--json"]));
    assert!(roots.contains("\"path\":\"/d\"") && roots.contains("\"snapshots\":1"), "{roots}");
    assert_eq!(admin(&demo, &["disallow-snapshot", "/d"]).code, 1);
    assert_eq!(demo.must(&["-deleteSnapshot", "/d", "t"]).text, "Deleted snapshot t under /d\n");
    assert_eq!(demo.fs(None, &["-ls", "/d/.snapshot/t"]).code, 1);
    assert_eq!(said(admin(&demo, &["disallow-snapshot", "/d"])), "Disallowing snapshot on /d succeeded\n");
    demo.must(&["-rm", "-r", "-skipTrash", "/d"]);
}
