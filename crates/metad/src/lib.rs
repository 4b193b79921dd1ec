//! The metadata service: drives namespace, blocks and group over journal, coord and rpc.
