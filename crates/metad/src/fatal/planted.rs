//! A request that makes the writer panic, for stories about that. It is there only where the feature `planted-panics` was
//! asked for, which no shipped program is built with.

use rpc::Call;

/// A call that names such a path ends the server that works on it.
const PATH: &[u8] = b"/planted-panic-in-the-writer";

pub fn strike(call: &Call) {
    assert!(!call.request.windows(PATH.len()).any(|bytes| bytes == PATH), "planted by a story");
}
