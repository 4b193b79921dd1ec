//! One round of a backup: fetches the entries that have committed since, and an image if the members have removed the
//! next entry.

use super::{BackupError, Event, PATIENCE, Run, SYNC_BYTES, Told, history::reach, time_of};
use crate::exchange::{PIECE_BYTES, fetch::Pieces};
use base::{MemberId, Sn};
use journal::{
    Checkpoint,
    archive::{ArchiveError, StagedArchiveImage},
};
use std::time::{Duration, Instant};

/// How many entries before an image are looked at for the time that it shows.
const BEFORE_IMAGE: u64 = 1_024;
/// How many times another image is begun because the members have removed the one before.
const IMAGES_MAX: usize = 3;

impl Run<'_> {
    /// Fetches until what the members know to have committed is here. The text is why it is not.
    pub(super) fn catch_up(
        &mut self,
        told: &[Told],
        active: Option<&Told>,
    ) -> Result<Option<String>, BackupError> {
        if self.end().is_none()
            && let Some(why) = self.begin(told)?
        {
            return Ok(Some(why));
        }
        if let (Some(end), Some(active)) = (self.end(), active)
            && active.end < end
        {
            return Err(BackupError::WentBack { archived: end, end: active.end });
        }
        let mut unsynced = 0;
        loop {
            let at = self.end().expect("it was begun");
            let ahead: Vec<&Told> = told.iter().filter(|it| reach(it, active) > at).collect();
            if ahead.is_empty() {
                return Ok(None);
            }
            if self.operator.is_stopped() {
                return Ok(None);
            }
            let (mut failures, mut fetched) = (Vec::new(), None);
            let mut is_gone = true;
            for it in ahead.iter().filter(|it| it.begins_after <= at) {
                let up_to = reach(it, active);
                match self.members.read_log(it, at, up_to) {
                    Ok(Some((point, entries))) if !entries.is_empty() => {
                        fetched = Some((it.member, up_to, point, entries));
                        break;
                    }
                    Ok(_) => failures.push(format!("member {} has removed what is wanted", it.member)),
                    Err(error) => {
                        // Whether it has them is not known.
                        is_gone = false;
                        failures.push(format!("member {}: {error}", it.member));
                    }
                }
            }
            let Some((from, up_to, point, entries)) = fetched else {
                if !is_gone {
                    return Ok(Some(failures.join("; ")));
                }
                if told.len() < self.members.count()
                    && self.gone_since.get_or_insert_with(Instant::now).elapsed() < PATIENCE
                {
                    let what = "members that answer have removed what comes next, and others may have it";
                    return Ok(Some(what.to_owned()));
                }
                self.gone_since = None;
                match self.begin(told)? {
                    None => continue,
                    Some(why) => return Ok(Some(why)),
                }
            };
            let archiver = self.archiver.as_mut().expect("it was opened");
            if Some(point) != archiver.end() {
                return Err(BackupError::OtherHistory { at });
            }
            archiver.append(&entries)?;
            self.end_ms = entries.iter().rev().find_map(time_of).or(self.end_ms);
            let bytes: usize = entries.iter().map(|entry| entry.payload.len()).sum();
            self.summary.entries += entries.len() as u64;
            self.summary.bytes += bytes as u64;
            unsynced += bytes;
            if unsynced >= SYNC_BYTES {
                archiver.sync(self.epoch, self.end_ms, None)?;
                unsynced = 0;
            }
            self.keep_pace();
            if let Some(at) = self.end() {
                self.operator.tell(Event::Entries { from, at, up_to });
            }
        }
    }

    fn end(&self) -> Option<Sn> {
        self.archiver.as_ref().and_then(|archiver| archiver.end()).map(|end| end.id.sn)
    }

    /// Begins a range of entries: with the newest image, or where there is none with the first entry of the log.
    fn begin(&mut self, told: &[Told]) -> Result<Option<String>, BackupError> {
        let end = self.end();
        let mut why = "no member has an image, or a log from its first entry on".to_owned();
        for _ in 0..IMAGES_MAX {
            let mut newest: Option<(Checkpoint, &Told)> = None;
            for it in told {
                let images = match self.members.source(it.member).map(|source| source.images()) {
                    Some(Ok(images)) => images,
                    Some(Err(error)) => {
                        why = format!("member {}: {error}", it.member);
                        continue;
                    }
                    None => continue,
                };
                let image = images.into_iter().rfind(|image| end.is_none_or(|end| image.at.id.sn > end));
                let is_newer =
                    |image: &Checkpoint| newest.is_none_or(|(known, _)| image.at.id.sn > known.at.id.sn);
                if let Some(image) = image.filter(is_newer) {
                    newest = Some((image, it));
                }
            }
            let Some((image, of)) = newest else { break };
            match self.fetch_image(image, told, of)? {
                None => {
                    let begin_ms = self.time_before(image.at.id.sn, told).or(Some(of.now_ms));
                    if let Some(after) = end {
                        let up_to = image.at.id.sn;
                        tracing::warn!(%after, %up_to, "entries were removed before they were archived");
                        self.operator.tell(Event::Missed { after, up_to });
                    }
                    let archiver = self.archiver.as_mut().expect("it was opened");
                    archiver.begin_span(Some(image), begin_ms)?;
                    self.end_ms = begin_ms;
                    return Ok(None);
                }
                Some(reason) => why = reason,
            }
            if self.operator.is_stopped() {
                return Err(BackupError::Stopped);
            }
        }
        let first = told.iter().find(|it| it.begins_after == Sn(0));
        match first.filter(|_| end.is_none()) {
            Some(it) => {
                let begin_ms = Some(it.whose.created_ms);
                self.archiver.as_mut().expect("it was opened").begin_span(None, begin_ms)?;
                self.end_ms = begin_ms;
                Ok(None)
            }
            None => Ok(Some(why)),
        }
    }

    /// The text is why this image could not be had.
    fn fetch_image(
        &mut self,
        image: Checkpoint,
        told: &[Told],
        of: &Told,
    ) -> Result<Option<String>, BackupError> {
        let staged = self.archiver.as_ref().expect("it was opened").stage(image)?;
        let Some(mut staged) = staged else { return Ok(None) };
        // The one that has told of it first, then the others.
        let mut from: Vec<MemberId> = vec![of.member];
        from.extend(told.iter().map(|it| it.member).filter(|member| *member != of.member));
        let (mut current, mut failures) = (0, Vec::new());
        let before = staged.have();
        while !staged.is_complete() {
            if self.operator.is_stopped() {
                return Err(BackupError::Stopped);
            }
            let member = from[current % from.len()];
            match self.piece(&staged, member) {
                Ok(piece) => {
                    staged.write(&piece)?;
                    failures.clear();
                    self.summary.image_bytes += piece.len() as u64;
                    self.keep_pace();
                    let (have, total) = (staged.have(), image.file_bytes);
                    self.operator.tell(Event::Image { from: member, at: image.at.id.sn, have, total });
                }
                Err(error) => {
                    failures.push(format!("member {member}: {error}"));
                    current += 1;
                    if failures.len() >= 2 * from.len() {
                        return Ok(Some(failures.join("; ")));
                    }
                    std::thread::sleep(Duration::from_millis(200));
                }
            }
        }
        tracing::info!(at = %image.at, before, bytes = image.file_bytes, "an image was fetched");
        match staged.finish() {
            Ok(()) => Ok(None),
            Err(error @ ArchiveError::Image { .. }) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn piece(&self, staged: &StagedArchiveImage, member: MemberId) -> Result<bytes::Bytes, String> {
        let source = self.members.source(member).ok_or("it is not known any more")?;
        let left = staged.checkpoint().file_bytes - staged.have();
        source.read(staged.checkpoint(), staged.have(), left.min(PIECE_BYTES.into()) as u32)
    }

    /// The time of the last edit that an image contains, where a log still has it.
    fn time_before(&self, image: Sn, told: &[Told]) -> Option<u64> {
        told.iter().find_map(|it| {
            let mut after = Sn(image.0.saturating_sub(BEFORE_IMAGE)).max(it.begins_after);
            let mut found = None;
            while after < image {
                let (_, entries) = self.members.read_log(it, after, image).ok()??;
                after = entries.last()?.id.sn;
                found = entries.iter().rev().find_map(time_of).or(found);
            }
            found
        })
    }

    /// Waits where it was faster than it may be.
    fn keep_pace(&self) {
        let pace = self.options.bytes_per_second;
        if pace == 0 {
            return;
        }
        let bytes = self.summary.bytes + self.summary.image_bytes;
        let due = Duration::from_secs_f64(bytes as f64 / pace as f64);
        std::thread::sleep(due.saturating_sub(Instant::now() - self.began).min(Duration::from_secs(5)));
    }
}
