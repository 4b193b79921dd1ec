//! Extended attributes, in the three forms of their values.

use super::named;
use client::xattr::{Encoding, name_of};
use proto::hdfs::XAttrProto;
use serde_json::{Value, json};

pub fn xattrs(xattrs: &[XAttrProto], encoding: Encoding) -> Value {
    let one = |xattr: &XAttrProto| {
        let value = xattr.value.as_ref().filter(|value| !value.is_empty());
        json!({ "name": name_of(xattr), "value": value.map(|value| encoding.encode(value)) })
    };
    named("XAttrs", xattrs.iter().map(one).collect::<Vec<_>>())
}

/// The list of names stands as JSON within a text, as in Hadoop.
pub fn xattr_names(xattrs: &[XAttrProto]) -> Value {
    let names: Vec<_> = xattrs.iter().map(name_of).collect();
    named("XAttrNames", json!(names).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::hdfs::x_attr_proto::XAttrNamespaceProto;

    #[test]
    fn values_have_the_mark_of_their_form() {
        let xattr = |value: Option<&'static [u8]>| XAttrProto {
            namespace: XAttrNamespaceProto::User as i32,
            name: "a".into(),
            value: value.map(bytes::Bytes::from_static),
        };
        let told = |value, encoding| xattrs(&[xattr(value)], encoding)["XAttrs"][0]["value"].clone();
        assert_eq!(told(Some(b"ab"), Encoding::Hex), "0x6162");
        assert_eq!(told(Some(b"ab"), Encoding::Base64), "0sYWI=");
        assert_eq!(told(Some(b"ab"), Encoding::Text), "\"ab\"");
        assert_eq!(told(Some(b""), Encoding::Hex), Value::Null);
        assert_eq!(told(None, Encoding::Hex), Value::Null);
        assert_eq!(xattr_names(&[xattr(None)]), json!({ "XAttrNames": "[\"user.a\"]" }));
    }
}
