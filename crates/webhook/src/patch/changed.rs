//! The parts of three documents in which a patch can lie.
//!
//! A webhook usually changes one or two fields of a large object. Two texts of the same Rust type
//! are compared before they are parsed: only the fields whose texts differ become values, and only
//! of them is the object of the request read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::admission::review;

/// The decoded object before and after it was changed, and the object of the request.
#[derive(Debug, PartialEq)]
pub(super) struct Documents {
    pub(super) before: Value,
    pub(super) after: Value,
    pub(super) raw: Value,
}

/// Number of levels at which fields are left out. The text of a field is read once for each level
/// down to it.
const LEVELS_MAX: u32 = 8;

/// Fields of one object as text. Of fields with the same name, the last one counts, as in a
/// [`Value`].
type Fields<'a> = BTreeMap<String, &'a RawValue>;

impl Documents {
    /// Parses the documents without the fields that are the same before and after, which no patch
    /// changes.
    ///
    /// # Errors
    /// Returns an error if a document is not JSON.
    pub(super) fn changed(
        before: &[u8],
        after: &[u8],
        raw: &[u8],
    ) -> Result<Self, serde_json::Error> {
        let texts = (
            review::text(before)?,
            review::text(after)?,
            review::text(raw)?,
        );
        parse(texts.0, texts.1, texts.2, LEVELS_MAX)
    }
}

fn parse(
    before: &str,
    after: &str,
    raw: &str,
    levels: u32,
) -> Result<Documents, serde_json::Error> {
    let is_object = |document: &&str| document.starts_with('{');
    if levels == 0 || ![before, after, raw].iter().all(is_object) {
        return Ok(Documents {
            before: serde_json::from_str(before)?,
            after: serde_json::from_str(after)?,
            raw: serde_json::from_str(raw)?,
        });
    }
    let (before, after, raw) = (fields(before)?, fields(after)?, fields(raw)?);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changed: [Map<String, Value>; 3] = Default::default();
    for name in names {
        let (before, after, raw) = (before.get(name), after.get(name), raw.get(name));
        let values = match (before, after, raw) {
            (Some(before), Some(after), _) if before.get() == after.get() => continue,
            (Some(before), Some(after), Some(raw)) => {
                let levels = levels.saturating_sub(1);
                let documents = parse(before.get(), after.get(), raw.get(), levels)?;
                [documents.before, documents.after, documents.raw].map(Some)
            }
            _ => [optional(before)?, optional(after)?, optional(raw)?],
        };
        for (fields, value) in changed.iter_mut().zip(values) {
            fields.extend(value.map(|value| (name.clone(), value)));
        }
    }
    let [before, after, raw] = changed.map(Value::Object);
    Ok(Documents { before, after, raw })
}

fn fields(document: &str) -> Result<Fields<'_>, serde_json::Error> {
    serde_json::from_str(document)
}

fn optional(document: Option<&&RawValue>) -> Result<Option<Value>, serde_json::Error> {
    document
        .map(|document| serde_json::from_str(document.get()))
        .transpose()
}

#[cfg(test)]
mod tests;
