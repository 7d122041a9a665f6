//! The text of an object before its commit, in which only the resource version is missing.
//!
//! The text is written without the lock of the store. Under the lock, only the digits of the new
//! resource version are inserted.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Stored;
use crate::object;

/// The text of an object without its resource version.
#[derive(Debug)]
pub(super) struct Draft {
    text: String,
    positions: Positions,
}

/// The positions of the parts of a stored object in its text, in bytes. Objects are smaller than
/// 4 GiB, because request bodies are limited to 3 MiB.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Positions {
    /// Start of the field `metadata`.
    from_metadata: u32,
    labels: (u32, u32),
    owners: (u32, u32),
    /// The digits of the resource version, which is the last field of `metadata`.
    version: (u32, u32),
    json_end: u32,
    namespace_end: u32,
    name_end: u32,
    pub(super) is_deleting: bool,
}

const METADATA: &str = "\"metadata\":";
const VERSION: &str = "\"resourceVersion\":\"";
/// The text between the digits of the resource version and the field after `metadata`.
const VERSION_END: &str = "\"}";

impl Draft {
    pub(super) fn new(object: &Value) -> Self {
        let mut writer = Writer {
            // An object without managed fields grows by about 200 bytes.
            out: Vec::with_capacity(1024),
            positions: Positions::default(),
        };
        let empty = Map::new();
        let fields = object.as_object().unwrap_or(&empty);
        writer.object(fields);
        for part in [
            object::namespace(object),
            object::name(object),
            object::uid(object),
        ] {
            writer.out.extend_from_slice(part.as_bytes());
        }
        let mut positions = writer.positions;
        positions.namespace_end = positions.json_end + length(object::namespace(object));
        positions.name_end = positions.namespace_end + length(object::name(object));
        positions.is_deleting = object::is_deleting(object);
        // The writer writes only UTF-8.
        let text = String::from_utf8(writer.out).unwrap_or_default();
        Self { text, positions }
    }

    /// Returns the object as it is stored at `revision`.
    pub(super) fn commit(&self, resource: Arc<str>, revision: u64) -> Stored {
        let (text, positions) = self.positions.with_revision(&self.text, revision);
        Stored::new(resource, revision, text, positions)
    }
}

impl Positions {
    pub(super) fn json(self) -> Range<usize> {
        range(0, self.json_end)
    }

    pub(super) fn without_type(self) -> Range<usize> {
        range(self.from_metadata, self.json_end)
    }

    pub(super) fn metadata(self) -> Range<usize> {
        let start = self.from_metadata + length(METADATA);
        range(start, self.version.1 + length(VERSION_END))
    }

    pub(super) fn labels(self) -> Range<usize> {
        range(self.labels.0, self.labels.1)
    }

    pub(super) fn owners(self) -> Range<usize> {
        range(self.owners.0, self.owners.1)
    }

    pub(super) fn namespace(self) -> Range<usize> {
        range(self.json_end, self.namespace_end)
    }

    pub(super) fn name(self) -> Range<usize> {
        range(self.namespace_end, self.name_end)
    }

    pub(super) fn uid(self, end: usize) -> Range<usize> {
        self.name_end as usize..end
    }

    /// Returns `text` with another resource version, and the positions in the returned text.
    pub(super) fn with_revision(self, text: &str, revision: u64) -> (Box<str>, Self) {
        let digits = revision.to_string();
        let (start, end) = self.version;
        let before = text.get(..start as usize).unwrap_or_default();
        let after = text.get(end as usize..).unwrap_or_default();
        // With the exact capacity, the conversion to a box does not move the text.
        let mut new = String::with_capacity(before.len() + digits.len() + after.len());
        new.push_str(before);
        new.push_str(&digits);
        new.push_str(after);
        let new_end = start + length(&digits);
        let moved = |position: u32| position.saturating_sub(end).saturating_add(new_end);
        let positions = Self {
            version: (start, new_end),
            json_end: moved(self.json_end),
            namespace_end: moved(self.namespace_end),
            name_end: moved(self.name_end),
            ..self
        };
        (new.into_boxed_str(), positions)
    }
}

/// Writer of the JSON of an object, which notes the positions of its parts.
struct Writer {
    out: Vec<u8>,
    positions: Positions,
}

impl Writer {
    fn object(&mut self, fields: &Map<String, Value>) {
        self.out.push(b'{');
        for field in ["kind", "apiVersion"] {
            if let Some(value) = fields.get(field) {
                self.field(field, value);
                self.out.push(b',');
            }
        }
        self.positions.from_metadata = self.position();
        self.metadata(fields.get("metadata").and_then(Value::as_object));
        for (field, value) in fields {
            if !matches!(field.as_str(), "kind" | "apiVersion" | "metadata") {
                self.out.push(b',');
                self.field(field, value);
            }
        }
        self.out.push(b'}');
        self.positions.json_end = self.position();
    }

    /// Writes the field `metadata`, with an empty resource version as its last field.
    fn metadata(&mut self, fields: Option<&Map<String, Value>>) {
        self.out.extend_from_slice(METADATA.as_bytes());
        self.out.push(b'{');
        for (field, value) in fields.into_iter().flatten() {
            if field == "resourceVersion" {
                continue;
            }
            let (start, end) = self.field(field, value);
            match field.as_str() {
                "labels" => self.positions.labels = (start, end),
                "ownerReferences" => self.positions.owners = (start, end),
                _ => {}
            }
            self.out.push(b',');
        }
        self.out.extend_from_slice(VERSION.as_bytes());
        self.positions.version = (self.position(), self.position());
        self.out.extend_from_slice(VERSION_END.as_bytes());
    }

    /// Writes a field, and returns the positions of the start and the end of its value.
    fn field(&mut self, name: &str, value: &Value) -> (u32, u32) {
        self.json(name);
        self.out.push(b':');
        let start = self.position();
        self.json(value);
        (start, self.position())
    }

    fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) {
        let written = serde_json::to_writer(&mut self.out, value);
        debug_assert!(written.is_ok(), "a JSON value can be written to memory");
    }

    fn position(&self) -> u32 {
        u32::try_from(self.out.len()).unwrap_or(u32::MAX)
    }
}

fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

fn range(start: u32, end: u32) -> Range<usize> {
    start as usize..end as usize
}
