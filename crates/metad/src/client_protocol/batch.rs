//! What a batched listing asks for, and the cookie with which it goes on.

use base::FsError;
use bytes::{Buf, Bytes};
use namespace::reads::get_listing;
use proto::hdfs as p;
use rpc::{Call, RpcError};

/// What a call of `getBatchedListing` asks for.
///
/// # Errors
/// The message does not decode, or its cookie is too short.
pub fn batch_of(call: &Call) -> Result<get_listing::Batch, RpcError> {
    let message = call.decode::<p::GetBatchedListingRequestProto>()?;
    let Some(start) = place_of(message.start_after) else {
        let text = "The cookie of the batched listing is too short.";
        return Err(RpcError::from(&FsError::InvalidArgument(text.into())));
    };
    Ok(get_listing::Batch { directories: message.paths, start, need_location: message.need_location })
}

/// The place at which a batched listing goes on. Our cookie is the index of the path, big-endian, and then the name. `None` if it is
/// too short.
pub fn place_of(mut cookie: Bytes) -> Option<(u32, Bytes)> {
    if cookie.is_empty() {
        return Some((0, cookie));
    }
    let index = *cookie.first_chunk()?;
    cookie.advance(index.len());
    Some((u32::from_be_bytes(index), cookie))
}

/// The cookie with which a batched listing goes on behind this name in the path of this index.
pub fn cookie_of(index: u32, name: &[u8]) -> Vec<u8> {
    [&index.to_be_bytes(), name].concat()
}
