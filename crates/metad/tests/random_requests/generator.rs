//! Requests that look valid: every field of the definitions, with values that a client might send and values that
//! none should.

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use std::collections::BTreeMap;

/// Random numbers, the same ones for the same seed (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

/// A method and the message that it takes.
pub struct Method {
    pub name: &'static str,
    request: String,
}

pub struct Generator {
    messages: BTreeMap<String, DescriptorProto>,
    enums: BTreeMap<String, EnumDescriptorProto>,
    pub methods: Vec<Method>,
    pool: String,
}

/// A small tree: requests meet each other's results. What makes files and directories keeps them apart, mostly,
/// so that there are some of both.
const FILES: &[&str] = &["/a/f", "/a/g", "/d/f", "/d/g", "/d/h", "/f"];
const DIRECTORIES: &[&str] = &["/a", "/a/b", "/a/b/c", "/d", "/e", "/e/x", "/e/x/y"];
const PATHS: &[&str] = &[
    "/", "/a", "/a/b", "/a/b/c", "/a/f", "/a/g", "/d", "/d/f", "/d/g", "/d/h", "/e", "/e/x", "/e/x/y", "/f",
];
const OF_FILES: &[&str] = &[
    "create",
    "addBlock",
    "complete",
    "append",
    "truncate",
    "abandonBlock",
    "fsync",
    "concat",
    "getBlockLocations",
];
const OF_DIRECTORIES: &[&str] = &["mkdirs", "setQuota", "allowSnapshot", "createSnapshot", "deleteSnapshot"];
const ODD_PATHS: &[&str] = &[
    "",
    "a",
    "//",
    "/a/",
    "/a//b",
    "/a/./b",
    "/../a",
    "/a/f/below-a-file",
    "/a:b",
    "/\u{e4}\u{20ac}\u{1f600}",
    "/nul\0",
    "/line\nbreak\tand \"quotes\"",
    "/.reserved",
    "/.reserved/raw/a",
    "/.reserved/raw",
    "/.reserved/inodes/16385",
    "/.reserved/inodes/16386/b",
    "/.reserved/inodes/-1",
    "/.reserved/inodes/99999999999999999999",
    "/a/.snapshot",
    "/a/.snapshot/s1",
    "/a/.snapshot/s1/f",
    "/.snapshot",
    "/d/.snapshot/s2/g",
];
const NAMES: &[&str] =
    &["alice", "bob", "DFSClient_1", "DFSClient_2", "s1", "s2", "users", "", "x y", "HOT", "COLD"];
const NUMBERS: &[u64] = &[0, 1, 2, 3, 7, 511, 512, 1 << 20, 128 << 20, 1 << 31, 1 << 40, 1 << 62];
const ODD_NUMBERS: &[u64] = &[u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, u32::MAX as u64];
const RARE: &[&str] = &["ecPolicyName", "storagePolicy", "previous", "last", "excludeNodes"];
const FIRST_INODE: u64 = 16_385;
const FIRST_BLOCK: u64 = 1_073_741_825;
const FIRST_STAMP: u64 = 1_001;

impl Generator {
    /// `pool` is the block pool that the server believes in.
    pub fn new(service: &str, pool: &str) -> Self {
        let set = FileDescriptorSet::decode(proto::DESCRIPTORS).expect("a FileDescriptorSet");
        let mut generator = Self {
            messages: BTreeMap::new(),
            enums: BTreeMap::new(),
            methods: Vec::new(),
            pool: pool.into(),
        };
        let names = proto::protocol::methods(proto::protocol::CLIENT_NAMENODE);
        for file in &set.file {
            let scope = format!(".{}", file.package());
            file.message_type.iter().for_each(|message| generator.collect(&scope, message));
            for one in &file.enum_type {
                generator.enums.insert(format!("{scope}.{}", one.name()), one.clone());
            }
            for found in file.service.iter().filter(|found| found.name() == service) {
                for method in &found.method {
                    let name = names[names.binary_search(&method.name()).expect("a method of the protocol")];
                    generator.methods.push(Method { name, request: method.input_type().to_owned() });
                }
            }
        }
        generator
    }

    fn collect(&mut self, scope: &str, message: &DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        message.nested_type.iter().for_each(|nested| self.collect(&name, nested));
        for one in &message.enum_type {
            self.enums.insert(format!("{name}.{}", one.name()), one.clone());
        }
        self.messages.insert(name, message.clone());
    }

    pub fn request(&self, dice: &mut Dice, method: &Method) -> Vec<u8> {
        let mut out = Vec::new();
        let paths = match method.name {
            _ if dice.one_in(5) => PATHS,
            name if OF_FILES.contains(&name) => FILES,
            name if OF_DIRECTORIES.contains(&name) => DIRECTORIES,
            _ => PATHS,
        };
        self.put_message(dice, paths, &method.request, 0, &mut out);
        out
    }

    fn put_message(&self, dice: &mut Dice, paths: &[&str], name: &str, depth: u32, out: &mut Vec<u8>) {
        for field in &self.messages[name].field {
            let count = match field.label() {
                Label::Required if dice.one_in(500) => 0,
                Label::Required => 1,
                // Messages in themselves end somewhere.
                _ if depth > 6 => 0,
                // Requests with these fields are mostly refused early, so they are rare.
                Label::Optional if RARE.contains(&field.name()) => u64::from(dice.one_in(12)),
                Label::Optional => u64::from(!dice.one_in(3)),
                Label::Repeated if dice.one_in(100) => 300,
                Label::Repeated => dice.below(4),
            };
            for _ in 0..count {
                self.put_field(dice, paths, field, depth, out);
            }
        }
    }

    fn put_field(
        &self,
        dice: &mut Dice,
        paths: &[&str],
        field: &FieldDescriptorProto,
        depth: u32,
        out: &mut Vec<u8>,
    ) {
        let number = field.number() as u64;
        let key = |wire_type: u64| number << 3 | wire_type;
        match field.r#type() {
            Type::String => {
                put_varint(key(2), out);
                put_bytes(self.text(dice, paths, field.name()).as_bytes(), out);
            }
            Type::Bytes => {
                put_varint(key(2), out);
                put_bytes(&bytes(dice, field.name()), out);
            }
            Type::Message => {
                let mut nested = Vec::new();
                self.put_message(dice, paths, field.type_name(), depth + 1, &mut nested);
                put_varint(key(2), out);
                put_bytes(&nested, out);
            }
            Type::Enum => {
                let values = &self.enums[field.type_name()].value;
                let value = match dice.one_in(50) {
                    true => *dice.pick(&[-1i64, 77, i64::from(i32::MIN)]) as u64,
                    false => dice.pick(values).number() as i64 as u64,
                };
                put_varint(key(0), out);
                put_varint(value, out);
            }
            Type::Bool => {
                put_varint(key(0), out);
                put_varint(dice.below(2), out);
            }
            Type::Fixed64 | Type::Sfixed64 | Type::Double => {
                put_varint(key(1), out);
                out.extend_from_slice(&dice.next().to_le_bytes());
            }
            Type::Fixed32 | Type::Sfixed32 | Type::Float => {
                put_varint(key(5), out);
                out.extend_from_slice(&(dice.next() as u32).to_le_bytes());
            }
            Type::Sint32 | Type::Sint64 => {
                let value = self.number(dice, field.name()) as i64;
                put_varint(key(0), out);
                put_varint((value << 1 ^ value >> 63) as u64, out);
            }
            _ => {
                put_varint(key(0), out);
                put_varint(self.number(dice, field.name()), out);
            }
        }
    }

    fn text(&self, dice: &mut Dice, paths: &[&str], field: &str) -> String {
        const PATH_FIELDS: &[&str] = &[
            "src",
            "dst",
            "path",
            "paths",
            "srcs",
            "trg",
            "target",
            "link",
            "snapshotRoot",
            "filename",
            "zone",
            "snapshottableDir",
        ];
        if field == "poolId" && !dice.one_in(10) {
            return self.pool.clone();
        }
        if PATH_FIELDS.contains(&field) {
            return match dice.below(20) {
                0 => format!("/{}", "deep/".repeat(dice.below(2_000) as usize)),
                1 => format!("/a/{}", "n".repeat(dice.below(300) as usize)),
                2..4 => (*dice.pick(ODD_PATHS)).into(),
                _ => (*dice.pick(paths)).into(),
            };
        }
        match dice.below(30) {
            0 => "x".repeat(dice.below(5_000) as usize),
            1 => (*dice.pick(ODD_PATHS)).into(),
            // Most requests come from one client, so that files stay open in its name.
            _ if field == "clientName" || field == "holder" => {
                (*dice.pick(&["DFSClient_1", "DFSClient_1", "DFSClient_1", "DFSClient_2"])).into()
            }
            _ => (*dice.pick(NAMES)).into(),
        }
    }

    fn number(&self, dice: &mut Dice, field: &str) -> u64 {
        if dice.one_in(25) {
            return *dice.pick(ODD_NUMBERS);
        }
        match field {
            // By the path, mostly; else one of those that there may be.
            "fileId" if !dice.one_in(3) => 0,
            "fileId" | "inodeId" | "prevId" if !dice.one_in(4) => FIRST_INODE + dice.below(200),
            "blockId" => FIRST_BLOCK + dice.below(40),
            "generationStamp" | "genStamp" => FIRST_STAMP + dice.below(60),
            "perm" => *dice.pick(&[0o755, 0o755, 0o777, 0o700, 0, 0o1777, 0o7777]),
            "replication" | "defaultReplication" => *dice.pick(&[1, 1, 2, 3, 0]),
            "createFlag" => *dice.pick(&[1, 1, 3, 3, 2, 4, 7, 0x21]),
            "blockSize" => *dice.pick(&[1 << 20, 1 << 20, 128 << 20, 512]),
            "mtime" | "atime" => *dice.pick(&[u64::MAX, 0, 1, 1_700_000_000_000]),
            // Large enough to leave some room, mostly; Hadoop's "clear" and "leave" are among the odd ones.
            "namespaceQuota" => *dice.pick(&[1_000, 100, 20, 1]),
            "storagespaceQuota" => *dice.pick(&[1 << 50, 1 << 40, 1 << 30, 1]),
            _ => *dice.pick(NUMBERS),
        }
    }
}

fn bytes(dice: &mut Dice, field: &str) -> Vec<u8> {
    match dice.below(6) {
        0 => Vec::new(),
        1 if field == "startAfter" => vec![0, 0, 0, 1, b'f'],
        2 => vec![0, 0, 0, 0],
        3 => vec![0xff; dice.below(40) as usize],
        4 => (0..dice.below(200)).map(|_| dice.next() as u8).collect(),
        _ => b"f".to_vec(),
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
