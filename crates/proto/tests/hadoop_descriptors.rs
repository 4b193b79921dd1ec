//! Our protocol definitions say what Hadoop's do.
//!
//! Hadoop's published jars carry no `.proto` files, but their generated classes embed the descriptors.
//! `tests/conformance` dumps those to a file, whose path this test takes from `CLOVER_HADOOP_DESCRIPTORS`; it
//! fails without it. Run it with `make conformance`, which fetches the jars first: that is why it is marked
//! as ignored for a plain `cargo test`.

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use std::collections::BTreeMap;

/// Hadoop's files for protocols that Clover does not speak: journal nodes (ours is built in), the edit log,
/// failover controllers' notes in ZooKeeper, and the alias map of provided storage.
const NOT_SPOKEN: &[&str] = &[
    "AliasMapProtocol.proto",
    "FSProtos.proto",
    "HAZKInfo.proto",
    "InterQJournalProtocol.proto",
    "JournalProtocol.proto",
    "QJournalProtocol.proto",
    "editlog.proto",
];

/// Our files for protocols that Hadoop does not know.
const OUR_OWN: &[&str] = &["clover_admin.proto", "clover_forward.proto", "clover_pool.proto"];

/// The definitions by the full name of each thing that is defined: `hadoop.hdfs.BlockProto.blockId` ↦ `1 required
/// uint64`.
type Facts = BTreeMap<String, String>;

#[test]
#[ignore = "needs the descriptors in Hadoop's jars: make conformance"]
#[allow(clippy::disallowed_methods)] // The tests of this crate may read what the crate may not.
fn definitions_are_those_of_hadoop() {
    let path = std::env::var("CLOVER_HADOOP_DESCRIPTORS")
        .expect("CLOVER_HADOOP_DESCRIPTORS names the dump of Hadoop's descriptors: run `make conformance`");
    let theirs = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let theirs = facts(&theirs, NOT_SPOKEN);
    let ours = facts(proto::DESCRIPTORS, OUR_OWN);
    assert!(theirs.len() > 1_500, "only {} facts in {path}: the dump is incomplete", theirs.len());

    let differences = differences(&ours, &theirs);
    assert!(
        differences.is_empty(),
        "{} of {} facts differ:\n{}",
        differences.len(),
        theirs.len(),
        differences.join("\n")
    );
    println!("{} facts agree", theirs.len());
}

#[test]
fn a_difference_in_any_respect_is_found() {
    let facts = |text: &[(&str, &str)]| -> Facts {
        text.iter().map(|(name, fact)| (name.to_string(), fact.to_string())).collect()
    };
    let theirs = facts(&[("p.M", "message"), ("p.M.a", "1 required uint64"), ("p.M.b", "2 optional string")]);
    assert!(differences(&theirs, &theirs).is_empty());
    let ours = facts(&[("p.M", "message"), ("p.M.a", "1 optional uint64"), ("p.M.c", "2 optional string")]);
    assert_eq!(
        differences(&ours, &theirs),
        [
            "p.M.a: ours is `1 optional uint64`, Hadoop's `1 required uint64`",
            "p.M.b: missing, Hadoop's is `2 optional string`",
            "p.M.c: Hadoop has none, ours is `2 optional string`",
        ]
    );
}

#[test]
fn our_own_definitions_give_facts() {
    let ours = facts(proto::DESCRIPTORS, OUR_OWN);
    assert!(ours.keys().all(|name| name.starts_with("hadoop.")), "a file of ours is not in OUR_OWN");
    assert_eq!(ours["hadoop.hdfs.ExtendedBlockProto.poolId"], "1 required string");
    assert_eq!(ours["hadoop.hdfs.ExtendedBlockProto.numBytes"], "4 optional uint64 = 0");
    assert_eq!(ours["hadoop.hdfs.HdfsFileStatusProto.FileType.IS_DIR"], "1");
    assert!(ours["hadoop.hdfs.ClientNamenodeProtocol.mkdirs"].ends_with("MkdirsResponseProto"));
}

fn differences(ours: &Facts, theirs: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    for (name, theirs) in theirs {
        match ours.get(name) {
            None => found.push(format!("{name}: missing, Hadoop's is `{theirs}`")),
            Some(ours) if ours != theirs => {
                found.push(format!("{name}: ours is `{ours}`, Hadoop's `{theirs}`"));
            }
            Some(_) => {}
        }
    }
    for (name, ours) in ours.iter().filter(|(name, _)| !theirs.contains_key(*name)) {
        found.push(format!("{name}: Hadoop has none, ours is `{ours}`"));
    }
    found
}

fn facts(encoded: &[u8], leave_out: &[&str]) -> Facts {
    let set = FileDescriptorSet::decode(encoded).expect("a FileDescriptorSet");
    let mut facts = Facts::new();
    for file in set.file.iter().filter(|file| !leave_out.contains(&file.name())) {
        let package = file.package();
        file.message_type.iter().for_each(|message| message_facts(package, message, &mut facts));
        file.enum_type.iter().for_each(|it| enum_facts(package, it, &mut facts));
        for service in &file.service {
            let name = format!("{package}.{}", service.name());
            for method in &service.method {
                let streams =
                    if method.client_streaming() || method.server_streaming() { " streaming" } else { "" };
                let fact = format!("{} -> {}{streams}", method.input_type(), method.output_type());
                facts.insert(format!("{name}.{}", method.name()), fact);
            }
            facts.insert(name, "service".to_owned());
        }
    }
    facts
}

fn message_facts(scope: &str, message: &DescriptorProto, facts: &mut Facts) {
    let name = format!("{scope}.{}", message.name());
    for field in &message.field {
        facts.insert(format!("{name}.{}", field.name()), field_fact(field, message));
    }
    message.nested_type.iter().for_each(|nested| message_facts(&name, nested, facts));
    message.enum_type.iter().for_each(|nested| enum_facts(&name, nested, facts));
    facts.insert(name, "message".to_owned());
}

fn enum_facts(scope: &str, definition: &EnumDescriptorProto, facts: &mut Facts) {
    let name = format!("{scope}.{}", definition.name());
    for value in &definition.value {
        facts.insert(format!("{name}.{}", value.name()), value.number().to_string());
    }
    facts.insert(name, "enum".to_owned());
}

/// Number, label, type, default, packing, and the `oneof` that it belongs to.
fn field_fact(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    let label = match field.label() {
        Label::Optional => "optional",
        Label::Required => "required",
        Label::Repeated => "repeated",
    };
    let kind = match field.r#type() {
        Type::Message | Type::Enum | Type::Group => field.type_name().to_owned(),
        scalar => scalar.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    };
    let mut fact = format!("{} {label} {kind}", field.number());
    if let Some(default) = &field.default_value {
        fact += &format!(" = {default}");
    }
    if field.options.as_ref().is_some_and(|options| options.packed()) {
        fact += " packed";
    }
    if let Some(index) = field.oneof_index {
        fact += &format!(" in {}", message.oneof_decl[index as usize].name());
    }
    fact
}
