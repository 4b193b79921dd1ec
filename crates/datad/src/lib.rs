//! The data service: drives blockstore and pipeline.
