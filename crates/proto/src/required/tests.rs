use super::{DEPTH_MAX, DecodeError, ENUMS, Kind, SCHEMAS, Schema, check, decode, find, messages, schema_of};
use crate::{
    hdfs::{
        AddBlockRequestProto, CreateRequestProto, FsPermissionProto, MkdirsRequestProto,
        SetPermissionRequestProto,
    },
    wire::put_varint,
};
use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use prost::Message;

fn mkdirs() -> MkdirsRequestProto {
    MkdirsRequestProto {
        src: "/a".into(),
        masked: FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    }
}

#[test]
fn the_table_is_in_order_and_holds_every_message() {
    let names: Vec<_> = messages().collect();
    assert!(names.is_sorted());
    assert!(names.len() > 400, "{}", names.len());
    assert!(names.contains(&"hadoop.common.RpcSaslProto.SaslAuth"));
    for schema in SCHEMAS {
        assert!(schema.fields.is_sorted_by_key(|field| field.number), "{}", schema.name);
    }
}

#[test]
fn names_are_found_while_compiling_as_at_run_time() {
    assert_eq!(schema_of("hadoop.hdfs", "MkdirsRequestProto").map(|index| SCHEMAS[index].name), {
        find("hadoop.hdfs.MkdirsRequestProto").map(|schema| schema.name)
    });
    for (package, name) in [("hadoop.hdfs", "Mkdirs"), ("", ""), ("hadoop", "hdfs"), ("z", "z")] {
        assert_eq!(schema_of(package, name), None);
    }
}

/// A nested message is looked up by its bare name first, which must then mean nothing else.
#[test]
fn no_nested_message_is_called_like_one_beside_it() {
    for name in messages() {
        let parts: Vec<_> = name.split('.').collect();
        let Some(first) = parts.iter().position(|part| part.starts_with(char::is_uppercase)) else {
            continue;
        };
        let (package, own) = (parts[..first].join("."), parts[parts.len() - 1]);
        if parts.len() > first + 1 {
            assert_eq!(find(&format!("{package}.{own}")).map(|schema| schema.name), None, "{name}");
        }
    }
}

#[test]
fn a_whole_message_passes_and_decodes() {
    let bytes = Bytes::from(mkdirs().encode_to_vec());
    assert_eq!(check("hadoop.hdfs.MkdirsRequestProto", &bytes), Ok(()));
    assert_eq!(decode::<MkdirsRequestProto>(bytes), Ok(mkdirs()));
}

#[test]
fn a_required_field_is_missed_at_every_level() {
    let missing = |bytes: &[u8]| check("hadoop.hdfs.MkdirsRequestProto", bytes).unwrap_err();
    assert_eq!(
        missing(b""),
        DecodeError::MissingField { message: "hadoop.hdfs.MkdirsRequestProto", field: "src" }
    );
    // `masked` is there and empty.
    assert_eq!(
        missing(b"\x0a\x02/a\x12\x00\x18\x01"),
        DecodeError::MissingField { message: "hadoop.hdfs.FsPermissionProto", field: "perm" }
    );
}

#[test]
fn an_enumeration_value_that_nobody_knows_counts_as_absent() {
    let request = crate::hdfs::SetSafeModeRequestProto { action: 99, checked: None };
    let error = decode::<crate::hdfs::SetSafeModeRequestProto>(request.encode_to_vec().into()).unwrap_err();
    assert!(matches!(error, DecodeError::MissingField { field: "action", .. }), "{error}");
}

#[test]
fn the_wire_type_must_match() {
    let error = check("hadoop.hdfs.MkdirsRequestProto", b"\x08\x01").unwrap_err();
    assert!(matches!(error, DecodeError::WrongWireType { field: "src", .. }), "{error}");
}

#[test]
fn text_must_be_utf8() {
    let error = check("hadoop.hdfs.MkdirsRequestProto", b"\x0a\x02/\xff").unwrap_err();
    assert!(matches!(&error, DecodeError::InvalidUtf8 { field: "src", text, .. } if text == "/\u{fffd}"));
}

#[test]
fn unknown_fields_are_passed_over() {
    let mut bytes = mkdirs().encode_to_vec();
    bytes.extend_from_slice(b"\xa2\x06\x03abc\xa8\x06\x07\xb1\x0612345678\xb5\x061234");
    assert_eq!(decode::<MkdirsRequestProto>(bytes.into()), Ok(mkdirs()));
}

#[test]
fn lengths_past_the_end_and_endless_varints_are_refused() {
    let check = |bytes: &[u8]| check("hadoop.hdfs.MkdirsRequestProto", bytes).unwrap_err();
    assert_eq!(check(b"\x0a\x05/a"), DecodeError::LengthPastEnd { length: 5, present: 2 });
    assert_eq!(check(&[0xff; 11]), DecodeError::VarintTooLong);
    assert_eq!(check(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), DecodeError::VarintTooLong);
    let longest = check(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    assert_eq!(longest, DecodeError::LengthPastEnd { length: u64::MAX, present: 0 });
    assert_eq!(check(b"\x02\x00"), DecodeError::InvalidKey(2));
}

#[test]
fn nesting_has_an_end() {
    // A reencryption key or a located block cannot hold itself; groups of unknown fields can.
    let groups = |depth: usize| [vec![0x9b, 6], vec![0x9c, 6]].map(|key| key.repeat(depth)).concat();
    let name = "hadoop.hdfs.GetServerDefaultsRequestProto";
    assert_eq!(check(name, &groups(DEPTH_MAX as usize)), Ok(()));
    assert_eq!(check(name, &groups(DEPTH_MAX as usize + 1)), Err(DecodeError::TooDeep));
    assert_eq!(check(name, &groups(10_000)), Err(DecodeError::TooDeep));
    assert_eq!(check(name, b"\x9c\x06"), Err(DecodeError::GroupEndWithoutStart));
}

#[test]
fn a_name_that_is_no_message_is_refused() {
    assert_eq!(check("a.B", b""), Err(DecodeError::UnknownMessage("a.B".into())));
}

/// Writes a message of a schema from a stream of choices: all required fields, some of the others.
fn put_message(out: &mut BytesMut, schema: &Schema, choices: &mut impl FnMut() -> u64, depth: u32) {
    for field in schema.fields {
        let count = match (field.required_bit != 0, field.repeated) {
            (true, _) => 1,
            (false, true) => choices() % 3,
            (false, false) => choices() % 2,
        };
        for _ in 0..count {
            let key = |wire_type: u64| u64::from(field.number) << 3 | wire_type;
            match field.kind {
                Kind::Varint => {
                    put_varint(out, key(0));
                    put_varint(out, choices());
                }
                Kind::Enum(index) => {
                    let values = ENUMS[usize::from(index)];
                    put_varint(out, key(0));
                    put_varint(out, values[choices() as usize % values.len()] as u64);
                }
                Kind::Fixed64 => {
                    put_varint(out, key(1));
                    out.put_u64_le(choices());
                }
                Kind::Fixed32 => {
                    put_varint(out, key(5));
                    out.put_u32_le(choices() as u32);
                }
                Kind::String | Kind::Bytes => {
                    let length = choices() % 20;
                    put_varint(out, key(2));
                    put_varint(out, length);
                    out.put_bytes(b'x', length as usize);
                }
                Kind::Message(index) => {
                    if depth == 0 && field.required_bit == 0 {
                        continue;
                    }
                    let mut inner = BytesMut::new();
                    put_message(&mut inner, &SCHEMAS[usize::from(index)], choices, depth.saturating_sub(1));
                    put_varint(out, key(2));
                    put_varint(out, inner.len() as u64);
                    out.put(inner);
                }
            }
        }
    }
}

/// A small generator of choices, from a seed.
fn choices(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % 1000
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Every message that the definitions allow passes, for each message there is.
    #[test]
    fn whole_messages_pass(seed: u64) {
        let mut choices = choices(seed);
        for schema in SCHEMAS {
            let mut bytes = BytesMut::new();
            put_message(&mut bytes, schema, &mut choices, 3);
            prop_assert_eq!(check(schema.name, &bytes), Ok(()), "{}", schema.name);
        }
    }

    /// No bytes make the check panic, or pass it and then fail in prost.
    #[test]
    fn mutated_messages_never_panic_and_what_passes_decodes(
        seed: u64,
        at: prop::sample::Index,
        byte: u8,
        cut: prop::sample::Index,
    ) {
        let mut choices = choices(seed);
        for schema in SCHEMAS {
            let mut bytes = BytesMut::new();
            put_message(&mut bytes, schema, &mut choices, 2);
            if bytes.is_empty() {
                continue;
            }
            let index = at.index(bytes.len());
            bytes[index] = byte;
            let _ = check(schema.name, &bytes);
            let _ = check(schema.name, &bytes[..cut.index(bytes.len())]);
            let bytes = bytes.freeze();
            match schema.name {
                "hadoop.hdfs.CreateRequestProto" => agree::<CreateRequestProto>(schema, bytes),
                "hadoop.hdfs.AddBlockRequestProto" => agree::<AddBlockRequestProto>(schema, bytes),
                "hadoop.hdfs.SetPermissionRequestProto" => agree::<SetPermissionRequestProto>(schema, bytes),
                _ => {}
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        for schema in SCHEMAS {
            let _ = check(schema.name, &bytes);
        }
    }
}

fn agree<M: Message + Default + prost::Name>(schema: &Schema, bytes: Bytes) {
    let checked = check(schema.name, &bytes);
    match decode::<M>(bytes) {
        Ok(_) => assert_eq!(checked, Ok(())),
        Err(DecodeError::Other(error)) => panic!("{} passed the check: {error}", schema.name),
        Err(error) => assert_eq!(checked, Err(error)),
    }
}
