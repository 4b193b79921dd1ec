//! How many servers a demo has, and how they are numbered.

use super::Args;
use anyhow::bail;
use base::{GroupId, MemberId};
use std::path::{Path, PathBuf};

/// The directory of a lone metadata server; those of groups are numbered.
pub const LONE_MEMBER: &str = "meta";
/// The numbers of the members of one group lie within so many.
const NUMBERS: u16 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One metadata server, which keeps its view itself.
    Alone,
    /// So many groups of so many members each.
    Groups { groups: u16, members: u16 },
}

impl Shape {
    /// The shape of the demo in this directory; `None` where there is no demo.
    pub fn of(dir: &Path) -> Option<Self> {
        if dir.join(LONE_MEMBER).exists() {
            return Some(Self::Alone);
        }
        let is_there = |group, index| directory(dir, member(group, index)).exists();
        let members = (1..).take_while(|index| is_there(1, *index)).count() as u16;
        let groups = (1..).take_while(|group| is_there(*group, 1)).count() as u16;
        (members > 0).then_some(Self::Groups { groups, members })
    }

    /// The shape that is asked for. A demo that is there keeps its own.
    pub fn wanted(args: &Args, made: Option<Self>) -> anyhow::Result<Self> {
        let Some(made) = made else {
            return Ok(match (args.groups.unwrap_or(1), args.members.unwrap_or(1)) {
                (1, 1) => Self::Alone,
                (groups, members) => Self::Groups { groups, members },
            });
        };
        for (option, wanted, made) in
            [("members", args.members, made.members()), ("groups", args.groups, made.groups())]
        {
            if let Some(wanted) = wanted.filter(|wanted| *wanted != made) {
                bail!(
                    "{} was made with {made} {option}, not {wanted}; name another directory, or leave --{option} out",
                    args.dir.display()
                );
            }
        }
        Ok(made)
    }

    fn members(self) -> u16 {
        match self {
            Self::Alone => 1,
            Self::Groups { members, .. } => members,
        }
    }

    fn groups(self) -> u16 {
        match self {
            Self::Alone => 1,
            Self::Groups { groups, .. } => groups,
        }
    }
}

/// The number of a member: group 2 has 11, 12, …
pub fn member(group: u16, index: u16) -> MemberId {
    MemberId((NUMBERS * (group - 1) + index).into())
}

pub fn group(number: u16) -> GroupId {
    GroupId(number.into())
}

/// The directory of a member.
pub fn directory(dir: &Path, member: MemberId) -> PathBuf {
    dir.join(format!("{LONE_MEMBER}-{member}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_keeps_its_shape() {
        let dir = std::env::temp_dir().join(format!("clover-demo-shape-{}", std::process::id()));
        let made = |names: &[&str]| {
            let _ = std::fs::remove_dir_all(&dir);
            names.iter().for_each(|name| std::fs::create_dir_all(dir.join(name)).unwrap());
            Shape::of(&dir)
        };
        assert_eq!(made(&[]), None);
        assert_eq!(made(&["meta"]), Some(Shape::Alone));
        assert_eq!(made(&["meta-1", "meta-2"]), Some(Shape::Groups { groups: 1, members: 2 }));
        let three = made(&["meta-1", "meta-2", "meta-11", "meta-12", "meta-21", "meta-22"]);
        assert_eq!(three, Some(Shape::Groups { groups: 3, members: 2 }));
        std::fs::remove_dir_all(&dir).unwrap();

        let args = |groups, members| Args {
            dir: dir.clone(),
            members,
            groups,
            data_servers: 3,
            rpc_port: 0,
            http_port: 0,
            with_load: false,
            set: Vec::new(),
        };
        assert_eq!(Shape::wanted(&args(None, None), None).unwrap(), Shape::Alone);
        assert_eq!(
            Shape::wanted(&args(Some(2), None), None).unwrap(),
            Shape::Groups { groups: 2, members: 1 }
        );
        assert_eq!(Shape::wanted(&args(None, Some(2)), three).unwrap(), three.unwrap());
        let refusal = Shape::wanted(&args(Some(2), None), three).unwrap_err().to_string();
        assert!(refusal.contains("was made with 3 groups, not 2"), "{refusal}");
        assert!(Shape::wanted(&args(None, Some(3)), Some(Shape::Alone)).is_err());
    }
}
