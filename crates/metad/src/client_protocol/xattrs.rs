//! Extended attributes.

use super::calls::{self, asked, decode};
use crate::core::Core;
use bytes::Bytes;
use namespace::{
    ops::set_xattrs,
    reads::get_xattrs,
    xattr::{Space, Xattr, XattrName},
};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

fn name_of(xattr: &p::XAttrProto) -> XattrName {
    use p::x_attr_proto::XAttrNamespaceProto;
    let space = match xattr.namespace() {
        XAttrNamespaceProto::User => Space::User,
        XAttrNamespaceProto::Trusted => Space::Trusted,
        XAttrNamespaceProto::Security => Space::Security,
        XAttrNamespaceProto::System => Space::System,
        XAttrNamespaceProto::Raw => Space::Raw,
    };
    XattrName { space, name: xattr.name.as_str().into() }
}

pub fn to_proto(xattr: &Xattr) -> p::XAttrProto {
    let value = (!xattr.value.is_empty()).then(|| Bytes::copy_from_slice(&xattr.value));
    p::XAttrProto { value, ..name_to_proto(&xattr.name) }
}

pub fn name_to_proto(name: &XattrName) -> p::XAttrProto {
    // The number counts as Hadoop does.
    p::XAttrProto { namespace: name.space as i32, name: name.name.clone().into(), value: None }
}

pub fn set_xattr(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetXAttrRequestProto>(&call, reply) else { return };
    let xattr = request.x_attr.unwrap_or_default();
    let request = set_xattrs::Request {
        path: request.src,
        name: name_of(&xattr),
        value: xattr.value.map(Vec::from),
        flags: request.flag.unwrap_or(0),
    };
    calls::write(core, call, reply, request, |_, _| p::SetXAttrResponseProto {});
}

pub fn remove_xattr(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RemoveXAttrRequestProto>(&call, reply) else { return };
    let name = name_of(&request.x_attr.unwrap_or_default());
    let request = set_xattrs::Removal { path: request.src, name };
    calls::write(core, call, reply, request, |_, _| p::RemoveXAttrResponseProto {});
}

pub fn get_xattrs(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetXAttrsRequestProto| get_xattrs::Request {
        names: message.x_attrs.iter().map(name_of).collect(),
        path: message.src,
    };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, found| {
        Ok(p::GetXAttrsResponseProto { x_attrs: found.into_iter().map(to_proto).collect() })
    });
}

pub fn list_xattrs(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::ListXAttrsRequestProto| get_xattrs::Listing { path: message.src };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    calls::read(core, &call, reply, &read, |_, found| {
        Ok(p::ListXAttrsResponseProto { x_attrs: found.into_iter().map(to_proto).collect() })
    });
}
