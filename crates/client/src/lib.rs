//! The native client library.
