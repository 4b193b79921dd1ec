//! Segments and images: the bytes that last.
