//! Hadoop's wildcards: `?`, `*`, `[abc]`, `[a-c]`, `[^a]`, `{ab,cd}` and `\` before a character that means
//! itself.

use super::failure::{Failure, Outcome};

/// Patterns that the braces of one argument may stand for.
const EXPANSIONS_MAX: usize = 4_096;

/// One name of a path, with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Char(char),
    /// `?`
    Any,
    /// `*`
    AnyMany,
    /// `[…]`: ranges, and whether they are what must not be there.
    Class(Vec<(char, char)>, bool),
}

impl Pattern {
    /// Reads one name without braces.
    pub fn parse(text: &str) -> Outcome<Self> {
        let refuse = |reason: &str| Failure::Other(format!("Illegal file pattern: {reason} in `{text}'"));
        let mut parts = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            parts.push(match c {
                '\\' => Part::Char(chars.next().ok_or_else(|| refuse("an escaped character is missing"))?),
                '?' => Part::Any,
                '*' => Part::AnyMany,
                '[' => {
                    let is_negated = chars.next_if(|c| matches!(c, '^' | '!')).is_some();
                    let mut ranges = Vec::new();
                    loop {
                        let low = match chars.next() {
                            None => return Err(refuse("a character class is not closed")),
                            Some(']') if !ranges.is_empty() => break,
                            Some('\\') => {
                                chars.next().ok_or_else(|| refuse("an escaped character is missing"))?
                            }
                            Some(c) => c,
                        };
                        let mut ahead = chars.clone();
                        let high = match (ahead.next(), ahead.next()) {
                            (Some('-'), Some(high)) if high != ']' => {
                                chars = ahead;
                                high
                            }
                            _ => low,
                        };
                        ranges.push((low, high));
                    }
                    Part::Class(ranges, is_negated)
                }
                c => Part::Char(c),
            });
        }
        Ok(Self { parts })
    }

    /// The name itself, where the pattern stands for only one.
    pub fn literal(&self) -> Option<String> {
        let char = |part: &Part| match part {
            Part::Char(c) => Some(*c),
            _ => None,
        };
        self.parts.iter().map(char).collect()
    }

    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        // On a mismatch, the last `*` takes one character more: no recursion, at most length times length.
        let (mut part, mut at) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while at < name.len() || part < self.parts.len() {
            let fits = match self.parts.get(part) {
                Some(Part::AnyMany) => {
                    retry = Some((part, at));
                    part += 1;
                    continue;
                }
                Some(one) => name.get(at).is_some_and(|c| one.fits(*c)),
                None => false,
            };
            if fits {
                part += 1;
                at += 1;
                continue;
            }
            match retry {
                Some((star, from)) if from < name.len() => {
                    retry = Some((star, from + 1));
                    part = star + 1;
                    at = from + 1;
                }
                _ => return false,
            }
        }
        true
    }
}

impl Part {
    fn fits(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::Any | Self::AnyMany => true,
            Self::Class(ranges, is_negated) => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *is_negated
            }
        }
    }
}

/// Whether a path has wildcards at all; where it has none, a missing file is a missing file.
pub fn has_wildcards(path: &str) -> bool {
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '?' | '*' | '[' | '{' => return true,
            _ => {}
        }
    }
    false
}

/// Takes the backslashes out of a path without wildcards.
pub fn unescape(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.extend(chars.next()),
            c => plain.push(c),
        }
    }
    plain
}

/// The paths that the braces stand for: `/{a,b/c}` is `/a` and `/b/c`. Braces may stand in braces.
pub fn expand_braces(path: &str) -> Outcome<Vec<String>> {
    let mut waiting = vec![path.to_owned()];
    let mut expanded = Vec::new();
    while let Some(path) = waiting.pop() {
        match innermost(&path)? {
            None => expanded.push(path),
            Some((open, close)) => {
                let choices = split_choices(&path[open + 1..close]);
                for choice in choices.iter().rev() {
                    waiting.push(format!("{}{choice}{}", &path[..open], &path[close + 1..]));
                }
            }
        }
        if waiting.len() + expanded.len() > EXPANSIONS_MAX {
            let reason =
                format!("Illegal file pattern: its braces stand for more than {EXPANSIONS_MAX} paths");
            return Err(Failure::Other(reason));
        }
    }
    Ok(expanded)
}

/// The positions at which the first innermost pair of braces opens and closes; `None` if the path has no braces.
fn innermost(path: &str) -> Outcome<Option<(usize, usize)>> {
    let mut open = None;
    let mut chars = path.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '{' => open = Some(at),
            '}' => {
                if let Some(open) = open {
                    return Ok(Some((open, at)));
                }
            }
            _ => {}
        }
    }
    match open {
        Some(_) => Err(Failure::Other(format!("Illegal file pattern: Unclosed group in `{path}'"))),
        None => Ok(None),
    }
}

fn split_choices(text: &str) -> Vec<&str> {
    let mut choices = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            ',' => {
                choices.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    choices.push(&text[start..]);
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn wildcards_match_as_in_hadoop() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("*a*b*", "xaxxbx", true),
            ("*a*b*", "xbxa", false),
            ("?b", "ab", true),
            ("?b", "b", false),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[^a-c]x", "dx", true),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("ä?", "äö", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        let worst = "a*".repeat(50) + "b";
        assert!(!matches(&worst, &"a".repeat(2_000)));
    }

    #[test]
    fn broken_patterns_are_refused() {
        for pattern in ["[a", "[", "a\\", "[\\"] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern}");
        }
        assert!(expand_braces("/{a,b").is_err());
        assert!(expand_braces(&"{a,b}".repeat(20)).is_err());
    }

    #[test]
    fn braces_stand_for_several_paths() {
        let expand = |path: &str| expand_braces(path).unwrap().join(" ");
        assert_eq!(expand("/{a,b/c}/d"), "/a/d /b/c/d");
        assert_eq!(expand("{a,b{c,d}}"), "a bc a bd");
        assert_eq!(expand("a\\{b"), "a\\{b");
        assert_eq!(expand("a}"), "a}");
        assert_eq!(expand("{,x}y"), "y xy");
    }

    #[test]
    fn literals_are_known_and_unescaped() {
        assert_eq!(Pattern::parse("a\\*b").unwrap().literal().as_deref(), Some("a*b"));
        assert_eq!(Pattern::parse("a*").unwrap().literal(), None);
        assert!(!has_wildcards("a\\*b"));
        assert!(has_wildcards("a{b"));
        assert_eq!(unescape("a\\*b\\\\"), "a*b\\");
    }
}
