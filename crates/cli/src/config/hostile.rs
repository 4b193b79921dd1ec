//! Configuration files that nobody meant: the same 3,000 at every run, made from valid ones.

use super::{DATA, META, as_toml, in_order, settings::Settings};

const PIECES: [&str; 12] =
    ["=", "\"", "[", "]]", "\n", "\0", "'''", "99999999999999999999", "-1", "{", "é", "1e999"];

#[test]
fn hostile_files_are_refused_and_never_panic() {
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for round in 0..3_000 {
        let tables = if round % 2 == 0 { META } else { DATA };
        let mut text: Vec<char> = in_order(tables).map(as_toml).collect::<String>().chars().collect();
        for _ in 0..1 + below(6) {
            let at = below(text.len());
            match below(3) {
                0 => drop(text.drain(at..(at + 1 + below(40)).min(text.len()))),
                1 => text[at] = char::from(below(128) as u8),
                _ => drop(text.splice(at..at, PIECES[below(PIECES.len())].chars())),
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = Settings::defaults(tables).read_toml(&text, "hostile.toml") {
            assert!(error.to_string().starts_with("hostile.toml:"), "{error}");
        }
    }
}
