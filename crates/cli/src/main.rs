//! The `clover` binary: the one place where parts are chosen and wired together.

fn main() {}
