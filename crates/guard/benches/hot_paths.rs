//! Counts the instructions of the hot paths. `make instructions` runs it and judges.

use guard::{read::Block, report::Report, tree::Tree};
use gungraun::{library_benchmark, library_benchmark_group, main};
use std::hint::black_box;

/// The one of the servers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// What was prepared is given back, so that taking it apart does not count.

#[library_benchmark(setup = Tree::to_ask)]
#[bench::thousand()]
fn stat(mut tree: Tree) -> Tree {
    tree.stat();
    black_box(tree)
}

#[library_benchmark(setup = Tree::to_change)]
#[bench::thousand()]
fn create(mut tree: Tree) -> Tree {
    tree.create();
    black_box(tree)
}

#[library_benchmark(setup = Tree::to_empty)]
#[bench::thousand()]
fn delete(mut tree: Tree) -> Tree {
    tree.delete();
    black_box(tree)
}

#[library_benchmark(setup = Report::to_take)]
#[bench::ten_thousand_blocks()]
fn report(mut report: Report) -> Report {
    black_box(report.take());
    report
}

#[library_benchmark(setup = Block::to_read)]
#[bench::mebibyte()]
fn read(mut block: Block) -> Block {
    black_box(block.read());
    block
}

library_benchmark_group!(name = hot_paths, benchmarks = [stat, create, delete, report, read]);
main!(library_benchmark_groups = hot_paths);
