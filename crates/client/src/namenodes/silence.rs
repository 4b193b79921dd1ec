//! A server that says nothing is left as soon as another one leads.
//!
//! A host that is frozen or cut off ends no connection and refuses none, so a call to it would wait for its time-out. A call that
//! has waited for [`SILENCE`] asks its own server whether it says anything at all (`getHAServiceState`, which every server answers for
//! itself). An answer, or a refusal, shows that the server lives, and the call is waited for as long as its time-out allows. If the server
//! says nothing for [`GRACE`], the others are asked whether one of them leads, and the call goes there. While no other server leads, the
//! silent one is waited for: no other would serve the call.
//!
//! The call goes out again under its own name, as after a time-out, and has one effect.

use super::Namenodes;
use proto::{common::HaServiceStateProto, hdfs as p, protocol};
use rpc::{CallError, Client};
use std::{
    future::{self, Future},
    pin::pin,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time};

/// How long a call waits before it asks. Almost all calls are answered within a tenth of this. A group needs longer than this and [`GRACE`]
/// together to replace an active whose host is silent, so asking sooner would bring nothing there.
const SILENCE: Duration = Duration::from_millis(200);
/// How long its own server may take to answer the question before another one counts. Where there are several groups, another active is always
/// there, and a server with much to do must not be left for one that has little.
const GRACE: Duration = Duration::from_millis(150);
/// A server that is at work on a call is asked ever more rarely, and this often at last.
const SILENCE_MAX: Duration = Duration::from_secs(4);
/// How often the others are asked while no one leads, which is about the most that this adds to a takeover.
const ASK_PERIOD: Duration = Duration::from_millis(100);
/// How long one of the others may take to say whether it leads.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);

/// The server that was left last for its silence. Calls that have waited for it since before then need not ask again.
#[derive(Clone, Copy)]
pub(super) struct Left {
    server: usize,
    at: Instant,
}

impl Namenodes {
    /// The answer of `call`, which goes to `client`, the server of this index.
    ///
    /// # Errors
    /// Those of the call; [`CallError::Timeout`] once the server is silent and another one leads, which then is the current one.
    pub(super) async fn unless_silent<A>(
        &self,
        index: usize,
        client: &Client,
        call: impl Future<Output = Result<A, CallError>>,
    ) -> Result<A, CallError> {
        // Other protocols do not have the question.
        if self.protocol != protocol::CLIENT_NAMENODE || self.clients.read().len() < 2 {
            return call.await;
        }
        let began = Instant::now();
        let mut call = pin!(call);
        let mut patience = SILENCE;
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return answer,
                () = time::sleep(patience) => {}
            }
            tokio::select! {
                biased;
                answer = &mut call => return answer,
                is_left = self.is_to_be_left(index, client, began) => {
                    if is_left {
                        let ms = began.elapsed().as_millis() as u64;
                        return Err(CallError::Timeout { ms });
                    }
                }
            }
            patience = (patience * 2).min(SILENCE_MAX);
        }
    }

    /// Asks until the server says something, or another one leads. One call at a time asks.
    async fn is_to_be_left(&self, index: usize, client: &Client, call_began: Instant) -> bool {
        let mut left = self.left.lock().await;
        if left.is_some_and(|left| left.server == index && left.at > call_began) {
            return true;
        }
        // All servers are asked under one client id, so one of their clients gives the names: the one that names the calls.
        let namer = self.clients.read()[0].clone();
        let mut lives = pin!(says_anything(client, &namer));
        if time::timeout(GRACE, &mut lives).await.is_ok() {
            return false;
        }
        let others: Vec<(usize, Client)> =
            self.clients.read().iter().cloned().enumerate().filter(|(other, _)| *other != index).collect();
        tokio::select! {
            biased;
            () = lives => false,
            leader = first_that_leads(others, &namer) => {
                tracing::info!(silent = client.address(), "another server leads and is asked from now on");
                self.current.store(leader, Ordering::Relaxed);
                *left = Some(Left { server: index, at: Instant::now() });
                true
            }
        }
    }
}

/// Asks each of these from time to time until one leads.
async fn first_that_leads(servers: Vec<(usize, Client)>, namer: &Client) -> usize {
    let mut asked = JoinSet::new();
    for (index, client) in servers {
        let namer = namer.clone();
        asked.spawn(async move {
            while !leads(&client, &namer).await {
                time::sleep(ASK_PERIOD).await;
            }
            index
        });
    }
    match asked.join_next().await {
        Some(Ok(index)) => index,
        // The runtime ends.
        _ => future::pending().await,
    }
}

async fn leads(client: &Client, namer: &Client) -> bool {
    let state = time::timeout(ASK_TIMEOUT, state(client, namer)).await;
    matches!(state, Ok(Ok(HaServiceStateProto::Active)))
}

/// Returns once the server has said anything. A connection that cannot be made, or breaks, says nothing.
async fn says_anything(client: &Client, namer: &Client) {
    match state(client, namer).await {
        Ok(_) | Err(CallError::Remote { .. } | CallError::Decode(_)) => {}
        Err(CallError::Connect(_) | CallError::Io(_) | CallError::Timeout { .. }) => future::pending().await,
    }
}

/// What a server says of itself.
///
/// The question needs a name that no call has: calls are named by `namer`, whatever server they go to, and two calls of one name on one
/// connection would get each other's answers.
async fn state(client: &Client, namer: &Client) -> Result<HaServiceStateProto, CallError> {
    let request = p::HaServiceStateRequestProto {};
    let answer: p::HaServiceStateResponseProto =
        client.call_as(namer.new_call(), "getHAServiceState", &request).await?;
    Ok(answer.state())
}

#[cfg(test)]
mod tests;
