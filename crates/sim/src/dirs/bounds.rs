//! How far a check goes.

use super::tree::{Call, Dir, DirId, Name, Path, TOP, Tree};
use dirlog::{Broken, Settings};

/// A rule that drivers and planners must keep, left out on purpose. The machines cannot see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Planted {
    /// A home makes the marks of an entry on its own tree.
    MarksOfTheReceiver,
    /// A plan does not say which passages it went through.
    PassagesUnseen,
    /// The root group takes no hold below a directory that no home shows yet.
    NoHoldBelowDoubt,
    /// A new active of the root group plans a call again that it has in its log.
    RepeatsAreCarriedOut,
}

impl Planted {
    pub const ALL: [Planted; 4] =
        [Self::MarksOfTheReceiver, Self::PassagesUnseen, Self::NoHoldBelowDoubt, Self::RepeatsAreCarriedOut];
}

/// How often each thing may happen; the check sees every order of what is allowed.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Groups beside the root group, which is a home as well.
    pub homes: u8,
    /// The calls of each client, one after the other.
    pub clients: Vec<Vec<Call>>,
    pub outset: Tree,
    pub settings: Settings,
    pub planted: Option<Planted>,
    pub root_takeovers: u8,
    pub home_takeovers: u8,
    /// Times that [`Bounds::TICK_MS`] pass.
    pub ticks: u8,
    pub losses: u8,
    /// Messages that overtake another or arrive twice.
    pub disorders: u8,
    /// Groups' logs commit some time later; otherwise at once.
    pub slow_commits: bool,
    /// Calls are judged some time after they were looked at.
    pub slow_looks: bool,
    pub depth: usize,
    pub states: usize,
}

/// The directories `/a` (home 1) and `/b` (home 2, if there is one), and a file `/a/f`.
pub fn outset() -> Tree {
    let mut tree = Tree::default();
    tree.dirs.insert(2, dir(TOP, b'a'));
    tree.dirs.insert(3, dir(TOP, b'b'));
    tree.files.insert((2, b'f'), 200);
    tree
}

pub fn dir(parent: DirId, name: Name) -> Dir {
    Dir { parent, name, is_closed: false }
}

pub(super) const A: Path = Path(b"a");
pub(super) const C: Path = Path(b"c");
pub(super) const AX: Path = Path(b"ax");
pub(super) const AF: Path = Path(b"af");
pub(super) const BF: Path = Path(b"bf");
pub(super) const BG: Path = Path(b"bg");
pub(super) const AXF: Path = Path(b"axf");

impl Default for Bounds {
    fn default() -> Self {
        Self {
            homes: 2,
            clients: vec![vec![Call::Mkdir(AX), Call::Stat(AX)], vec![Call::Create(AX), Call::List(A)]],
            outset: outset(),
            settings: Self::small_settings(),
            planted: None,
            root_takeovers: 0,
            home_takeovers: 0,
            ticks: 0,
            losses: 0,
            disorders: 0,
            slow_commits: false,
            slow_looks: false,
            depth: usize::MAX,
            states: 1_000_000,
        }
    }
}

impl Bounds {
    /// After two a lease is over for its holder, after three for the root group.
    pub const TICK_MS: u64 = 45;

    pub fn small_settings() -> Settings {
        Settings {
            lease_ms: 100,
            renew_ms: 60,
            hello_ms: 40,
            hold_ms: 1 << 40,
            ask_again_ms: 40,
            // Nothing is sent again for its own sake: what is lost is lost until a session begins.
            resend_ms: 1 << 40,
            behind_ms: 1 << 40,
            ..Settings::default()
        }
    }

    pub fn without(self, rule: Broken) -> Self {
        Self { settings: Settings { broken: Some(rule), ..self.settings }, ..self }
    }

    /// The checks: for each a sentence about its subject, and its bounds, with at most `states` different worlds.
    pub fn profiles(states: usize) -> Vec<(&'static str, Self)> {
        let plain = Self { states, ..Self::default() };
        let one = |call| vec![call];
        let renames = Self {
            clients: vec![
                vec![Call::RenameDir(A, C), Call::Stat(A)],
                vec![Call::Create(Path(b"ag")), Call::List(C)],
                one(Call::Close(A)),
            ],
            ..plain.clone()
        };
        let deletes = Self {
            homes: 1,
            clients: vec![
                vec![Call::Mkdir(AX), Call::Rmdir(AX)],
                one(Call::Create(AXF)),
                vec![Call::Stat(AX), Call::Stat(AXF)],
            ],
            slow_commits: true,
            disorders: 1,
            ..plain.clone()
        };
        let moves = Self {
            clients: vec![
                vec![Call::Move(AF, BG), Call::Stat(AF)],
                vec![Call::Create(BG), Call::Stat(BG)],
                one(Call::Delete(AF)),
            ],
            ..plain.clone()
        };
        let home_takeovers = Self {
            homes: 1,
            clients: vec![vec![Call::Mkdir(AX), Call::Stat(AX)], vec![Call::Create(AX), Call::Delete(AX)]],
            home_takeovers: 1,
            slow_commits: true,
            losses: 1,
            ..plain.clone()
        };
        let root_takeovers = Self {
            homes: 1,
            clients: vec![vec![Call::Mkdir(C), Call::Stat(C)], vec![Call::Stat(C), Call::List(Path(b""))]],
            root_takeovers: 1,
            slow_commits: true,
            ticks: 3,
            losses: 1,
            ..plain.clone()
        };
        let lapses = Self {
            homes: 1,
            clients: vec![vec![Call::Close(A), Call::Stat(AF)], vec![Call::Create(AX), Call::List(A)]],
            ticks: 4,
            slow_looks: true,
            losses: 1,
            ..plain.clone()
        };
        let all_at_once = Self {
            homes: 1,
            clients: vec![vec![Call::Mkdir(AX)], vec![Call::Create(AX), Call::Stat(AX)]],
            root_takeovers: 1,
            home_takeovers: 1,
            ticks: 3,
            slow_commits: true,
            ..plain.clone()
        };
        vec![
            ("a directory and a file of one name", plain),
            ("renames and rights", renames),
            ("made, filled and deleted", deletes),
            ("a file between two homes", moves),
            ("a home's takeover", home_takeovers),
            ("the root group's takeover", root_takeovers),
            ("leases that lapse", lapses),
            ("both takeovers and lapses", all_at_once),
        ]
    }

    /// Far more of everything than can be seen in every order: for random stories.
    pub fn wide(homes: u8) -> Self {
        Self {
            homes,
            clients: vec![
                vec![Call::Mkdir(AX), Call::Create(AXF), Call::Rmdir(AX), Call::List(A), Call::Stat(AXF)],
                vec![
                    Call::Create(AX),
                    Call::Stat(AX),
                    Call::Delete(AX),
                    Call::RenameDir(A, C),
                    Call::Stat(AX),
                ],
                vec![
                    Call::Move(AF, BG),
                    Call::Stat(AF),
                    Call::Move(BG, AF),
                    Call::Close(A),
                    Call::Create(Path(b"ag")),
                ],
                vec![
                    Call::Stat(A),
                    Call::Mkdir(C),
                    Call::List(Path(b"")),
                    Call::RenameDir(C, A),
                    Call::Create(BF),
                ],
            ],
            root_takeovers: 2,
            home_takeovers: 3,
            ticks: 12,
            losses: 4,
            disorders: 4,
            slow_commits: true,
            slow_looks: true,
            settings: Settings { resend_ms: 90, ..Self::small_settings() },
            depth: 400,
            ..Self::default()
        }
    }
}
