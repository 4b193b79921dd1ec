//! Asks the root group for an allowance, and has the calls that wait for it carried out again.

use super::calls::{Batch, Waits};
use crate::{
    core::Core,
    directories,
    post::{Question, Ways},
};
use base::{CallId, CallOrigin, ClientId, FsError, GroupId, InodeId, directory_log::Dix};
use bytes::Bytes;
use namespace::shares::{self, Lack};
use prost::Message;
use proto::{
    clover::forward::{PostRequestProto, PostResponseProto},
    protocol,
};
use rpc::{Answer, Call, NoResponse, Replier};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::oneshot;

/// How long the root group is asked before the clients are told to come again: longer than another member of it takes to lead.
const PATIENCE_MS: u64 = 10_000;
/// How soon it is asked again.
const PAUSE: Duration = Duration::from_millis(50);
/// How soon this tree is looked at again for the entry with which the root group has answered.
const LOOK: Duration = Duration::from_millis(1);

/// Who asks itself: the root group's active.
const OWN: ClientId = ClientId(*b"clover allowance");

/// Keeps a call until the root group has answered what it lacks. Returns at once.
pub fn ask(core: &Arc<Core>, lack: &Lack, call: Call, reply: Replier) {
    let Some(doors) = &core.doors else { return refuse(&call, reply, "this server cannot ask") };
    let method = call.method;
    let batch = match core.allowances.wait(lack, call, reply) {
        Waits::Later => return,
        Waits::Now(batch) => batch,
        Waits::Refused(reply) => return reply.fs_error(&refusal(method, "others take it first")),
    };
    let (asking, directory) = (Arc::downgrade(core), lack.directory);
    drop(doors.runtime().spawn(async move {
        let mut next = Some(batch);
        while let Some(batch) = next {
            next = ask_for(&asking, directory, batch).await;
        }
    }));
}

fn refusal(method: &str, why: &str) -> FsError {
    FsError::Retry(format!(
        "{method} needs more of a quota than this group of metadata servers may use, and {why}; try again in a moment."
    ))
}

fn refuse(call: &Call, reply: Replier, why: &str) {
    reply.fs_error(&refusal(call.method, why));
}

/// Asks for all of these. Returns what is to be asked next. A server that stops is not kept for its calls: they are given up.
async fn ask_for(asking: &Weak<Core>, directory: InodeId, mut batch: Batch) -> Option<Batch> {
    let lack = Bytes::from(shares::encode(&batch.lack(directory)));
    let calls = std::mem::take(&mut batch.calls);
    let answer = answer(asking, &lack).await?;
    let core = asking.upgrade()?;
    let next = core.allowances.answered(directory, &calls, answer.as_ref().ok().copied());
    match answer {
        Ok(_) => directories::carry_on(&core.partition, calls),
        Err(why) => calls.into_iter().for_each(|(call, reply)| refuse(&call, reply, &why)),
    }
    next
}

/// The entry with which the root group has answered, which this tree has applied. `None`: this server stops.
async fn answer(asking: &Weak<Core>, lack: &Bytes) -> Option<Result<Dix, String>> {
    let began = asking.upgrade()?.moment();
    loop {
        // The server is not kept while it waits.
        let way = Way::of(&asking.upgrade()?, lack);
        let answer = match way {
            // The calls go on where another member leads.
            Way::NotHere => return Some(Ok(Dix(0))),
            Way::Nowhere => return Some(Err("this server cannot ask".to_owned())),
            Way::Own(told) => own_answer(told).await,
            Way::Root(ways, question) => ways.ask(GroupId::ROOT, question).await,
        };
        let is_late = asking.upgrade()?.moment().ms_since(began) > PATIENCE_MS;
        match answer.map(|answer| answer.allotted_dix) {
            Ok(Some(dix)) => return wait_for(asking, Dix(dix)).await,
            // This member does not lead the root group any more.
            Ok(None) => {}
            Err(why) if is_late => return Some(Err(why)),
            Err(why) => tracing::debug!(why, "no allowance of a quota yet"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until this tree has applied the entry. A home that does not keep up finds out that it lacks something still.
async fn wait_for(asking: &Weak<Core>, dix: Dix) -> Option<Result<Dix, String>> {
    let began = asking.upgrade()?.moment();
    loop {
        {
            let core = asking.upgrade()?;
            let is_late = core.moment().ms_since(began) > PATIENCE_MS;
            let is_over = is_late || !core.partition.member.may_go_on();
            if is_over || core.partition.tree().namespace.directory_log().dix >= dix {
                return Some(Ok(dix));
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Who is asked.
enum Way {
    /// This member does not lead its group any more.
    NotHere,
    Nowhere,
    /// This member leads the root group, and has the question in hand.
    Own(oneshot::Receiver<Result<Bytes, NoResponse>>),
    Root(Arc<Ways>, Question),
}

impl Way {
    fn of(core: &Arc<Core>, lack: &Bytes) -> Self {
        if !core.partition.member.may_go_on() {
            return Self::NotHere;
        }
        let question = Question { allot: Some(lack.clone()), ..Question::default() };
        match (&core.ways, core.cluster.group) {
            (None, _) => Self::Nowhere,
            (Some(ways), GroupId::ROOT) => Self::Own(ask_own(core, &ways.request(GroupId::ROOT, question))),
            (Some(ways), _) => Self::Root(ways.clone(), question),
        }
    }
}

/// The question of this very member, which leads the root group.
fn ask_own(core: &Arc<Core>, request: &PostRequestProto) -> oneshot::Receiver<Result<Bytes, NoResponse>> {
    let (tell, told) = oneshot::channel();
    let origin = CallOrigin {
        client_id: OWN,
        call_id: CallId(core.allowances.name_question()),
        retry_count: 0,
        repeats: 0,
        address: None,
    };
    let (request, caller) = (request.encode_to_vec().into(), core.partition.service_caller().into());
    let call = Call::of_server(protocol::FORWARD, "post", request, caller, origin);
    let take = move |answer: Answer| {
        // Nobody waits for it any more if that fails.
        let _ = tell.send(answer.result);
    };
    (core.answer)(core, call, Replier::captured(take));
    told
}

async fn own_answer(told: oneshot::Receiver<Result<Bytes, NoResponse>>) -> Result<PostResponseProto, String> {
    match told.await {
        Ok(Ok(answer)) => PostResponseProto::decode(answer).map_err(|error| error.to_string()),
        Ok(Err(NoResponse::Refused(error))) => Err(error.to_string()),
        Ok(Err(NoResponse::GivenUp)) | Err(_) => Err("it was given up".to_owned()),
    }
}
