//! Files that Hadoop and the usual programs wrote, and what becomes of them when bytes change.

use super::Form;
use bytes::Bytes;
use std::{
    io::{self, BufReader},
    path::Path,
};

/// More than any of the files holds: a bomb is not waited for.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The text that `text` prints of a file with this name and these bytes, and the failure with which the decoding ended, if it did.
fn decoded(name: &str, bytes: &[u8]) -> (Vec<u8>, Result<(), String>) {
    let mut text = Vec::new();
    let Some(form) = Form::of(&bytes[..bytes.len().min(16)], name) else { return (text, Ok(())) };
    // A small buffer, so that pieces end everywhere.
    let ended = form.decode(BufReader::with_capacity(7, bytes), &mut |piece: Bytes| {
        text.extend_from_slice(&piece);
        match text.len() <= TEXT_BYTES_MAX {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    });
    (text, ended.map_err(|error| form.complaint(&error)))
}

fn files() -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .filter(|(name, _)| !name.ends_with(".txt"))
        .collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

fn lines() -> Vec<u8> {
    (0..2000)
        .flat_map(|number| format!("line {number} of many lines that look alike\n").into_bytes())
        .collect()
}

#[test]
fn what_other_programs_wrote_is_read() {
    let mut rows = Vec::new();
    for (name, bytes) in files() {
        let (text, ended) = decoded(&name, &bytes);
        assert_eq!(ended, Ok(()), "{name}");
        match name.ends_with(".seq") {
            true => rows.extend_from_slice(&text),
            false => assert!(text == lines(), "{name}"),
        }
    }
    // The file holds the lines as Hadoop's own shell printed them.
    let expected = include_str!("../../../tests/text/sequences.txt");
    assert_eq!(String::from_utf8(rows).unwrap(), expected);
}

#[test]
fn raw_lz4_in_hadoops_blocks_is_read() {
    let lines = lines();
    let mut bytes = (lines.len() as u32).to_be_bytes().to_vec();
    for chunk in lines.chunks(30_000) {
        let chunk = lz4_flex::block::compress(chunk);
        bytes.extend_from_slice(&(chunk.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&chunk);
    }
    let twice = [&bytes[..], &bytes].concat();
    let (text, ended) = decoded("lines.lz4", &twice);
    assert_eq!(ended, Ok(()));
    assert!(text == [&lines[..], &lines].concat());
}

#[test]
fn files_one_behind_the_other_are_read_as_one() {
    for (name, bytes) in files() {
        // Zlib files and Hadoop's sequence files are never joined.
        if name.ends_with(".seq") || name.ends_with(".deflate") {
            continue;
        }
        let (text, ended) = decoded(&name, &[&bytes[..], &bytes].concat());
        assert_eq!(ended, Ok(()), "{name}");
        assert!(text == [lines(), lines()].concat(), "{name}: {} bytes", text.len());
    }
}

#[test]
fn a_file_that_was_cut_is_told() {
    for (name, bytes) in files() {
        for keep in [bytes.len() / 2, bytes.len() - 1] {
            let (_, ended) = decoded(&name, &bytes[..keep]);
            let complaint = ended.expect_err(&name);
            assert!(complaint.contains("it was cut, is not whole yet"), "{name} of {keep}: {complaint}");
        }
    }
}

#[test]
fn promises_are_not_believed() {
    let promised = [&u32::MAX.to_be_bytes()[..], &u32::MAX.to_be_bytes(), b"x"].concat();
    for name in ["x.snappy", "x.lz4"] {
        let complaint = decoded(name, &promised).1.unwrap_err();
        assert!(complaint.contains("the most is 67108864"), "{complaint}");
    }
    // 128 MiB that are not there take no room.
    let promised = [&(1_u32 << 30).to_be_bytes()[..], &(64_u32 << 20).to_be_bytes(), b"x"].concat();
    assert!(decoded("x.snappy", &promised).1.unwrap_err().contains("it was cut"));
    // A snappy chunk of three bytes that says it holds 4 GiB.
    let chunk = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let promised = [&(9_u32).to_be_bytes()[..], &(5_u32).to_be_bytes(), &chunk].concat();
    assert!(decoded("x.snappy", &promised).1.unwrap_err().contains("its block has 9 left"));
    // A zstd frame with a window of a TiB.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 30 << 3, 0, 0, 0, 0];
    assert!(decoded("x.zst", &window).1.unwrap_err().contains("the most is 134217728"));
    let unknown = b"SEQ\x06\x01a\x01b\0\0\0\0\0\0";
    assert!(decoded("x", unknown).1.unwrap_err().contains("of the class a, which is not known"));
    assert!(decoded("x", b"SEQ\x07").1.unwrap_err().contains("of version 7"));
}

#[test]
fn files_that_were_changed_end_in_words_and_never_in_a_panic() {
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let files = files();
    for round in 0..1_500 {
        let (name, bytes) = &files[round % files.len()];
        let mut bytes = bytes.clone();
        for _ in 0..1 + below(4) {
            // The beginning holds most of what is believed.
            let end = if below(2) == 0 { bytes.len().min(96) } else { bytes.len() };
            let at = below(end);
            match below(3) {
                0 => bytes.truncate(at.max(8)),
                1 => bytes[at] = below(256) as u8,
                _ => bytes[at] ^= 1 << below(8),
            }
        }
        if let Err(complaint) = decoded(name, &bytes).1 {
            assert!(!complaint.contains('\n') && complaint.len() < 400, "{name}: {complaint}");
        }
    }
}
