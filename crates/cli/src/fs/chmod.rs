//! `chmod`: changes modes, given in octal or as `u+x,go-w`.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
    walk::Walk,
};

/// Change modes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Everything below directories, too.
    #[arg(short = 'R')]
    recursive: bool,
    /// Three or four octal digits, or changes such as u+x,go-w,o=r,+t,a+X.
    #[arg(allow_hyphen_values = true)]
    mode: String,
    /// What to change.
    #[arg(required = true)]
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let change = Change::parse(&args.mode).ok_or_else(|| {
        Failure::Usage(format!("chmod : mode '{}' does not match the expected pattern.", args.mode))
    })?;
    for item in shell.expand_all(&args.paths).await {
        let existing = item.existing().map(drop);
        if shell.check(existing).is_none() {
            continue;
        }
        let mut walk = Walk::new(item);
        while let Some(item) = walk.next().await {
            if let Some(item) = shell.check(item) {
                let outcome = apply(&change, &item).await;
                shell.check(outcome);
            }
            if !args.recursive {
                break;
            }
        }
    }
    Ok(())
}

async fn apply(change: &Change, item: &Item) -> Outcome {
    let status = item.existing()?;
    let mode = change.apply(status.mode, status.is_dir());
    if mode == status.mode {
        return Ok(());
    }
    item.fs
        .set_permission(&item.path, mode)
        .await
        .map_err(|error| Failure::Other(format!("changing permissions of '{}': {error}", item.shown)))
}

/// A change of a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    clauses: Vec<Clause>,
}

/// One of `u+x`, `go=r`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Clause {
    /// Bits 2, 1 and 0: user, group, others.
    who: u16,
    operator: char,
    /// `rwx` as 7.
    bits: u16,
    /// `X`: `x` where it makes sense.
    execute_if_sensible: bool,
    sticky: bool,
}

impl Change {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.strip_prefix('+').unwrap_or(text);
        if (3..=4).contains(&digits.len()) && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit)) {
            let mode = u16::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o1777)?;
            return Some(Self::to_mode(mode));
        }
        let clauses: Option<Vec<_>> = text
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|part| !part.is_empty())
            .map(Clause::parse)
            .collect();
        clauses.filter(|clauses| !clauses.is_empty()).map(|clauses| Self { clauses })
    }

    fn to_mode(mode: u16) -> Self {
        let clause = |who: u16, bits: u16| Clause {
            who,
            operator: '=',
            bits: bits & 7,
            execute_if_sensible: false,
            sticky: mode & 0o1000 != 0,
        };
        Self { clauses: vec![clause(4, mode >> 6), clause(2, mode >> 3), clause(1, mode)] }
    }

    pub fn apply(&self, mode: u16, is_dir: bool) -> u16 {
        let may_execute = is_dir || mode & 0o111 != 0;
        self.clauses.iter().fold(mode & 0o1777, |mode, clause| clause.apply(mode, may_execute))
    }
}

impl Clause {
    fn parse(text: &str) -> Option<Self> {
        let operator_at = text.find(['+', '-', '='])?;
        let mut who = 0;
        for letter in text[..operator_at].chars() {
            who |= match letter {
                'u' => 4,
                'g' => 2,
                'o' => 1,
                'a' => 7,
                _ => return None,
            };
        }
        let mut clause = Self {
            who: if who == 0 { 7 } else { who },
            operator: text[operator_at..].chars().next()?,
            bits: 0,
            execute_if_sensible: false,
            sticky: false,
        };
        let letters = &text[operator_at + 1..];
        for letter in letters.chars() {
            match letter {
                'r' => clause.bits |= 4,
                'w' => clause.bits |= 2,
                'x' => clause.bits |= 1,
                'X' => clause.execute_if_sensible = true,
                't' => clause.sticky = true,
                _ => return None,
            }
        }
        (!letters.is_empty()).then_some(clause)
    }

    fn apply(&self, mode: u16, may_execute: bool) -> u16 {
        let mut new = mode;
        for shift in [6, 3, 0] {
            if !self.concerns(shift) {
                continue;
            }
            let old = (mode >> shift) & 7;
            let x = u16::from(self.execute_if_sensible && (may_execute || old & 1 != 0));
            let bits = self.bits | x;
            let changed = match self.operator {
                '+' => old | bits,
                // `-X` takes `x` away wherever it is.
                '-' => old & !(self.bits | u16::from(self.execute_if_sensible)),
                _ => bits,
            };
            new = (new & !(7 << shift)) | (changed << shift);
        }
        // The sticky bit belongs to the part of the others.
        if self.concerns(0) {
            match (self.operator, self.sticky) {
                ('+', true) => new |= 0o1000,
                ('-', true) => new &= !0o1000,
                ('=', sticky) => new = (new & !0o1000) | (u16::from(sticky) << 9),
                _ => {}
            }
        }
        new
    }

    fn concerns(&self, shift: u16) -> bool {
        self.who & (1 << (shift / 3)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_change_as_asked() {
        for (change, before, is_dir, after) in [
            ("755", 0o644, false, 0o755),
            ("1777", 0o755, true, 0o1777),
            ("0755", 0o1777, true, 0o755),
            ("u+x", 0o644, false, 0o744),
            ("go-w", 0o666, false, 0o644),
            ("a=r", 0o777, false, 0o444),
            ("+t", 0o777, true, 0o1777),
            ("-t", 0o1777, true, 0o777),
            ("-x", 0o755, false, 0o644),
            ("u=rwx,g=rx", 0o007, false, 0o757),
            ("a+X", 0o644, false, 0o644),
            ("a+X", 0o644, true, 0o755),
            ("a+X", 0o744, false, 0o755),
        ] {
            let parsed = Change::parse(change).unwrap();
            assert_eq!(parsed.apply(before, is_dir), after, "{change} {before:o}");
        }
    }

    #[test]
    fn nonsense_is_no_change() {
        for text in ["", "7", "77", "888", "2755", "u", "u+", "o=", "z+x", "u+q", "u~x", "rwx"] {
            assert_eq!(Change::parse(text), None, "{text}");
        }
    }
}
