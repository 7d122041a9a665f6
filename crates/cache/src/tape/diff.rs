//! Differences between two versions of an object.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use opkit_apimachinery::redact::LAST_APPLIED_CONFIGURATION;

use super::Tag;
use super::meta::field;
use super::reader::{Damaged, Item, Reader};

/// Largest number of characters of a value that are shown; longer values are truncated.
const TEXT_MAX: usize = 64;

/// Which values of changed fields are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShownValues {
    /// Numbers and booleans below `.status`. For all other fields only the path is shown.
    #[default]
    Status,
    /// All values except those of Secrets and of kubectl's last-applied annotation.
    All,
}

/// Field that differs between two versions of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldChange {
    /// Path of the field, such as `.status.conditions[Ready].status`.
    pub path: String,
    /// Old and new value, if values are shown. Each of the two is `None` if that version does not
    /// have the field.
    pub values: Option<(Option<String>, Option<String>)>,
    /// Hash of the new value. Equal values have equal hashes within one process. The value cannot
    /// be derived from the hash.
    pub fingerprint: u64,
}

impl FieldChange {
    /// Creates a change without values.
    pub fn new(path: impl Into<String>, fingerprint: u64) -> Self {
        Self {
            path: path.into(),
            values: None,
            fingerprint,
        }
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
        f.write_str(&self.path)?;
        match &self.values {
            Some((old, new)) => write!(f, " {} -> {}", text(old), text(new)),
            None => Ok(()),
        }
    }
}

/// Options of a comparison of two versions of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffOptions {
    /// Largest number of changed fields that are returned.
    pub(crate) limit: usize,
    pub(crate) values: ShownValues,
    /// Whether values are never shown, as for Secrets.
    pub(crate) is_secret: bool,
}

/// Returns the first fields that differ, without fields such as `metadata.resourceVersion`, which
/// change with every update.
pub(crate) fn diff(old: Reader<'_>, new: Reader<'_>, options: DiffOptions) -> Vec<FieldChange> {
    let mut walk = Walk {
        path: String::new(),
        changes: Vec::new(),
        options,
    };
    // A tape that is not valid is reported when it is decoded.
    let _ = walk.values(old, new);
    walk.changes
}

struct Walk {
    path: String,
    changes: Vec<FieldChange>,
    options: DiffOptions,
}

impl Walk {
    /// Compares two values whose bytes differ.
    fn values(&mut self, old: Reader<'_>, new: Reader<'_>) -> Result<(), Damaged> {
        if self.changes.len() >= self.options.limit || is_noise(&self.path) {
            return Ok(());
        }
        match (old.peek()?, new.peek()?) {
            (Tag::Map, Tag::Map) => self.maps(old, new),
            (Tag::List, Tag::List) => self.lists(old, new),
            _ => {
                let (old, new) = (leaf(old)?, leaf(new)?);
                if old != new {
                    self.push(old, new);
                }
                Ok(())
            }
        }
    }

    /// Compares two maps. Two versions of an object nearly always have the same field names in the
    /// same order. So both maps are read in parallel, and the old map is searched only from the
    /// first difference on.
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

    /// Compares two lists item by item, in order. In the path of a change, an item is named by its
    /// `type` or `name`, if it has one.
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
            let step = step(item, n)?;
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
        if self.changes.len() >= self.options.limit || is_noise(&self.path) {
            return Ok(());
        }
        // For a container that was added or removed as a whole, report its parts.
        let is_new = new.is_some();
        let Some(value) = new.or(old) else {
            return Ok(());
        };
        let mut parts = value;
        let tag = value.peek()?;
        if matches!(tag, Tag::Map | Tag::List) {
            parts.next()?;
        }
        if matches!(tag, Tag::Map | Tag::List) && !parts.is_end() {
            for n in 0usize.. {
                let step = match tag {
                    Tag::Map => parts.name()?.map(|name| format!(".{name}")),
                    _ if parts.is_end() => None,
                    _ => Some(step(parts, n)?),
                };
                let Some(step) = step else {
                    break;
                };
                let part = parts;
                parts.skip()?;
                self.within(&step, |walk| match is_new {
                    true => walk.one_sided(None, Some(part)),
                    false => walk.one_sided(Some(part), None),
                })?;
            }
            return Ok(());
        }
        let side = |value: Option<Reader<'_>>| value.map_or(Ok(Leaf::absent()), leaf);
        self.push(side(old)?, side(new)?);
        Ok(())
    }

    fn push(&mut self, old: Leaf, new: Leaf) {
        let mut change = FieldChange::new(self.path.clone(), new.fingerprint);
        let is_status = self.path.starts_with(".status.") && old.is_plain && new.is_plain;
        let is_shown = match self.options.values {
            ShownValues::Status => is_status,
            ShownValues::All => !self.path.ends_with(LAST_APPLIED_CONFIGURATION),
        };
        if is_shown && !self.options.is_secret {
            change.values = Some((old.text, new.text));
        }
        self.changes.push(change);
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

/// Reports whether the field with this path changes with every update.
fn is_noise(path: &str) -> bool {
    matches!(
        path,
        ".metadata.resourceVersion" | ".metadata.generation" | ".metadata.managedFields"
    )
}

/// Returns the end of the value at `old` if its bytes are the same as those of the value from `new`
/// to `end`. Most values of two versions have the same bytes. Equal values can have different bytes
/// if a string is shared (interned) in only one of them.
fn same_bytes(old: Reader<'_>, new: Reader<'_>, end: usize) -> Option<usize> {
    // Numbers of interned strings are comparable only within one vocabulary.
    if !std::ptr::eq(old.vocabulary, new.vocabulary) {
        return None;
    }
    let bytes = new.bytes.get(new.at..end)?;
    let old_end = old.at.checked_add(bytes.len())?;
    (old.bytes.get(old.at..old_end)? == bytes).then_some(old_end)
}

/// Returns the path segment of a list item in brackets: its `type` or `name` or, if it has neither,
/// its position.
fn step(item: Reader<'_>, n: usize) -> Result<String, Damaged> {
    for name in ["type", "name"] {
        if let Some(mut value) = field(item, name)?
            && let Some(text) = value.text()?
        {
            return Ok(format!("[{}]", cut(&text)));
        }
    }
    Ok(format!("[{n}]"))
}

/// Value that is compared and possibly shown.
#[derive(Debug, PartialEq, Eq)]
struct Leaf {
    /// Text of the value; `None` if there is no value.
    text: Option<String>,
    /// Whether the value is a number, a boolean or absent.
    is_plain: bool,
    fingerprint: u64,
}

impl Leaf {
    fn absent() -> Self {
        Self {
            text: None,
            is_plain: true,
            fingerprint: fingerprint(None),
        }
    }
}

fn leaf(mut value: Reader<'_>) -> Result<Leaf, Damaged> {
    let item = value.next()?;
    let is_plain = !matches!(item, Item::Map | Item::List(_) | Item::Text(_));
    let is_empty = value.is_end();
    let text: Option<Cow<'_, str>> = match item {
        Item::Null | Item::End => None,
        Item::Map if is_empty => Some("{}".into()),
        Item::Map => Some("{…}".into()),
        Item::List(_) if is_empty => Some("[]".into()),
        Item::List(_) => Some("[…]".into()),
        Item::Bool(flag) => Some(flag.to_string().into()),
        Item::Unsigned(number) => Some(number.to_string().into()),
        Item::Signed(number) => Some(number.to_string().into()),
        Item::Float(number) => Some(number.to_string().into()),
        Item::Text(text) => Some(text),
    };
    Ok(Leaf {
        fingerprint: fingerprint(text.as_deref()),
        text: text.map(|text| cut(&text)),
        is_plain,
    })
}

/// Returns a hash whose key differs in each process, so that values cannot be guessed from the
/// hash.
fn fingerprint(text: Option<&str>) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    KEY.get_or_init(RandomState::new).hash_one(text)
}

/// Returns `text`, truncated if it is long.
fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
