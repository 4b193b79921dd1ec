//! `VERSION` files: Java properties that say whose a directory is.

use crate::{error::OpenError, layout::LAYOUT_VERSION};
use env::{Disk, OpenMode, disk::read_exact_at};
use std::{collections::BTreeMap, path::Path};

/// A VERSION file has a handful of short lines; anything longer is not one.
const LENGTH_MAX: u64 = 64 << 10;

/// The lines of a VERSION file, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    pub properties: BTreeMap<String, String>,
}

impl Version {
    /// Reads the file; `None` when there is none.
    ///
    /// # Errors
    /// [`OpenError::Io`] if the file cannot be read, [`OpenError::Version`] if it is too long or is not text.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, OpenError> {
        Self::read_as(disk, path, OpenMode::Read)
    }

    /// Like [`Version::read`], but what the medium has, not what memory has of it.
    ///
    /// # Errors
    /// Those of [`Version::read`].
    pub fn read_medium(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, OpenError> {
        Self::read_as(disk, path, OpenMode::ReadMedium)
    }

    fn read_as(disk: &dyn Disk, path: &Path, mode: OpenMode) -> Result<Option<Self>, OpenError> {
        let io = |error| OpenError::Io { path: path.into(), error };
        if !disk.exists(path).map_err(io)? {
            return Ok(None);
        }
        let file = disk.open(path, mode).map_err(io)?;
        let length = file.length().map_err(io)?;
        if length > LENGTH_MAX {
            return Err(OpenError::Version {
                path: path.into(),
                what: format!("{length} bytes long, a VERSION file has at most {LENGTH_MAX}"),
            });
        }
        let mut bytes = vec![0; length as usize];
        read_exact_at(&*file, &mut bytes, 0).map_err(io)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| OpenError::Version { path: path.into(), what: "not text".into() })?;
        Ok(Some(Self::parse(&text)))
    }

    /// Replaces the file, so that a crash leaves the old one or the new one.
    ///
    /// # Errors
    /// [`OpenError::Io`] if the file cannot be written, synced or renamed.
    pub fn write(&self, disk: &dyn Disk, path: &Path) -> Result<(), OpenError> {
        let io = |error| OpenError::Io { path: path.into(), error };
        let fresh = path.with_extension("tmp");
        let file = disk.open(&fresh, OpenMode::CreateOrTruncate).map_err(io)?;
        file.write_at(self.render().as_bytes(), 0).map_err(io)?;
        file.sync_data().map_err(io)?;
        disk.rename(&fresh, path).map_err(io)?;
        if let Some(parent) = path.parent() {
            disk.sync_directory(parent).map_err(io)?;
        }
        Ok(())
    }

    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.properties.insert(key.into(), value.to_string());
        self
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    /// # Errors
    /// [`OpenError::Version`] if the file has no such key.
    pub fn require(&self, path: &Path, key: &str) -> Result<&str, OpenError> {
        self.get(key).ok_or_else(|| OpenError::Version { path: path.into(), what: format!("has no {key}") })
    }

    /// # Errors
    /// [`OpenError::Version`] if the file has no such key, or its value is not a number.
    pub fn require_number(&self, path: &Path, key: &str) -> Result<i64, OpenError> {
        let text = self.require(path, key)?;
        text.parse().map_err(|_| OpenError::Version {
            path: path.into(),
            what: format!("{key} is `{text}`, which is not a number"),
        })
    }

    /// Lines that make no sense are left out: a missing key is what gets reported.
    fn parse(text: &str) -> Self {
        let mut properties = BTreeMap::new();
        for line in text.lines().map(str::trim_start) {
            if line.starts_with(['#', '!']) {
                continue;
            }
            let mut key = String::new();
            let mut value = String::new();
            let mut in_key = true;
            let mut chars = line.trim_end().chars();
            while let Some(char) = chars.next() {
                match char {
                    '\\' => (if in_key { &mut key } else { &mut value }).extend(chars.next()),
                    '=' | ':' if in_key => in_key = false,
                    char => (if in_key { &mut key } else { &mut value }).push(char),
                }
            }
            if !in_key {
                properties.insert(key.trim_end().into(), value.trim_start().into());
            }
        }
        Self { properties }
    }

    fn render(&self) -> String {
        let mut text = String::from("#written by Clover\n");
        for (key, value) in &self.properties {
            text.push_str(key);
            text.push('=');
            for char in value.chars() {
                if matches!(char, '\\' | ':' | '=' | '#' | '!') {
                    text.push('\\');
                }
                text.push(char);
            }
            text.push('\n');
        }
        text
    }
}

/// Refuses a directory of another layout.
///
/// # Errors
/// [`OpenError::Layout`] if the layout is not [`LAYOUT_VERSION`], [`OpenError::Version`] if the file does not tell it.
pub(crate) fn check_layout(path: &Path, version: &Version) -> Result<(), OpenError> {
    match version.require_number(path, "layoutVersion")? {
        LAYOUT_VERSION => Ok(()),
        found => Err(OpenError::Layout { path: path.into(), found, supported: LAYOUT_VERSION }),
    }
}

/// Compares what was found with what the metadata server says.
///
/// # Errors
/// [`OpenError::Foreign`] if the two differ.
pub(crate) fn check<T: PartialEq + ToString + ?Sized>(
    path: &Path,
    key: &'static str,
    found: &T,
    wanted: &T,
) -> Result<(), OpenError> {
    if found == wanted {
        return Ok(());
    }
    let (found, wanted) = (found.to_string(), wanted.to_string());
    Err(OpenError::Foreign { path: path.into(), key, found, wanted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_hadoop_wrote_is_read() {
        let version = Version::parse(
            "#Fri Nov 20 10:00:00 UTC 2026\nstorageID=DS-1\nclusterID=CID\\:x\n cTime = 0\nlayoutVersion=-57\n\nnonsense\n",
        );
        assert_eq!(version.get("storageID"), Some("DS-1"));
        assert_eq!(version.get("clusterID"), Some("CID:x"));
        assert_eq!(version.get("cTime"), Some("0"));
        assert_eq!(version.require_number(Path::new("V"), "layoutVersion").unwrap(), -57);
        assert!(version.require(Path::new("V"), "namespaceID").is_err());
    }

    #[test]
    fn what_is_written_is_read_back() {
        let version = Version::default().with("a", "x:y=z#\\").with("layoutVersion", -57);
        assert_eq!(Version::parse(&version.render()), version);
    }
}
