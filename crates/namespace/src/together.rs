//! Work in pieces, which a driver may give to several threads.

/// Work that may be done by any thread.
pub type Piece<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Carries out all pieces, in any order or at the same time, and returns when all are done.
pub type Together<'a> = &'a dyn Fn(Vec<Piece<'_>>);

/// For a caller with a single thread: carries out the pieces one by one.
pub const ONE_BY_ONE: Together<'static> =
    &|pieces: Vec<Piece<'_>>| pieces.into_iter().for_each(|piece| piece());
