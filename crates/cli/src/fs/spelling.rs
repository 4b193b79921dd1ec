//! Hadoop's single-dash spelling, turned into the one that clap knows.
//!
//! `clover fs -fs hdfs://h:1 -rm -r -skipTrash /a` becomes `clover fs --fs hdfs://h:1 rm -r --skip-trash /a`. Both
//! spellings may be mixed; everything after `--` and everything that is not `clover fs …` stays as it is.

use std::ffi::{OsStr, OsString};

/// Words that Hadoop writes with a single dash before the command. Each takes a value.
const BEFORE: [(&str, &str); 2] = [("-fs", "--fs"), ("-conf", "--conf")];

/// Words that Hadoop writes with a single dash after the command.
const AFTER: [(&str, &str); 7] = [
    ("-skipTrash", "--skip-trash"),
    ("-safely", "--safely"),
    ("-immediate", "--immediate"),
    ("-ignoreCrc", "--ignore-crc"),
    ("-crc", "--crc"),
    ("-nl", "--nl"),
    ("-skip-empty-file", "--skip-empty-file"),
];

/// Words of `hdfs dfsadmin`, wherever they stand.
const ADMIN: [(&str, &str); 6] = [
    ("-fs", "--fs"),
    ("-conf", "--conf"),
    ("-storageType", "--storage-type"),
    ("-live", "--live"),
    ("-dead", "--dead"),
    ("-path", "--path"),
];

/// Commands that Hadoop still knows by an older name.
const RENAMED: [(&str, &[&str]); 4] =
    [("lsr", &["ls", "-R"]), ("rmr", &["rm", "-r"]), ("dus", &["du", "-s"]), ("usage", &["help"])];

/// Options of the program that take the word after them, before `fs` and behind.
const WITH_VALUE: [&str; 4] = ["--log", "--fs", "--conf", "-D"];

pub fn from_hadoop(arguments: Vec<OsString>) -> Vec<OsString> {
    let first = find_word(&arguments, 1);
    if let Some(admin) = first.filter(|at| arguments[*at] == "admin") {
        return admin_from_hadoop(arguments, admin);
    }
    let Some(fs) = first.filter(|at| arguments[*at] == "fs") else { return arguments };
    let mut changed: Vec<OsString> = arguments[..=fs].to_vec();
    let mut rest = arguments[fs + 1..].iter();
    let mut command = None;
    while let Some(word) = rest.next() {
        let text = word.to_str().unwrap_or_default();
        if let Some((_, long)) = BEFORE.iter().find(|(single, _)| *single == text) {
            changed.push(long.into());
            changed.extend(rest.next().cloned());
        } else if WITH_VALUE.contains(&text) {
            changed.push(word.clone());
            changed.extend(rest.next().cloned());
        } else if let Some(name) = command_name(text) {
            match RENAMED.iter().find(|(old, _)| *old == name) {
                Some((_, new)) => changed.extend(new.iter().map(OsString::from)),
                None => changed.push(name.into()),
            }
            command = Some(name);
            break;
        } else {
            changed.push(word.clone());
            if !text.starts_with('-') {
                command = Some(text);
                break;
            }
        }
    }
    let mut is_over = false;
    for word in rest {
        is_over |= word == "--";
        changed.push(if is_over { word.clone() } else { option(command, word) });
    }
    changed
}

/// `clover admin -setQuota 5 /a` is `clover admin setQuota 5 /a`.
fn admin_from_hadoop(mut arguments: Vec<OsString>, admin: usize) -> Vec<OsString> {
    for word in arguments.iter_mut().skip(admin + 1) {
        if let Some((_, ours)) = ADMIN.iter().find(|(hadoops, _)| *word == *hadoops) {
            *word = (*ours).into();
        }
    }
    let mut at = admin + 1;
    while arguments.get(at).and_then(|word| word.to_str()).is_some_and(|word| WITH_VALUE.contains(&word)) {
        at += 2;
    }
    if let Some(word) = arguments.get_mut(at)
        && let Some(name) = word.to_str().and_then(command_name)
    {
        *word = name.into();
    }
    arguments
}

/// The position of the first word, from `from` on, that is neither an option nor the value of an option.
fn find_word(arguments: &[OsString], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = arguments.get(at).and_then(|word| word.to_str()) {
        if WITH_VALUE.contains(&word) {
            at += 2;
        } else if word.starts_with('-') {
            at += 1;
        } else {
            return Some(at);
        }
    }
    None
}

/// The command of `-ls`; options of one letter and of two dashes are none.
fn command_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('-')?;
    let is_command = name.len() > 1 && !name.starts_with('-') && !name.starts_with('D');
    is_command.then_some(name)
}

fn option(command: Option<&str>, word: &OsStr) -> OsString {
    let text = word.to_str().unwrap_or_default();
    if let Some((_, long)) = AFTER.iter().find(|(single, _)| *single == text) {
        return long.into();
    }
    // `-ptop` of cp: what to preserve, without a space between.
    match (command, text.strip_prefix("-p")) {
        (Some("cp"), Some(letters)) if !letters.is_empty() => format!("--preserve={letters}").into(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelt(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let changed = from_hadoop(words);
        changed.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn hadoops_spelling_becomes_ours() {
        for (hadoop, ours) in [
            ("clover fs -ls -R /", "clover fs ls -R /"),
            ("clover fs -rm -r -skipTrash /a", "clover fs rm -r --skip-trash /a"),
            ("clover fs -fs hdfs://h:1 -conf c.xml -ls", "clover fs --fs hdfs://h:1 --conf c.xml ls"),
            ("clover fs -D a=b -Dc=d -put -f x /y", "clover fs -D a=b -Dc=d put -f x /y"),
            ("clover fs -cp -ptop /a /b", "clover fs cp --preserve=top /a /b"),
            ("clover fs -cp -p /a /b", "clover fs cp -p /a /b"),
            ("clover --log debug fs -copyFromLocal a b", "clover --log debug fs copyFromLocal a b"),
            ("clover fs --json -ls", "clover fs --json ls"),
            ("clover fs -chmod -x /a", "clover fs chmod -x /a"),
            ("clover fs -lsr /a", "clover fs ls -R /a"),
            ("clover fs -usage ls", "clover fs help ls"),
            ("clover admin -setQuota 5 /a", "clover admin setQuota 5 /a"),
            (
                "clover admin -clrSpaceQuota -storageType SSD /a",
                "clover admin clrSpaceQuota --storage-type SSD /a",
            ),
            ("clover admin -fs hdfs://h:1 -report -live", "clover admin --fs hdfs://h:1 report --live"),
            ("clover admin -printTopology -fs hdfs://h:1", "clover admin printTopology --fs hdfs://h:1"),
            ("clover admin -listOpenFiles -path /a", "clover admin listOpenFiles --path /a"),
            ("clover admin --fs hdfs://h:1 group show", "clover admin --fs hdfs://h:1 group show"),
        ] {
            assert_eq!(spelt(hadoop), ours);
        }
    }

    #[test]
    fn what_is_ours_already_stays() {
        for line in [
            "clover fs ls -R /",
            "clover demo -fs",
            "clover",
            "clover --log fs",
            "clover fs cat -- -skipTrash",
            "clover fs -h",
        ] {
            assert_eq!(spelt(line), line);
        }
    }
}
