//! All that is under way in a simulated cluster.

use super::server::{Image, Waiting};
use super::{
    client::{CallCopy, CallKey},
    data::words::{self, Event, Rest},
    read_points::{StandbyRead, ToldPoint},
    request::{Answer, Request},
    threads::Thread,
};
use base::{Epoch, GroupView, LogPoint, MemberId, MemberLife, ReadPoint, Sn};
use bytes::Bytes;
use group::{ChangeFailed, ChangeName, Message, Order, Proposal, ReadLog, ViewChange};
use journal::Checkpoint;
use serving::{PointQuestion, Question};

/// Seats are counted from 0; member 1 sits on seat 0.
#[derive(Clone, Debug)]
pub enum Happening {
    /// For one process; void when that has ended.
    Arrival {
        seat: usize,
        life: u64,
        what: Arrival,
    },
    /// A change of the view reaches the coordinator.
    Change {
        seat: usize,
        life: u64,
        change: ViewChange,
        is_heard: bool,
    },
    /// A read of the view reaches the coordinator.
    ReadView {
        seat: usize,
        life: u64,
    },
    /// The coordinator gives up on a process's session.
    SessionEnds {
        seat: usize,
        life: u64,
        since_ns: u64,
    },
    /// A member asks whether the view is still the one that it knows.
    Confirm {
        seat: usize,
        life: u64,
        question: Question,
        /// The version of the view, and the change that made it.
        basis: (u64, u64),
    },
    Start {
        seat: usize,
    },
    /// A process looks whether its threads make progress.
    Look {
        seat: usize,
        life: u64,
    },
    /// A client asks for something.
    Think {
        client: usize,
    },
    /// A client's patience is at its end.
    Timeout {
        client: usize,
        key: CallKey,
        tries: u32,
    },
    /// A client asks the same member again.
    Again {
        client: usize,
        key: CallKey,
        tries: u32,
    },
    /// A server has answered a copy of a call.
    Replied {
        copy: CallCopy,
        reply: ClientReply,
    },
    /// A piece of an image arrives at a member that is being renewed.
    Chunk {
        seat: usize,
        life: u64,
        from: usize,
        done: u64,
    },
    /// A member whose store is damaged asks the next of the others what it lacks; `asked` were asked in this round.
    Mend {
        seat: usize,
        life: u64,
        asked: usize,
    },
    Fault(Fault),
    /// Something at a data server, or for one.
    Data(Event),
}

#[derive(Clone, Debug)]
pub enum Arrival {
    Packet {
        from: MemberLife,
        message: Message,
    },
    PeerGone(MemberId),
    /// The host of a process says that it is gone.
    PeerEnded(MemberLife),
    PeerConnected(MemberId),
    LockGone,
    Changed {
        asked: ChangeName,
        answer: Result<u64, ChangeFailed>,
    },
    View {
        view: GroupView,
        version: u64,
    },
    LogRead(ReadLog),
    Synced {
        up_to: Sn,
        cuts: u64,
    },
    /// The member's deadline, unless an earlier one was set since.
    Tick {
        at_ns: u64,
    },
    Call {
        copy: CallCopy,
        request: Request,
    },
    /// A member looks again at a copy that it holds.
    Held {
        copy: CallCopy,
        request: Request,
        since_ns: u64,
    },
    /// A copy that another member hands on.
    Forwarded {
        copy: CallCopy,
        request: Request,
        by: usize,
        since_ns: u64,
    },
    Confirmed {
        question: Question,
        is_current: bool,
    },
    /// Answers that wait for a proof are looked at.
    LookAtAnswers,
    /// The thread of a read that was begun in this epoch goes on.
    ReadGoesOn {
        copy: CallCopy,
        request: Request,
        epoch: Epoch,
    },
    /// The thread that has evaluated an answer goes on.
    AnswerGoesOn(Waiting),
    /// The thread that has stepped the member goes on, and raises its watermark: answers that wait for entries up to here may go out.
    WatermarkRises(Sn),
    /// Another member asks how far the log has committed: its seat, and the life of its process.
    PointAsked {
        by: (usize, u64),
        question: PointQuestion,
    },
    /// The thread that has looked how far the log has committed goes on.
    PointGoesOn {
        by: (usize, u64),
        question: PointQuestion,
        point: ReadPoint,
    },
    /// The answer to such a question. `None`: there is no point, or no answer has come in time.
    Point {
        question: PointQuestion,
        told: Option<ToldPoint>,
    },
    /// A read waits for the entries up to its point.
    ReadWaits {
        read: StandbyRead,
        told: ToldPoint,
    },
    Order(Order),
    Image(ImageArrived),
    /// The file of another member's image, for a store that is a journal.
    Fetched {
        checkpoint: Checkpoint,
        file: Bytes,
    },
    /// Another member suggests that its image be made usable.
    Suggested(Proposal),
    /// The entry that makes this image usable has committed.
    Checkpoint(Checkpoint),
    /// A data server calls, or the thread that has begun to answer it goes on.
    FromData(words::Call, Option<Rest>),
}

#[derive(Clone)]
pub struct ImageArrived(pub Image);

impl std::fmt::Debug for ImageArrived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "image of {}", self.0.at.id)
    }
}

/// The kind of an answer: what it says about its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    /// The call has changed something.
    Change,
    /// The call has changed nothing, says this process.
    Refusal {
        by: MemberLife,
    },
}

#[derive(Clone, Debug)]
pub enum ClientReply {
    /// `rests_on`: everything that the answer rests on; `sn` counts in the order of the group.
    /// `is_doubtful`: a read that rests on a lease in which a clock has stood.
    Done { answer: Answer, rests_on: LogPoint, kind: Kind, is_doubtful: bool },
    /// Another member leads, or none: try another member.
    NotActive,
    /// Too few replicas are reported: ask here again.
    NotYet,
}

/// A fault or an order that a scenario brings upon a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A process is killed; what it had written stays or not, by the dice.
    Kill(Whom),
    /// It is killed in the middle of its so many-th step from now.
    KillAtStep(Whom, u64),
    /// Every process that is down comes back.
    StartAll,
    /// This one does, if it is down.
    Start(usize),
    /// Power goes everywhere: nothing that was not synced is left.
    PowerLoss,
    /// Power goes everywhere, and of all logs but one so many entries at the end rot, which were durable.
    RotAfterPowerLoss {
        entries_max: u64,
    },
    /// A member is killed, and synced bytes of its log rot, as many as the others make good.
    Rot(Whom),
    /// Both directions between this one and all others.
    Isolate(Whom),
    /// One direction between two members.
    CutOneWay(usize, usize),
    CutLink(usize, usize),
    CutFromCoordinator(Whom),
    CoordinatorDown,
    /// All cuts and losses are over; the coordinator is back.
    Heal,
    Lossy {
        loss_percent: u64,
        copy_percent: u64,
        delay_us_max: u64,
    },
    Pause(Whom),
    ResumeAll,
    /// An fsync fails.
    SyncFails(Whom),
    /// Syncs take so long from now on, in microseconds.
    SlowDisk(Whom, u64),
    QuickDisks,
    /// The wall clock is set.
    JumpWall(Whom, i64),
    HandOver(Whom),
    /// An operator lets this one lead, who has made sure that everyone complete is off; otherwise there is no order.
    UncleanElect(usize),
    /// An image is taken and the log before it purged.
    Purge(Whom),
    /// A disk is replaced by an empty one; its process is down.
    Wipe(Whom),
    /// False: "the lock is gone".
    LockAlarm,
    /// A backup of the coordinator is made.
    BackUpCoordinator,
    /// It is put back, with all members running or not.
    RestoreCoordinator,
    /// A copy of a member's disk is made while it runs.
    CopyStore(usize),
    /// The member is killed, and the copy is what it begins with again.
    RestoreStore(usize),
    /// An operator has the view written anew, if anything is wrong with it.
    Repair,
    /// If nobody leads, an operator orders a member to lead that waits for members on disks which were lost for good.
    DoWithoutTheLost,
    /// Its monotonic clock stands still; it goes on working.
    StopClock(Whom),
    /// All clocks go: they jump to what they would show, or go on from where they stood.
    ClocksGo {
        jumps: bool,
    },
    /// A thread of the process completes nothing more.
    Hang(Whom, Thread),
    /// Threads that hang go on, in processes that have not ended.
    ThreadsGoOn,
    /// The next sync of each member fails; each notes it, and keeps its store.
    SyncsFail,
    /// If nobody leads, an operator accepts the disk of the member whose log has the greatest end.
    AcceptDisk,
    /// A copy of all disks and of the coordinator is made, at one moment.
    CopyAll,
    /// All of them are put back.
    RestoreAll,
    Data(DataFault),
    /// An operator allows the deletions that are held back.
    AllowDeletions,
    Order(OrderOfOperator),
    /// The active is told to go on with all members, or with all but one, and with another minimum.
    Reconfigure {
        without: Option<usize>,
        in_sync_min: u32,
    },
}

/// A fault that strikes data servers, which are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataFault {
    Kill(usize),
    Start(usize),
    /// It is stopped, and goes on when all faults end or are healed.
    Pause(usize),
    /// This data server and the member on this seat do not hear each other.
    Cut(usize, usize),
    /// The network to data servers is like this from now on.
    Poor {
        loss_percent: u64,
        late_percent: u64,
        late_ms_max: u64,
    },
    /// All data servers run, and hear everybody.
    Heal,
}

/// An operator's order for data servers, which are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderOfOperator {
    /// It is to leave service for good.
    Leave(usize),
    /// It is to leave service for so long, or until it is to return.
    Rest {
        server: usize,
        for_ms: Option<u64>,
    },
    Return(usize),
    AllReturn,
    /// No order for the group: each data server that may go is switched off.
    SwitchOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Seat(usize),
    /// The member that serves, or begins to.
    Active,
    /// A member that does not serve, by number.
    Standby(usize),
}
