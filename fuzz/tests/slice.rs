//! A short slice of all targets, the same at every run.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Remembers the largest piece of memory that was asked for.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// More than any table of a parser, far less than a hostile length asks for.
const BYTES_MAX: usize = 20 << 20;

/// One test, since the largest allocation belongs to the whole process.
#[test]
fn every_parser_refuses_hostile_bytes() {
    let only = std::env::var("CLOVER_FUZZ_TARGET").ok();
    for target in fuzz::targets() {
        if only.as_ref().is_some_and(|only| only != target.name) {
            continue;
        }
        LARGEST.store(0, Ordering::Relaxed);
        let outcome = fuzz::run(&target, |input| {
            let largest = LARGEST.swap(0, Ordering::Relaxed);
            assert!(
                largest <= BYTES_MAX + 64 * input.len(),
                "{}: {largest} bytes at once for an input of {}",
                target.name,
                input.len()
            );
        });
        println!("{:26} {:8} inputs, {:8} accepted", target.name, outcome.inputs, outcome.accepted);
    }
}
