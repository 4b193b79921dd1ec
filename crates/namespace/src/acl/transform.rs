//! The changes of a list when entries are set, added or taken away: the rules of HDFS's `AclTransformation`.
//!
//! Each function takes a whole list (the bits' own entries among them) and the entries that the caller sent, and
//! returns a whole list. The rules that all share: a mask is there where a named entry is; it is worked out anew
//! where its scope changed and the caller did not say what it should be; a default list borrows what it lacks of
//! owner, group and others from the access list.

use super::{AclEntry, ENTRIES_MAX, Kind, Scope};
use crate::store::strings::TEXT_BYTES_MAX;
use base::{FsError, FsResult};
use std::cmp::Ordering;

const SCOPES: [Scope; 2] = [Scope::Access, Scope::Default];
const BASE: [Kind; 3] = [Kind::User, Kind::Group, Kind::Other];

/// Something for each scope.
#[derive(Clone, Default)]
struct PerScope<T>([T; 2]);

impl<T> PerScope<T> {
    fn of(&self, scope: Scope) -> &T {
        &self.0[scope as usize]
    }

    fn set(&mut self, scope: Scope, value: T) {
        self.0[scope as usize] = value;
    }
}

/// A list in the making.
#[derive(Default)]
struct Builder {
    /// All entries but the masks.
    entries: Vec<AclEntry>,
    masks: PerScope<Option<AclEntry>>,
    /// The caller spoke of the mask.
    mask_dirty: PerScope<bool>,
    /// The caller spoke of the scope.
    dirty: PerScope<bool>,
}

impl Builder {
    fn keep(&mut self, entry: &AclEntry) {
        match entry.kind {
            Kind::Mask => self.masks.set(entry.scope, Some(entry.clone())),
            _ => self.entries.push(entry.clone()),
        }
    }

    fn take_from_caller(&mut self, entry: &AclEntry) {
        self.note(entry);
        self.keep(entry);
    }

    fn note(&mut self, entry: &AclEntry) {
        self.dirty.set(entry.scope, true);
        if entry.kind == Kind::Mask {
            self.mask_dirty.set(entry.scope, true);
        }
    }

    fn finish(mut self) -> FsResult<Vec<AclEntry>> {
        self.copy_defaults();
        self.calculate_masks()?;
        validate(self.entries)
    }

    /// Completes a default list: entries of owner, group and others that it lacks are taken from the access list.
    fn copy_defaults(&mut self) {
        if !self.entries.iter().any(|entry| entry.scope == Scope::Default) {
            return;
        }
        for kind in BASE {
            let permission =
                |scope| self.entries.iter().find(|e| e.key() == (scope, kind, None)).map(|e| e.permission);
            if let (None, Some(permission)) = (permission(Scope::Default), permission(Scope::Access)) {
                self.entries.push(AclEntry::unnamed(Scope::Default, kind, permission));
            }
        }
    }

    fn calculate_masks(&mut self) -> FsResult<()> {
        for scope in SCOPES {
            let of_scope = || self.entries.iter().filter(|entry| entry.scope == scope);
            if of_scope().next().is_none() {
                continue;
            }
            let is_needed = of_scope().any(|entry| entry.name.is_some());
            let is_maskable = |entry: &&AclEntry| entry.kind == Kind::Group || entry.name.is_some();
            let union = of_scope().filter(is_maskable).fold(0, |union, entry| union | entry.permission);
            let (dirty, mask_dirty) = (*self.dirty.of(scope), *self.mask_dirty.of(scope));
            let mask = match self.masks.of(scope) {
                None if is_needed && mask_dirty => {
                    return Err(invalid("mask is required and cannot be deleted."));
                }
                // A new mask from the caller, or the one of a scope that it left alone.
                Some(mask) if !dirty || mask_dirty => mask.clone(),
                mask if is_needed || mask.is_some() => AclEntry::unnamed(scope, Kind::Mask, union),
                _ => continue,
            };
            self.entries.push(mask);
        }
        Ok(())
    }
}

fn invalid(why: &str) -> FsError {
    FsError::Acl(format!("Invalid ACL: {why}"))
}

fn check_count(entries: &[AclEntry]) -> FsResult<()> {
    for (scope, word) in [(Scope::Access, "access"), (Scope::Default, "default")] {
        let count = entries.iter().filter(|entry| entry.scope == scope).count();
        if count > ENTRIES_MAX {
            return Err(invalid(&format!(
                "ACL has {count} {word} entries, which exceeds maximum of {ENTRIES_MAX}."
            )));
        }
    }
    Ok(())
}

fn validate(mut entries: Vec<AclEntry>) -> FsResult<Vec<AclEntry>> {
    entries.sort_by(|one, two| one.key().cmp(&two.key()));
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 && entries[at - 1].key() == entry.key() {
            return Err(invalid("multiple entries with same scope, type and name."));
        }
        if entry.name.is_some() && matches!(entry.kind, Kind::Mask | Kind::Other) {
            return Err(invalid(&format!("this entry type must not have a name: {entry}.")));
        }
    }
    check_count(&entries)?;
    let has = |scope, kind| entries.iter().any(|entry| entry.key() == (scope, kind, None));
    let has_default = entries.iter().any(|entry| entry.scope == Scope::Default);
    for kind in BASE {
        if !has(Scope::Access, kind) {
            return Err(invalid("the user, group and other entries are required."));
        }
        if has_default && !has(Scope::Default, kind) {
            return Err(FsError::Acl(
                "Invalid default ACL: the user, group and other entries are required.".into(),
            ));
        }
    }
    Ok(entries)
}

/// The entries that the caller sent, checked and sorted.
fn specification(entries: &[AclEntry]) -> FsResult<Vec<AclEntry>> {
    // The names go into records that an image bounds.
    if let Some(name) = entries.iter().flat_map(|entry| &entry.name).find(|name| name.len() > TEXT_BYTES_MAX)
    {
        return Err(invalid(&format!(
            "a name has {} bytes, which exceeds maximum of {TEXT_BYTES_MAX}.",
            name.len()
        )));
    }
    check_count(entries)?;
    let mut entries = entries.to_vec();
    entries.sort_by(|one, two| one.key().cmp(&two.key()));
    Ok(entries)
}

/// The entry of the same key. If the caller sent several, it is the one that Java's binary search meets.
fn found_by_key<'a>(sent: &'a [AclEntry], entry: &AclEntry) -> Option<&'a AclEntry> {
    let (mut low, mut high) = (0, sent.len());
    while low < high {
        let middle = (low + high - 1) / 2;
        match sent[middle].key().cmp(&entry.key()) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Some(&sent[middle]),
        }
    }
    None
}

/// `modifyAclEntries`: entries are added, or take the place of those of their key.
///
/// # Errors
/// [`FsError::Acl`] if the entries sent or the list that results are invalid, or too many.
pub(crate) fn merge(existing: &[AclEntry], sent: &[AclEntry]) -> FsResult<Vec<AclEntry>> {
    let sent = specification(sent)?;
    let mut builder = Builder::default();
    for entry in existing {
        match found_by_key(&sent, entry) {
            Some(new) => builder.take_from_caller(new),
            None => builder.keep(entry),
        }
    }
    for new in sent.iter().filter(|new| existing.iter().all(|entry| entry.key() != new.key())) {
        builder.take_from_caller(new);
    }
    builder.finish()
}

/// `setAcl`: each scope that the caller speaks of is replaced, the other stays.
///
/// # Errors
/// Those of [`merge`].
pub(crate) fn replace(existing: &[AclEntry], sent: &[AclEntry]) -> FsResult<Vec<AclEntry>> {
    let mut builder = Builder::default();
    specification(sent)?.iter().for_each(|entry| builder.take_from_caller(entry));
    for entry in existing.iter().filter(|entry| !sent.iter().any(|new| new.scope == entry.scope)) {
        builder.keep(entry);
    }
    builder.finish()
}

/// `removeAclEntries`: the permissions sent mean nothing.
///
/// # Errors
/// Those of [`merge`].
pub(crate) fn remove(existing: &[AclEntry], sent: &[AclEntry]) -> FsResult<Vec<AclEntry>> {
    let sent = specification(sent)?;
    let mut builder = Builder::default();
    for entry in existing {
        if sent.iter().any(|gone| gone.key() == entry.key()) {
            builder.note(entry);
        } else {
            builder.keep(entry);
        }
    }
    builder.finish()
}

/// `removeDefaultAcl`.
pub(crate) fn remove_default(existing: &[AclEntry]) -> FsResult<Vec<AclEntry>> {
    validate(existing.iter().filter(|entry| entry.scope == Scope::Access).cloned().collect())
}

#[cfg(test)]
mod tests;
