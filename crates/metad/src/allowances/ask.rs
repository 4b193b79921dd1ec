//! Asks the root group for an allowance, and has the calls that wait for it carried out again.

use super::calls::{Batch, Waits};
use crate::{core::Core, directories, post::Question};
use base::{CallId, CallOrigin, ClientId, FsError, GroupId, InodeId, directory_log::Dix};
use bytes::Bytes;
use namespace::shares::{self, Lack};
use prost::Message;
use proto::{
    clover::forward::{PostRequestProto, PostResponseProto},
    protocol,
};
use rpc::{Answer, Call, NoResponse, Replier};
use std::{sync::Arc, time::Duration};

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
    let (asking, directory) = (core.clone(), lack.directory);
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

/// Asks for all of these. Returns what is to be asked next.
async fn ask_for(core: &Arc<Core>, directory: InodeId, mut batch: Batch) -> Option<Batch> {
    let lack = Bytes::from(shares::encode(&batch.lack(directory)));
    let calls = std::mem::take(&mut batch.calls);
    let answer = answer(core, &lack).await;
    let next = core.allowances.answered(directory, &calls, answer.as_ref().ok().copied());
    match answer {
        Ok(_) => directories::carry_on(&core.partition, calls),
        Err(why) => calls.into_iter().for_each(|(call, reply)| refuse(&call, reply, &why)),
    }
    next
}

/// The entry with which the root group has answered, which this tree has applied.
async fn answer(core: &Arc<Core>, lack: &Bytes) -> Result<Dix, String> {
    let began = core.moment();
    let is_late = || core.moment().ms_since(began) > PATIENCE_MS;
    let may_go_on = || core.partition.member.may_go_on();
    loop {
        if !may_go_on() {
            // The calls go on where another member leads.
            return Ok(Dix(0));
        }
        let question = Question { allot: Some(lack.clone()), ..Question::default() };
        let answer = match (&core.ways, core.cluster.group) {
            (None, _) => return Err("this server cannot ask".to_owned()),
            (Some(ways), GroupId::ROOT) => ask_own(core, &ways.request(GroupId::ROOT, question)).await,
            (Some(ways), _) => ways.ask(GroupId::ROOT, question).await,
        };
        match answer.map(|answer| answer.allotted_dix) {
            Ok(Some(dix)) => {
                let dix = Dix(dix);
                // A home that does not keep up finds out that it lacks something still.
                while core.partition.tree().namespace.directory_log().dix < dix && !is_late() && may_go_on() {
                    tokio::time::sleep(LOOK).await;
                }
                return Ok(dix);
            }
            // This member does not lead the root group any more.
            Ok(None) => {}
            Err(why) if is_late() => return Err(why),
            Err(why) => tracing::debug!(why, "no allowance of a quota yet"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The question of this very member, which leads the root group.
async fn ask_own(core: &Arc<Core>, request: &PostRequestProto) -> Result<PostResponseProto, String> {
    let (tell, mut told) = tokio::sync::oneshot::channel();
    let call = Call {
        protocol: protocol::FORWARD,
        method: "post",
        request: request.encode_to_vec().into(),
        caller: Arc::new(core.partition.service_caller()),
        origin: CallOrigin {
            client_id: OWN,
            call_id: CallId(core.allowances.name_question()),
            retry_count: 0,
            repeats: 0,
            address: None,
        },
        peer: ([127, 0, 0, 1], 0).into(),
        connection: 0,
        state_id: None,
        caller_context: None,
        is_forwarded: false,
        is_part: false,
        redirects: 0,
    };
    let take = move |answer: Answer| {
        // Nobody waits for it any more if that fails.
        let _ = tell.send(answer.result);
    };
    (core.answer)(core, call, Replier::captured(take));
    // The question may wait for homes when this server is stopped, and is answered no more then.
    let told = loop {
        match tokio::time::timeout(PAUSE, &mut told).await {
            Ok(told) => break told,
            Err(_) if core.partition.member.may_go_on() => {}
            Err(_) => return Err("this server is stopping".to_owned()),
        }
    };
    match told {
        Ok(Ok(answer)) => PostResponseProto::decode(answer).map_err(|error| error.to_string()),
        Ok(Err(NoResponse::Refused(error))) => Err(error.to_string()),
        Ok(Err(NoResponse::GivenUp)) | Err(_) => Err("it was given up".to_owned()),
    }
}
