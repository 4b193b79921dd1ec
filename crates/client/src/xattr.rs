//! Extended attributes, by their whole names: `user.checksum`.

mod value;

pub use value::{Encoding, decode};

use crate::{Error, FileSystem, Result};
use base::FsError;
use bytes::Bytes;
use proto::hdfs::{self as p, x_attr_proto::XAttrNamespaceProto};

const SPACES: [(&str, XAttrNamespaceProto); 5] = [
    ("user", XAttrNamespaceProto::User),
    ("trusted", XAttrNamespaceProto::Trusted),
    ("system", XAttrNamespaceProto::System),
    ("security", XAttrNamespaceProto::Security),
    ("raw", XAttrNamespaceProto::Raw),
];

/// One attribute of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xattr {
    pub name: String,
    pub value: Bytes,
}

/// Flags of a set: the attribute may be new (`CREATE`), or may be there (`REPLACE`). At least one is needed.
const CREATE: u32 = 1;
const REPLACE: u32 = 2;

/// An attribute as it crosses the wire.
///
/// # Errors
/// The name has no known namespace ([`FsError::InvalidArgument`]).
pub fn to_wire(name: &str, value: Option<Bytes>) -> Result<p::XAttrProto> {
    let refuse = |why: &str| Err(Error::Fs(FsError::InvalidArgument(why.into())));
    const PREFIX: &str =
        "An XAttr name must be prefixed with user/trusted/security/system/raw, followed by a '.'";
    let Some((prefix, rest)) = name.split_once('.') else { return refuse(PREFIX) };
    if prefix.len() >= 3 && rest.is_empty() {
        return refuse("XAttr name cannot be empty.");
    }
    match SPACES.iter().find(|(known, _)| known.eq_ignore_ascii_case(prefix)) {
        Some((_, space)) => Ok(p::XAttrProto { namespace: *space as i32, name: rest.to_owned(), value }),
        None => refuse(PREFIX),
    }
}

/// The whole name of an attribute that came over the wire.
pub fn name_of(wire: &p::XAttrProto) -> String {
    let space = wire.namespace();
    let prefix = SPACES.iter().find(|(_, known)| *known == space).map_or("", |(prefix, _)| prefix);
    format!("{prefix}.{}", wire.name)
}

fn from_wire(wire: p::XAttrProto) -> Xattr {
    Xattr { name: name_of(&wire), value: wire.value.unwrap_or_default() }
}

impl FileSystem {
    /// Sets an attribute, whether or not it is there.
    ///
    /// # Errors
    /// The name has no known namespace or the value is too long ([`FsError::InvalidArgument`]), this user may not write
    /// the namespace or change the path, or there is no such path; or the call fails: see [`FileSystem::call`].
    pub async fn set_xattr(&self, path: &str, name: &str, value: Option<Bytes>) -> Result<()> {
        let request = p::SetXAttrRequestProto {
            src: path.to_owned(),
            x_attr: Some(to_wire(name, value)?),
            flag: Some(CREATE | REPLACE),
        };
        let _: p::SetXAttrResponseProto = self.call("setXAttr", &request).await?;
        Ok(())
    }

    /// The value of one attribute; an error if it is not there.
    ///
    /// # Errors
    /// The name has no known namespace ([`FsError::InvalidArgument`]), there is no such path or attribute
    /// ([`FsError::NotFound`], [`FsError::XattrNotFound`]), or this user may not see it; or the call fails: see
    /// [`FileSystem::call`].
    pub async fn xattr(&self, path: &str, name: &str) -> Result<Bytes> {
        let request = p::GetXAttrsRequestProto { src: path.to_owned(), x_attrs: vec![to_wire(name, None)?] };
        let response: p::GetXAttrsResponseProto = self.call("getXAttrs", &request).await?;
        Ok(response.x_attrs.into_iter().next().and_then(|xattr| xattr.value).unwrap_or_default())
    }

    /// All attributes that this user may see.
    ///
    /// # Errors
    /// There is no such path, or this user may not read it; or the call fails: see [`FileSystem::call`].
    pub async fn xattrs(&self, path: &str) -> Result<Vec<Xattr>> {
        let request = p::GetXAttrsRequestProto { src: path.to_owned(), x_attrs: Vec::new() };
        let response: p::GetXAttrsResponseProto = self.call("getXAttrs", &request).await?;
        Ok(response.x_attrs.into_iter().map(from_wire).collect())
    }

    /// # Errors
    /// The name has no known namespace ([`FsError::InvalidArgument`]), there is no such path or attribute
    /// ([`FsError::NotFound`], [`FsError::Io`]), or this user may not change it; or the call fails: see
    /// [`FileSystem::call`].
    pub async fn remove_xattr(&self, path: &str, name: &str) -> Result<()> {
        let request = p::RemoveXAttrRequestProto { src: path.to_owned(), x_attr: Some(to_wire(name, None)?) };
        let _: p::RemoveXAttrResponseProto = self.call("removeXAttr", &request).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_as_hadoop_splits_them() {
        let again = |name: &str| match to_wire(name, None) {
            Ok(wire) => from_wire(wire).name,
            Err(error) => error.to_string(),
        };
        for name in ["user.a", "trusted.a.b", "security.x", "system.x", "raw.x"] {
            assert_eq!(again(name), name);
        }
        assert_eq!(again("USER.Big"), "user.Big");
        assert_eq!(again("user."), "XAttr name cannot be empty.");
        for name in ["user", "us.", "nobody.x", ".x", ""] {
            assert!(again(name).starts_with("An XAttr name must be prefixed"), "{name}");
        }
    }
}
