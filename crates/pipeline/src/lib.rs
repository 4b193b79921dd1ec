//! The data-transfer machines of writer, relay and reader.
