//! Connections to data servers.
