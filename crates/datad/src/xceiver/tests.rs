//! Data servers in one process, without a metadata service, and the client's writer and reader over real
//! sockets; where a client must misbehave, raw bytes.

mod cluster;
mod frozen;
mod hostile;
mod local_reads;
mod moves;
mod pressed;
mod recovery;
mod replacement;
mod round_trip;
mod short_circuit;
mod slowness;
