//! How long a client of a group waits for one member before it turns to the next. The native client uses these
//! numbers, and stock clients are configured with them, so that they notice within about a second and a half that a
//! member is silent. The native client notices it sooner, once another member leads (`namenodes::silence`).
//!
//! The default numbers follow from Hadoop's client:
//! - A server that died refuses connections or resets them, which the client sees at once. A server that is frozen or
//!   cut off says nothing: then `ipc.client.rpc-timeout.ms` ends the wait. It counts the time without a byte from the
//!   server while calls are outstanding; pings, which servers do not answer, change nothing about it. A connection
//!   that is only being made is given up after `ipc.client.connect.timeout`.
//! - The same key bounds two other things in Hadoop's client: a `close` that waits for a data server's report gives up when
//!   it is over, and leases are renewed twice within it. Where it is 0 and `ipc.client.ping` is false, `ipc.ping.interval` ends
//!   the wait for a silent server instead, and bounds nothing else. So stock clients are told that.
//! - A `close` then waits as often as `dfs.client.block.write.locateFollowingBlock.retries` says, first 400 ms and each time
//!   twice as long; so does a writer that wants a further block.
//! - The first failover of a call is immediate; the pause before the next is
//!   `dfs.client.failover.sleep.base.millis` times 2, 4, 8 …, give or take half, up to `…sleep.max.millis`.
//! - A failover proxy makes no second attempt at a connection (`dfs.client.failover.connection.retries` and
//!   `…on.timeouts` are 0 unless set): the next server is asked.
//! - A call that was sent and not answered goes to the next server under the same name (client id and call id),
//!   and has one effect.
//!
//! Members hold calls while no active is known, for less than the client's own patience ([`HOLD_MS`]): a held
//! call is answered the moment that the new active serves, a refused one waits for the client's pause.

/// The silence after which a client turns to another member.
pub const RPC_TIMEOUT_MS: u64 = 1_500;

/// How long members may hold a call of such a client: so much less than its patience that the answer is on its way
/// in time.
pub const HOLD_MS: u64 = 1_200;

/// A connection to a server of the same network stands in far less; one to a server that is cut off never does.
pub const CONNECT_TIMEOUT_MS: u64 = 1_000;

/// The longest that a group may be without an active, or without enough members in sync, while nobody has failed for good:
/// a silent machine, a ZooKeeper that restarts, a member that reads its journal again. A client that is told to come again, or to ask
/// another server, goes on for longer than this.
pub const TAKEOVER_MAX_MS: u64 = 60_000;

/// A member lets go of a call before the client does.
const _: () = assert!(HOLD_MS + 100 < RPC_TIMEOUT_MS && CONNECT_TIMEOUT_MS < RPC_TIMEOUT_MS);
