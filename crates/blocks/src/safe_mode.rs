//! The state in which a server that has just started changes nothing, because it does not yet know which
//! replicas exist.

use crate::config::SafeModeConfig;
use base::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Image and journal are being read; nothing is counted yet.
    Loading,
    /// Too few blocks or servers are reported.
    Waiting,
    /// Enough blocks are reported; a little longer for the rest.
    Extension {
        since: Moment,
    },
    Off,
}

/// The counts that the stage of safe mode depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reported {
    pub total: u64,
    pub safe: u64,
    pub live_servers: usize,
    /// Bytes of replicas with generation stamps that the namespace has never given out. While there are
    /// any, safe mode ends by force only.
    pub future_bytes: u64,
}

/// How far the safe mode of a start has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SafeModeProgress {
    /// The blocks with enough reported replicas, and all blocks: now, or when safe mode ended.
    pub safe: u64,
    pub total: u64,
    /// `None` while it lasts.
    pub ended: Option<Moment>,
}

/// How the number of reported blocks has risen.
#[derive(Clone, Copy, Debug)]
struct Pace {
    began_at: Moment,
    began_with: u64,
    safe: u64,
    rose_at: Moment,
}

/// After so long without another block data servers are missing.
const PATIENCE_MS: u64 = 10_000;

pub struct SafeMode {
    pace: Option<Pace>,
    config: SafeModeConfig,
    stage: Stage,
    /// Turned on by an operator, until turned off.
    manual: bool,
}

impl SafeMode {
    pub fn new(config: SafeModeConfig) -> Self {
        Self { pace: None, config, stage: Stage::Loading, manual: false }
    }

    pub fn is_on(&self) -> bool {
        self.manual || self.stage != Stage::Off
    }

    /// Whether safe mode is on because the server has just started, and will end by itself.
    pub fn is_of_start(&self) -> bool {
        !self.manual && self.stage != Stage::Off
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// True if safe mode ended.
    pub fn activate(&mut self, reported: Reported) -> bool {
        if self.stage == Stage::Loading {
            self.stage = if self.is_reached(reported) { Stage::Off } else { Stage::Waiting };
        }
        self.stage == Stage::Off
    }

    /// Looks whether it is time for the next stage. True if safe mode has just ended. A server that only listens
    /// has no use for the extension: when it takes over, nothing is copied for a while anyway.
    pub fn check(&mut self, reported: Reported, is_commanding: bool, now: Moment) -> bool {
        self.note(reported, now);
        match self.stage {
            _ if reported.future_bytes > 0 => return false,
            Stage::Loading | Stage::Off => return false,
            Stage::Waiting if !self.is_reached(reported) => return false,
            Stage::Waiting if reported.total > 0 && self.config.extension_ms > 0 && is_commanding => {
                self.stage = Stage::Extension { since: now };
                return false;
            }
            Stage::Extension { since } if now.ms_since(since) < self.config.extension_ms => return false,
            Stage::Extension { .. } if !self.is_reached(reported) => return false,
            Stage::Waiting | Stage::Extension { .. } => {}
        }
        self.stage = Stage::Off;
        !self.manual
    }

    /// The server begins to command: it waits for nothing that it has heard already. True if safe mode ended.
    pub fn end_if_reached(&mut self, reported: Reported) -> bool {
        let waits = matches!(self.stage, Stage::Waiting | Stage::Extension { .. });
        if !waits || reported.future_bytes > 0 || !self.is_reached(reported) {
            return false;
        }
        self.stage = Stage::Off;
        !self.manual
    }

    pub fn enter(&mut self) {
        self.manual = true;
    }

    pub fn leave(&mut self) {
        self.manual = false;
        self.stage = Stage::Off;
    }

    fn is_reached(&self, reported: Reported) -> bool {
        reported.safe >= self.needed(reported.total)
            && (self.config.min_servers == 0 || reported.live_servers >= self.config.min_servers)
    }

    /// HDFS multiplies in single precision, and so says the same number of blocks.
    fn needed(&self, total: u64) -> u64 {
        (total as f32 * self.config.threshold) as u64
    }

    fn note(&mut self, reported: Reported, now: Moment) {
        let safe = reported.safe;
        let new = Pace { began_at: now, began_with: safe, safe, rose_at: now };
        let pace = self.pace.get_or_insert(new);
        if safe != pace.safe {
            (pace.safe, pace.rose_at) = (safe, now);
        }
    }

    /// How long it may take yet, as far as that can be told, or what it waits for.
    pub fn outlook(&self, reported: Reported, now: Moment) -> Option<String> {
        let lacking = self.needed(reported.total).saturating_sub(reported.safe);
        let pace = self.pace.filter(|_| self.is_of_start() && lacking > 0)?;
        let still_ms = now.ms_since(pace.rose_at);
        if still_ms >= PATIENCE_MS || reported.safe == 0 {
            return Some(format!(
                "No further block was reported for {} s, and {lacking} are lacking: are all data servers running?",
                still_ms / 1_000
            ));
        }
        let (gained, ms) =
            (reported.safe.checked_sub(pace.began_with)?, pace.rose_at.ms_since(pace.began_at));
        if gained == 0 || ms == 0 {
            return None;
        }
        let left_s = (u128::from(lacking) * u128::from(ms)).div_ceil(u128::from(gained) * 1_000);
        Some(format!("At this pace the blocks that are lacking are there in {left_s} s."))
    }

    /// The sentences of HDFS, which people and scripts know.
    pub fn message(&self, reported: Reported, now: Moment) -> String {
        if self.manual {
            return "It was turned on manually. Use \"hdfs dfsadmin -safemode leave\" to turn safe mode off."
                .into();
        }
        let mut message = self.about_blocks(reported) + &self.about_servers(reported);
        if reported.future_bytes > 0 {
            message += &about_future(reported.future_bytes);
            return message;
        }
        let automatically = "Safe mode will be turned off automatically ";
        match self.stage {
            Stage::Loading | Stage::Waiting => {
                message + automatically + "once the thresholds have been reached."
            }
            Stage::Extension { since } => {
                let left_ms = match reported.total {
                    0 => 0,
                    _ => self.config.extension_ms.saturating_sub(now.ms_since(since)),
                };
                format!("{message}In safe mode extension. {automatically}in {} seconds.", left_ms / 1000)
            }
            Stage::Off => message + automatically + "soon.",
        }
    }

    fn about_blocks(&self, Reported { total, safe, .. }: Reported) -> String {
        let (needed, threshold) = (self.needed(total), self.config.threshold);
        if safe < needed {
            format!(
                "The reported blocks {safe} needs additional {} blocks to reach the threshold {threshold:.4} of \
                 total blocks {total}.\n",
                needed - safe
            )
        } else {
            format!(
                "The reported blocks {safe} has reached the threshold {threshold:.4} of total blocks {total}. "
            )
        }
    }

    fn about_servers(&self, Reported { total, safe, live_servers, .. }: Reported) -> String {
        let wanted = self.config.min_servers;
        if wanted == 0 {
            "The minimum number of live datanodes is not required. ".into()
        } else if safe < self.needed(total) {
            "The number of live datanodes is not calculated since reported blocks hasn't reached the threshold. "
                .into()
        } else if live_servers < wanted {
            format!(
                "The number of live datanodes {live_servers} needs an additional {} live datanodes to reach the \
                 minimum number {wanted}.\n",
                wanted - live_servers
            )
        } else {
            format!("The number of live datanodes {live_servers} has reached the minimum number {wanted}. ")
        }
    }
}

fn about_future(bytes: u64) -> String {
    format!(
        "Name node detected blocks with generation stamps in future: {bytes} byte(s) belong to blocks that this \
         namespace has never made, as if older metadata had been put in place of newer. Leaving safe mode will \
         delete them. Restart with the right metadata, or use \"hdfs dfsadmin -safemode forceExit\"."
    )
}
