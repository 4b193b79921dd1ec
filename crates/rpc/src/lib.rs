//! Hadoop RPC as a service: framing loops, server and client.
//!
//! A [`Server`] reads calls from many connections and hands each to a [`Service`], in place, on the task that
//! read it; the service answers through a [`Replier`], now or later. A [`Client`] is the other end: many
//! calls in flight on one connection, which it makes anew when it breaks.
//!
//! This crate never learns what a method means. It knows frames, headers, connection contexts and the
//! exceptions of the RPC layer itself; the bytes are `proto::rpc_frame`'s.
//!
//! Authentication is SIMPLE: a name is believed. SASL will have its place in [`server::negotiation`].

pub mod client;
pub mod error;
pub mod local;
pub mod null_service;
pub mod server;
pub mod service;
pub mod streaming;

pub use client::{CallIdentity, Client, ClientOptions};
pub use error::{CallError, RpcError};
pub use null_service::NullService;
pub use server::{CallerResolver, Limits, Load, Server, ServerConfig};
pub use service::{Answer, Call, NoResponse, Replier, Service};
