//! The texts of an image, and the numbers that are packed with theirs.

use std::{collections::BTreeMap, io};

/// The numbers of texts have so many bits.
const NUMBER_BITS: u32 = 24;
/// No text.
const NO_TEXT: u32 = 0;

/// Numbers texts in the order in which they are met, from 1 on: users, groups, names of attributes.
#[derive(Default)]
pub struct Strings {
    numbers: BTreeMap<Box<str>, u32>,
}

/// The kind of an entry of an access list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EntryKind {
    User = 0,
    Group = 1,
    Mask = 2,
    Other = 3,
}

/// The namespace of an attribute's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AttributeSpace {
    User = 0,
    Trusted = 1,
    Security = 2,
    System = 3,
    Raw = 4,
}

impl Strings {
    pub fn len(&self) -> u32 {
        self.numbers.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// All texts with their numbers, in the order of texts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.numbers.iter().map(|(text, number)| (&**text, *number))
    }

    fn number(&mut self, text: &str) -> io::Result<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let number = self.numbers.len() as u32 + 1;
        if number >= 1 << NUMBER_BITS {
            let what = "more names of users, groups and attributes than the format can number";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.numbers.insert(text.into(), number);
        Ok(number)
    }

    /// Owner, group and mode in one number.
    ///
    /// # Errors
    /// There are more texts than 24 bits number; likewise below.
    pub fn permission(&mut self, owner: &str, group: &str, mode: u16) -> io::Result<u64> {
        let (owner, group) = (self.number(owner)?, self.number(group)?);
        Ok(u64::from(owner) << 40 | u64::from(group) << 16 | u64::from(mode))
    }

    /// An entry of an access list. `permission`: 4 read, 2 write, 1 execute.
    ///
    /// # Errors
    /// As above.
    pub fn acl_entry(
        &mut self,
        is_default: bool,
        kind: EntryKind,
        name: Option<&str>,
        permission: u8,
    ) -> io::Result<u32> {
        let name = name.map_or(Ok(NO_TEXT), |name| self.number(name))?;
        Ok(name << 6 | u32::from(is_default) << 5 | (kind as u32) << 3 | u32::from(permission & 7))
    }

    /// The name of an extended attribute.
    ///
    /// # Errors
    /// As above.
    pub fn attribute(&mut self, space: AttributeSpace, name: &str) -> io::Result<u32> {
        let space = space as u32;
        Ok((space & 3) << 30 | self.number(name)? << 6 | space >> 2 << 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number_whatever_they_name() {
        let mut strings = Strings::default();
        assert_eq!(strings.permission("ann", "ann", 0o1755).unwrap(), 1 << 40 | 1 << 16 | 0o1755);
        assert_eq!(strings.permission("bob", "ann", 0).unwrap(), 2 << 40 | 1 << 16);
        assert_eq!(strings.acl_entry(false, EntryKind::User, Some("bob"), 6).unwrap(), 2 << 6 | 6);
        assert_eq!(strings.acl_entry(true, EntryKind::Other, None, 5).unwrap(), 1 << 5 | 3 << 3 | 5);
        assert_eq!(strings.attribute(AttributeSpace::User, "color").unwrap(), 3 << 6);
        assert_eq!(strings.attribute(AttributeSpace::System, "ann").unwrap(), 3 << 30 | 1 << 6);
        assert_eq!(strings.attribute(AttributeSpace::Raw, "ann").unwrap(), 1 << 6 | 1 << 5);
        assert_eq!(strings.iter().collect::<Vec<_>>(), [("ann", 1), ("bob", 2), ("color", 3)]);
    }
}
