//! Extended attributes, in the three forms of their values.

use super::named;
use crate::operation::XattrEncoding;
use proto::hdfs::{XAttrProto, x_attr_proto::XAttrNamespaceProto};
use serde_json::{Value, json};

fn name(xattr: &XAttrProto) -> String {
    let space = match xattr.namespace() {
        XAttrNamespaceProto::User => "user",
        XAttrNamespaceProto::Trusted => "trusted",
        XAttrNamespaceProto::Security => "security",
        XAttrNamespaceProto::System => "system",
        XAttrNamespaceProto::Raw => "raw",
    };
    format!("{space}.{}", xattr.name)
}

/// A value behind the mark of its form.
fn encode(value: &[u8], encoding: XattrEncoding) -> String {
    match encoding {
        XattrEncoding::Text => format!("\"{}\"", String::from_utf8_lossy(value)),
        XattrEncoding::Hex => value.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
        XattrEncoding::Base64 => format!("0s{}", crate::base64::encode(value)),
    }
}

pub fn xattrs(xattrs: &[XAttrProto], encoding: XattrEncoding) -> Value {
    let one = |xattr: &XAttrProto| {
        let value = xattr.value.as_ref().filter(|value| !value.is_empty());
        json!({ "name": name(xattr), "value": value.map(|value| encode(value, encoding)) })
    };
    named("XAttrs", xattrs.iter().map(one).collect::<Vec<_>>())
}

/// The list of names stands as JSON within a text, as in Hadoop.
pub fn xattr_names(xattrs: &[XAttrProto]) -> Value {
    let names: Vec<_> = xattrs.iter().map(name).collect();
    named("XAttrNames", json!(names).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_mark_of_their_form() {
        let xattr = |value: Option<&'static [u8]>| XAttrProto {
            namespace: XAttrNamespaceProto::User as i32,
            name: "a".into(),
            value: value.map(bytes::Bytes::from_static),
        };
        let told = |value, encoding| xattrs(&[xattr(value)], encoding)["XAttrs"][0]["value"].clone();
        assert_eq!(told(Some(b"ab"), XattrEncoding::Hex), "0x6162");
        assert_eq!(told(Some(b"ab"), XattrEncoding::Base64), "0sYWI=");
        assert_eq!(told(Some(b"ab"), XattrEncoding::Text), "\"ab\"");
        assert_eq!(told(Some(b""), XattrEncoding::Hex), Value::Null);
        assert_eq!(told(None, XattrEncoding::Hex), Value::Null);
        assert_eq!(xattr_names(&[xattr(None)]), json!({ "XAttrNames": "[\"user.a\"]" }));
    }
}
