//! Hadoop RPC as a service: framing loops, server and client.
