//! A stored object: immutable, and held as JSON text.
//!
//! The text is written once, when the object is committed, in an order in which the forms of the
//! API are slices of it: `kind` and `apiVersion` come first, because items of lists lack them, and
//! `metadata` comes next, because it is a response of its own. The parts that selectors and
//! controllers need are found without decoding the object, by their positions in the text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use opkit_apimachinery::protobuf::{self, ProtobufError};
use serde_json::{Map, Value};

use super::Key;
use super::budget::{Budget, Reserved};
use super::draft::{Draft, Positions};

/// A stored object.
pub(crate) struct Stored {
    resource: Arc<str>,
    revision: u64,
    /// The JSON of the object, followed by its namespace, its name and its UID.
    text: Box<str>,
    positions: Positions,
    /// The protobuf message of the object, if a client asked for it and the budget had room.
    protobuf: OnceLock<Box<Reserved>>,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.resource, self.json())
    }
}

impl Stored {
    /// `text` is the JSON of the object, its namespace, its name and its UID, at these positions.
    pub(super) fn new(
        resource: Arc<str>,
        revision: u64,
        text: Box<str>,
        positions: Positions,
    ) -> Self {
        Self {
            resource,
            revision,
            text,
            positions,
            protobuf: OnceLock::new(),
        }
    }

    /// Returns this object with another resource version.
    pub(crate) fn at_revision(&self, revision: u64) -> Self {
        let (text, positions) = self.positions.with_revision(&self.text, revision);
        Self::new(self.resource.clone(), revision, text, positions)
    }

    /// Returns this object with other content, such as that of another version.
    pub(crate) fn with_object(&self, object: &Value) -> Self {
        Draft::new(object).commit(self.resource.clone(), self.revision)
    }

    /// Returns the name of the resource to which the object belongs.
    pub(crate) fn resource(&self) -> &Arc<str> {
        &self.resource
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn namespace(&self) -> &str {
        self.slice(self.positions.namespace())
    }

    pub(crate) fn name(&self) -> &str {
        self.slice(self.positions.name())
    }

    pub(crate) fn uid(&self) -> &str {
        self.slice(self.positions.uid(self.text.len()))
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(self.namespace(), self.name())
    }

    /// Reports whether the object has a deletion timestamp.
    pub(crate) fn is_deleting(&self) -> bool {
        self.positions.is_deleting
    }

    /// Returns the labels of the object.
    pub(crate) fn labels(&self) -> Option<Map<String, Value>> {
        let labels = self.slice(self.positions.labels());
        match labels {
            "" => None,
            labels => serde_json::from_str(labels).ok(),
        }
    }

    /// Returns the owner references of the object.
    pub(crate) fn owners(&self) -> Vec<Value> {
        let owners = self.slice(self.positions.owners());
        match owners {
            "" => Vec::new(),
            owners => serde_json::from_str(owners).unwrap_or_default(),
        }
    }

    /// Reports whether the object has owner references.
    pub(crate) fn has_owners(&self) -> bool {
        !self.owners().is_empty()
    }

    /// Returns the JSON of the whole object.
    pub(crate) fn json(&self) -> &str {
        self.slice(self.positions.json())
    }

    /// Returns the JSON of the object from the field `metadata` to the closing brace. `kind` and
    /// `apiVersion`, which come before, are left out.
    pub(crate) fn json_from_metadata(&self) -> &str {
        self.slice(self.positions.without_type())
    }

    /// Returns the JSON of the object's metadata.
    pub(crate) fn metadata_json(&self) -> &str {
        self.slice(self.positions.metadata())
    }

    /// Decodes the object.
    pub(crate) fn decode(&self) -> Value {
        serde_json::from_str(self.json()).unwrap_or_default()
    }

    /// Returns the protobuf message of the object without an envelope. The message is kept for
    /// later calls if `budget` has room for it.
    pub(crate) fn protobuf(&self, budget: &Arc<Budget>) -> Result<Cow<'_, [u8]>, ProtobufError> {
        if let Some(kept) = self.protobuf.get() {
            return Ok(Cow::Borrowed(kept.bytes()));
        }
        let message = protobuf::encode_message(&self.decode())?;
        match budget.reserve(message.into()) {
            Ok(reserved) => Ok(Cow::Borrowed(
                self.protobuf.get_or_init(|| Box::new(reserved)).bytes(),
            )),
            Err(message) => Ok(Cow::Owned(message.into_vec())),
        }
    }

    /// Returns the message that [`Self::protobuf`] has kept. The message is empty if none was kept.
    pub(crate) fn kept_protobuf(&self) -> &[u8] {
        self.protobuf.get().map_or(&[], |kept| kept.bytes())
    }

    fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }
}
