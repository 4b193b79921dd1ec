//! The program `clover`.
//!
//! It chooses the allocator and nothing else: all that the program does is in the library of this crate, which `clover-bench`
//! uses as well, with an allocator that counts.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
