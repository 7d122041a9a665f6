//! Which fields of two versions of an object differ.

use std::fmt;

use super::Tag;
use super::meta::field;
use super::reader::{Damaged, Item, Reader};

/// Longer values are cut.
const TEXT: usize = 64;

/// A field that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldChange {
    /// Where it is, such as `.status.conditions[Ready].status`.
    pub path: String,
    /// What it was; none if it was not there. `{}` and `[]` stand for what has parts.
    pub old: Option<String>,
    /// What it is; none if it is gone.
    pub new: Option<String>,
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
        let (old, new) = (text(&self.old), text(&self.new));
        write!(f, "{} {old} -> {new}", self.path)
    }
}

/// The first `limit` fields that differ, without those that say only that something did.
pub(crate) fn diff(old: Reader<'_>, new: Reader<'_>, limit: usize) -> Vec<FieldChange> {
    let mut walk = Walk {
        path: String::new(),
        changes: Vec::new(),
        limit,
    };
    // A tape that cannot be read is told of when it is decoded.
    let _ = walk.values(old, new);
    walk.changes
}

struct Walk {
    path: String,
    changes: Vec<FieldChange>,
    limit: usize,
}

impl Walk {
    /// Two values that are not the same bytes.
    fn values(&mut self, old: Reader<'_>, new: Reader<'_>) -> Result<(), Damaged> {
        if self.changes.len() >= self.limit || is_noise(&self.path) {
            return Ok(());
        }
        match (old.peek()?, new.peek()?) {
            (Tag::Map, Tag::Map) => self.maps(old, new),
            (Tag::List, Tag::List) => self.lists(old, new),
            _ => {
                let (old, new) = (text(old)?, text(new)?);
                if old != new {
                    self.push(old, new);
                }
                Ok(())
            }
        }
    }

    /// Entry by entry. Versions of one object nearly always have the same names in the same order, so the
    /// old one is followed in step, and searched only from where it is not.
    fn maps(&mut self, old: Reader<'_>, new: Reader<'_>) -> Result<(), Damaged> {
        let (mut before, mut entries) = (old, new);
        before.next()?;
        entries.next()?;
        let mut in_step = true;
        while let Some(name) = entries.name()? {
            let value = entries;
            entries.skip()?;
            let mut ahead = before;
            let found = match in_step && ahead.name()? == Some(name) {
                true => Some(ahead),
                false => {
                    in_step = false;
                    field(old, name)?
                }
            };
            let end = found.and_then(|found| same_bytes(found, value, entries.at));
            if let Some(end) = end {
                before.at = end;
                continue;
            }
            self.within(&format!(".{name}"), |walk| match found {
                Some(found) => walk.values(found, value),
                None => walk.one_sided(None, Some(value)),
            })?;
            if in_step {
                before = ahead;
                before.skip()?;
            }
        }
        if in_step && before.is_end() {
            return Ok(());
        }
        let mut entries = old;
        entries.next()?;
        while let Some(name) = entries.name()? {
            let value = entries;
            entries.skip()?;
            if field(new, name)?.is_none() {
                self.within(&format!(".{name}"), |walk| {
                    walk.one_sided(Some(value), None)
                })?;
            }
        }
        Ok(())
    }

    /// Item by item; one that has a type or a name is called by it.
    fn lists(&mut self, mut old: Reader<'_>, mut new: Reader<'_>) -> Result<(), Damaged> {
        old.next()?;
        new.next()?;
        for n in 0usize.. {
            let pair = (
                (!old.is_end()).then_some(old),
                (!new.is_end()).then_some(new),
            );
            let Some(item) = pair.1.or(pair.0) else {
                return Ok(());
            };
            if pair.1.is_some() {
                new.skip()?;
            }
            let same = pair.0.zip(pair.1);
            if let Some(end) = same.and_then(|(old, item)| same_bytes(old, item, new.at)) {
                old.at = end;
                continue;
            }
            if pair.0.is_some() {
                old.skip()?;
            }
            let step = match called(item)? {
                Some(name) => format!("[{name}]"),
                None => format!("[{n}]"),
            };
            self.within(&step, |walk| match pair {
                (Some(old), Some(new)) => walk.values(old, new),
                (old, new) => walk.one_sided(old, new),
            })?;
        }
        Ok(())
    }

    fn one_sided(
        &mut self,
        old: Option<Reader<'_>>,
        new: Option<Reader<'_>>,
    ) -> Result<(), Damaged> {
        if self.changes.len() >= self.limit || is_noise(&self.path) {
            return Ok(());
        }
        // Of what is new or gone as a whole, its parts say more.
        let whole = new.or(old).filter(|value| value.peek() == Ok(Tag::Map));
        if let Some(mut entries) = whole {
            let is_new = new.is_some();
            entries.next()?;
            let is_empty = entries.is_end();
            while let Some(name) = entries.name()? {
                let value = entries;
                entries.skip()?;
                self.within(&format!(".{name}"), |walk| match is_new {
                    true => walk.one_sided(None, Some(value)),
                    false => walk.one_sided(Some(value), None),
                })?;
            }
            if !is_empty {
                return Ok(());
            }
        }
        let old = old.map(text).transpose()?;
        let new = new.map(text).transpose()?;
        self.push(old.flatten(), new.flatten());
        Ok(())
    }

    fn push(&mut self, old: Option<String>, new: Option<String>) {
        let path = self.path.clone();
        self.changes.push(FieldChange { path, old, new });
    }

    fn within(
        &mut self,
        step: &str,
        walk: impl FnOnce(&mut Self) -> Result<(), Damaged>,
    ) -> Result<(), Damaged> {
        let length = self.path.len();
        self.path.push_str(step);
        let walked = walk(self);
        self.path.truncate(length);
        walked
    }
}

/// What changes with every change.
fn is_noise(path: &str) -> bool {
    matches!(
        path,
        ".metadata.resourceVersion" | ".metadata.generation" | ".metadata.managedFields"
    )
}

/// Where `old` ends, if it is the same bytes as `new`, which ends at `end`: most of an object is. That
/// of equal values is not, if one of them holds a string itself and the other a number for it.
fn same_bytes(old: Reader<'_>, new: Reader<'_>, end: usize) -> Option<usize> {
    // Numbers for strings are those of one vocabulary.
    if !std::ptr::eq(old.vocabulary, new.vocabulary) {
        return None;
    }
    let bytes = new.bytes.get(new.at..end)?;
    let old_end = old.at.checked_add(bytes.len())?;
    (old.bytes.get(old.at..old_end)? == bytes).then_some(old_end)
}

/// The type of a condition, or the name of anything.
fn called(item: Reader<'_>) -> Result<Option<String>, Damaged> {
    for name in ["type", "name"] {
        if let Some(mut value) = field(item, name)?
            && let Some(text) = value.text()?
        {
            return Ok(Some(text.into_owned()));
        }
    }
    Ok(None)
}

fn text(mut value: Reader<'_>) -> Result<Option<String>, Damaged> {
    Ok(match value.next()? {
        Item::Null | Item::End => None,
        Item::Map => Some("{}".to_owned()),
        Item::List(_) => Some("[]".to_owned()),
        Item::Bool(flag) => Some(flag.to_string()),
        Item::Unsigned(number) => Some(number.to_string()),
        Item::Signed(number) => Some(number.to_string()),
        Item::Float(number) => Some(number.to_string()),
        Item::Text(text) => Some(match text.char_indices().nth(TEXT) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text.into_owned(),
        }),
    })
}

#[cfg(test)]
mod tests;
