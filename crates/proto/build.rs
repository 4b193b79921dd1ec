//! Compiles the protocol definitions in `protos/`, and derives from the same descriptors two tables: which
//! fields of each message are required (prost does not refuse a message that lacks one), and which methods
//! each service has.

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::PathBuf,
};

// Cargo speaks to build scripts through the environment.
#[allow(clippy::disallowed_methods)]
fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("protos");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", directory.display());

    let mut files: Vec<PathBuf> =
        fs::read_dir(&directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let descriptors = protox::compile(&files, [&directory])?;
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    fs::write(out.join("tables.rs"), tables(&descriptors))?;

    prost_build::Config::new().bytes(["."]).enable_type_names().compile_fds(descriptors)?;
    Ok(())
}

/// Every message and enumeration by its full name, nested ones included.
#[derive(Default)]
struct Types<'a> {
    messages: BTreeMap<String, &'a DescriptorProto>,
    enums: BTreeMap<String, &'a EnumDescriptorProto>,
}

impl<'a> Types<'a> {
    fn collect(&mut self, scope: &str, message: &'a DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        for nested in &message.nested_type {
            self.collect(&name, nested);
        }
        for nested in &message.enum_type {
            self.enums.insert(format!("{name}.{}", nested.name()), nested);
        }
        self.messages.insert(name, message);
    }
}

fn tables(descriptors: &FileDescriptorSet) -> String {
    let mut types = Types::default();
    let mut services: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for file in &descriptors.file {
        for message in &file.message_type {
            types.collect(file.package(), message);
        }
        for enumeration in &file.enum_type {
            types.enums.insert(format!("{}.{}", file.package(), enumeration.name()), enumeration);
        }
        for service in &file.service {
            let methods = service.method.iter().map(|method| method.name()).collect();
            services.insert(format!("{}.{}", file.package(), service.name()), methods);
        }
    }

    let message_index: BTreeMap<&str, usize> =
        types.messages.keys().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let enum_index: BTreeMap<&str, usize> =
        types.enums.keys().enumerate().map(|(index, name)| (name.as_str(), index)).collect();

    let mut text = String::new();
    writeln!(text, "pub(crate) const SCHEMAS: &[Schema] = &[").unwrap();
    for (name, message) in &types.messages {
        let mut fields: Vec<_> = message.field.iter().collect();
        fields.sort_by_key(|field| field.number());
        let mut required = 0;
        writeln!(text, "    Schema {{ name: {name:?}, fields: &[").unwrap();
        for field in fields {
            let bit = if field.label() == Label::Required {
                required += 1;
                assert!(required <= 64, "{name} has more required fields than a word has bits");
                format!("{}", 1u64 << (required - 1))
            } else {
                "0".into()
            };
            let target = field.type_name().trim_start_matches('.');
            let kind = match field.r#type() {
                Type::Message => format!("Kind::Message({})", message_index[target]),
                Type::Enum => format!("Kind::Enum({})", enum_index[target]),
                Type::String => "Kind::String".into(),
                Type::Bytes => "Kind::Bytes".into(),
                Type::Double | Type::Fixed64 | Type::Sfixed64 => "Kind::Fixed64".into(),
                Type::Float | Type::Fixed32 | Type::Sfixed32 => "Kind::Fixed32".into(),
                Type::Group => panic!("{name} has a group"),
                _ => "Kind::Varint".into(),
            };
            writeln!(
                text,
                "        Field {{ number: {}, name: {:?}, kind: {kind}, repeated: {}, required_bit: {bit} }},",
                field.number(),
                field.name(),
                field.label() == Label::Repeated
            )
            .unwrap();
        }
        let all = if required == 64 { u64::MAX } else { (1u64 << required) - 1 };
        writeln!(text, "    ], required: {all} }},").unwrap();
    }
    writeln!(text, "];\n\npub(crate) const ENUMS: &[&[i32]] = &[").unwrap();
    for enumeration in types.enums.values() {
        let mut values: Vec<i32> = enumeration.value.iter().map(|value| value.number()).collect();
        values.sort_unstable();
        writeln!(text, "    &{values:?},").unwrap();
    }
    writeln!(text, "];\n\npub(crate) const SERVICES: &[(&str, &[&str])] = &[").unwrap();
    for (name, methods) in &services {
        let methods: Vec<&&str> = methods.iter().collect();
        writeln!(text, "    ({name:?}, &{methods:?}),").unwrap();
    }
    writeln!(text, "];").unwrap();
    text
}
