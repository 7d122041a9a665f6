//! One object in its stored form, shared by the store, its readers and pending deltas.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use opkit_apimachinery::redact::is_secret;
use opkit_client::{Object, ObjectKey, one_line};
use parking_lot::Mutex;
use serde::Deserialize;
use tracing::warn;

use crate::object::{Codec, Ignored};
use crate::pool::Pool;
use crate::tape::deserialize::TapeDeserializer;
use crate::tape::diff::{DiffOptions, FieldChange, ShownValues, diff};
use crate::tape::encoder::Encoder;
use crate::tape::meta::{Meta, field};
use crate::tape::reader::Reader;
use crate::tape::strings::Interner;
use crate::tape::strings::Vocabulary;
use crate::tape::{project, visit};
use crate::{AnyObject, CachedObject, ObjectError, downcast};

/// Value of an offset if the object does not have the field.
const NO_FIELD: u32 = u32::MAX;
/// Memory of a stored object besides its tape (binary form), in bytes: the record, its reference
/// counts, its two allocations, and its places in the store and in the indexes.
pub(crate) const OVERHEAD: usize = 176;

/// Codec, pool and counters of an informer, and one set of shared strings. All stored objects whose
/// binary form refers to these strings share one `Origin`.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) codec: Arc<Codec>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) pool: Arc<Pool>,
    pub(crate) counts: Arc<Counts>,
}

/// Decode counters of an informer.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Number of times a stored object was decoded into a Rust object.
    pub(crate) decodes: AtomicU64,
    /// Number of decodes that failed.
    pub(crate) decode_errors: AtomicU64,
}

/// One version of an object in the cache. A `Stored` is immutable and cheap to clone.
///
/// The metadata is read in place. The Rust object is decoded on first use and kept while in use.
#[derive(Clone)]
pub struct Stored {
    record: Arc<Record>,
}

struct Record {
    origin: Arc<Origin>,
    body: Body,
    /// Offset of the metadata in the tape (binary form).
    metadata: u32,
    /// Offset of the name in the tape.
    name: u32,
    /// Offset of the namespace in the tape.
    namespace: u32,
    /// resourceVersion as a number, or 0 if the resourceVersion is not a number.
    version: u64,
    decoded: Mutex<Decoded>,
    /// Whether the object was read since the pool or the eviction of bodies last checked.
    hot: AtomicBool,
}

enum Body {
    Tape(Box<[u8]>),
    Typed(AnyObject),
    /// Tape (binary form) of the metadata alone. The rest of the object was evicted by the memory
    /// budget.
    Evicted(Box<[u8]>),
}

#[derive(Debug)]
enum Decoded {
    No,
    Yes(Weak<dyn CachedObject>),
    Failed(Arc<ObjectError>),
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("kind", &self.record.origin.codec.kind.kind)
            .field("key", &self.key().to_string())
            .field("version", &self.record.version)
            .finish_non_exhaustive()
    }
}

/// Form in which objects are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum StoreForm {
    /// Compact binary form. The Rust object is decoded when it is read, and kept while in use. This
    /// is the default.
    #[default]
    Compact,
    /// Compact binary form of only those fields that the Rust type has. Suitable for types that
    /// leave out most fields of a kind.
    Projected,
    /// Decoded Rust objects. Suitable for small kinds that are read often.
    Typed,
}

impl Stored {
    /// Creates the stored form of the object in `tape`. Returns `None` if the object has no name.
    pub(crate) fn new(origin: &Arc<Origin>, tape: &[u8], form: StoreForm) -> Option<Self> {
        let stored = Self::of_body(origin, Body::Tape(tape.into()))?;
        match form {
            StoreForm::Compact => Some(stored),
            StoreForm::Projected => {
                let ignored = Ignored::default();
                match stored.decode(Some(&ignored)) {
                    Ok(_) => {
                        let mut out = Vec::with_capacity(tape.len());
                        project::without(tape, &ignored, &mut out);
                        Self::of_body(origin, Body::Tape(out.into()))
                    }
                    Err(error) => Some(stored.failed(error)),
                }
            }
            StoreForm::Typed => match stored.decode(None) {
                Ok(object) => {
                    let mut record = Record::new(origin, Body::Typed(object));
                    record.version = stored.record.version;
                    Some(Self {
                        record: Arc::new(record),
                    })
                }
                Err(error) => Some(stored.failed(error)),
            },
        }
    }

    fn of_body(origin: &Arc<Origin>, body: Body) -> Option<Self> {
        let mut record = Record::new(origin, body);
        let (Body::Tape(tape) | Body::Evicted(tape)) = &record.body else {
            return None;
        };
        let start = Reader::new(tape, &origin.vocabulary);
        let metadata = field(start, "metadata").ok()??;
        let at = |name| match field(metadata, name) {
            Ok(Some(reader)) => u32::try_from(reader.at).ok(),
            _ => Some(NO_FIELD),
        };
        let (name, namespace) = (at("name")?, at("namespace")?);
        if name == NO_FIELD {
            return None;
        }
        let version = Meta::of_tape(metadata).resource_version();
        let version = version
            .and_then(|version| version.parse().ok())
            .unwrap_or(0);
        let metadata = u32::try_from(metadata.at).ok()?;
        record.metadata = metadata;
        record.name = name;
        record.namespace = namespace;
        record.version = version;
        Some(Self {
            record: Arc::new(record),
        })
    }

    fn failed(self, error: Arc<ObjectError>) -> Self {
        *self.record.decoded.lock() = Decoded::Failed(error);
        self
    }

    /// Marks the object as unreadable, because it could not be fully parsed. Its stored form has
    /// only the name, namespace, UID and resourceVersion.
    pub(crate) fn unreadable(self, cause: serde_json::Error) -> Self {
        let error = self.error_of(cause);
        self.failed(error)
    }

    /// Returns the metadata.
    pub fn meta(&self) -> Meta<'_> {
        match &self.record.body {
            Body::Typed(object) => Meta::from(object.object_meta()),
            Body::Tape(tape) | Body::Evicted(tape) => {
                let mut reader = Reader::new(tape, &self.record.origin.vocabulary);
                reader.at = self.record.metadata as usize;
                Meta::of_tape(reader)
            }
        }
    }

    /// Returns the name.
    pub fn name(&self) -> Cow<'_, str> {
        self.text(self.record.name)
            .unwrap_or_else(|| self.meta().name())
    }

    /// Returns the namespace, if the kind is namespaced.
    pub fn namespace(&self) -> Option<Cow<'_, str>> {
        match &self.record.body {
            Body::Typed(_) => self.meta().namespace(),
            _ => self
                .text(self.record.namespace)
                .filter(|namespace| !namespace.is_empty()),
        }
    }

    /// Returns the name and the namespace.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: self.namespace().map(Cow::into_owned),
            name: self.name().into_owned(),
        }
    }

    /// Returns the text of a field, such as `spec.nodeName`, without decoding the object. `None` if
    /// the field is missing or is not a string, number or boolean, or if the object is stored as a
    /// Rust object.
    pub fn field(&self, path: &str) -> Option<Cow<'_, str>> {
        let (Body::Tape(tape) | Body::Evicted(tape)) = &self.record.body else {
            return None;
        };
        let mut reader = Reader::new(tape, &self.record.origin.vocabulary);
        for name in path.split('.') {
            reader = field(reader, name).ok()??;
        }
        reader.scalar().ok()?
    }

    /// Returns the value of a field, such as `status.conditions`, without decoding the object.
    /// `None` if the field is missing, or if the object is stored as a Rust object.
    pub fn value(&self, path: &str) -> Option<serde_json::Value> {
        let tape = self.tape()?;
        let mut reader = Reader::new(tape, &self.record.origin.vocabulary);
        for name in path.split('.') {
            reader = field(reader, name).ok()??;
        }
        serde_json::Value::deserialize(TapeDeserializer::new(&mut reader, None)).ok()
    }

    /// Returns the first `limit` fields in which this version differs from the earlier version
    /// `old`. Returns no fields if objects are stored as Rust objects. Values of Secrets and of
    /// kubectl's last-applied annotation are never shown.
    pub fn changes_since(&self, old: &Self, limit: usize, values: ShownValues) -> Vec<FieldChange> {
        let (Some(before), Some(after)) = (old.tape(), self.tape()) else {
            return Vec::new();
        };
        let before = Reader::new(before, &old.record.origin.vocabulary);
        let after = Reader::new(after, &self.record.origin.vocabulary);
        let options = DiffOptions {
            limit,
            values,
            is_secret: is_secret(&self.record.origin.codec.kind.kind),
        };
        diff(before, after, options)
    }

    /// Returns the decoded object as a type-erased [`AnyObject`].
    ///
    /// # Errors
    /// If the object does not match its Rust type, or was evicted.
    pub fn any(&self) -> Result<AnyObject, Arc<ObjectError>> {
        if let Body::Typed(object) = &self.record.body {
            return Ok(object.clone());
        }
        let mut decoded = self.record.decoded.lock();
        match &*decoded {
            Decoded::Yes(object) => {
                if let Some(object) = object.upgrade() {
                    self.record.hot.store(true, Ordering::Relaxed);
                    return Ok(object);
                }
            }
            Decoded::Failed(error) => return Err(error.clone()),
            Decoded::No => {}
        }
        match self.decode(None) {
            Ok(object) => {
                *decoded = Decoded::Yes(Arc::downgrade(&object));
                drop(decoded);
                // An object that is read once, as in a scan, does not displace objects that are
                // read often.
                if self.record.hot.swap(true, Ordering::Relaxed) {
                    self.record.origin.pool.keep(self, &object);
                }
                Ok(object)
            }
            Err(error) => {
                // Eviction is not a property of the object, so it is not remembered as a decode
                // failure.
                if matches!(&*error, ObjectError::Unreadable { .. }) {
                    *decoded = Decoded::Failed(error.clone());
                }
                Err(error)
            }
        }
    }

    /// Returns the decoded object.
    ///
    /// # Errors
    /// Same as [`any`](Stored::any). Also if the object is stored as another type than `K`.
    pub fn get<K: Object>(&self) -> Result<Arc<K>, Arc<ObjectError>> {
        downcast(&self.any()?).ok_or_else(|| {
            self.error_of(serde::de::Error::custom(
                "the cache stores this kind as another Rust type",
            ))
        })
    }

    fn decode(&self, ignored: Option<&Ignored>) -> Result<AnyObject, Arc<ObjectError>> {
        let origin = &self.record.origin;
        let tape = match &self.record.body {
            Body::Typed(object) => return Ok(object.clone()),
            Body::Tape(tape) => tape,
            Body::Evicted(_) => {
                return Err(Arc::new(ObjectError::Evicted {
                    kind: origin.codec.kind.clone(),
                    key: self.key(),
                }));
            }
        };
        origin.counts.decodes.fetch_add(1, Ordering::Relaxed);
        // The type is the user's: if its deserializer panics, only this object gets an error.
        let decode = AssertUnwindSafe(|| origin.codec.decode(tape, &origin.vocabulary, ignored));
        let decoded = catch_unwind(decode).unwrap_or_else(|_| {
            Err(serde::de::Error::custom(
                "the deserializer of the Rust type panicked",
            ))
        });
        decoded.map_err(|cause| self.error_of(cause))
    }

    fn error_of(&self, cause: serde_json::Error) -> Arc<ObjectError> {
        let origin = &self.record.origin;
        origin.counts.decode_errors.fetch_add(1, Ordering::Relaxed);
        let error = ObjectError::Unreadable {
            kind: origin.codec.kind.clone(),
            key: self.key(),
            cause,
        };
        warn!(
            error = one_line(&error),
            "cached object does not match its Rust type"
        );
        Arc::new(error)
    }

    fn text(&self, at: u32) -> Option<Cow<'_, str>> {
        let (Body::Tape(tape) | Body::Evicted(tape)) = &self.record.body else {
            return None;
        };
        let mut reader = Reader::new(tape, &self.record.origin.vocabulary);
        reader.at = at as usize;
        reader.text().ok()?
    }

    /// Returns the resourceVersion as a number, or 0 if the resourceVersion is not a number.
    pub(crate) fn version(&self) -> u64 {
        self.record.version
    }

    /// Reports whether the object uses the shared strings of `origin`.
    pub(crate) fn has_origin(&self, origin: &Arc<Origin>) -> bool {
        Arc::ptr_eq(&self.record.origin, origin)
    }

    /// Reports whether the object was read since the last call of this method.
    pub(crate) fn take_hot(&self) -> bool {
        self.record.hot.swap(false, Ordering::Relaxed)
    }

    /// Reports whether the body was evicted by the memory budget.
    pub fn is_evicted(&self) -> bool {
        matches!(self.record.body, Body::Evicted(_))
    }

    /// Returns the memory of the stored object in bytes, without the Rust object decoded from it.
    pub(crate) fn bytes(&self) -> usize {
        OVERHEAD + self.tape().map_or(0, <[u8]>::len)
    }

    pub(crate) fn tape(&self) -> Option<&[u8]> {
        match &self.record.body {
            Body::Typed(_) => None,
            Body::Tape(tape) | Body::Evicted(tape) => Some(tape),
        }
    }

    /// Returns the same object, encoded with the shared strings of `origin` instead of its current
    /// strings.
    pub(crate) fn moved_to(&self, origin: &Arc<Origin>, interner: &mut Interner) -> Option<Self> {
        if let Body::Typed(object) = &self.record.body {
            // It has no such strings, but would keep those of its generation alive.
            let mut record = Record::new(origin, Body::Typed(object.clone()));
            record.version = self.record.version;
            return Some(Self {
                record: Arc::new(record),
            });
        }
        let tape = self.tape()?;
        let mut out = Vec::with_capacity(tape.len());
        let object = number_of(&self.name(), self.namespace().as_deref());
        let mut encoder = Encoder::new(&mut out, &origin.vocabulary, interner, object);
        let mut reader = Reader::new(tape, &self.record.origin.vocabulary);
        let tape = crate::tape::deserialize::TapeDeserializer::new(&mut reader, None);
        visit::encode(tape, &mut encoder, &|_| true).ok()?;
        let body = match self.is_evicted() {
            true => Body::Evicted(out.into()),
            false => Body::Tape(out.into()),
        };
        let moved = Self::of_body(origin, body)?;
        if let Decoded::Failed(error) = &*self.record.decoded.lock() {
            *moved.record.decoded.lock() = Decoded::Failed(error.clone());
        }
        Some(moved)
    }

    /// Returns the same object without its body; `None` if it has no body or the eviction would
    /// free no memory.
    pub(crate) fn evicted(&self) -> Option<Self> {
        let Body::Tape(tape) = &self.record.body else {
            return None;
        };
        let origin = &self.record.origin;
        let metadata = crate::tape::metadata_only(tape, &origin.vocabulary)?;
        if metadata.len() >= tape.len() {
            return None;
        }
        Self::of_body(origin, Body::Evicted(metadata.into()))
    }
}

impl Record {
    fn new(origin: &Arc<Origin>, body: Body) -> Self {
        Self {
            origin: origin.clone(),
            body,
            metadata: NO_FIELD,
            name: NO_FIELD,
            namespace: NO_FIELD,
            version: 0,
            decoded: Mutex::new(Decoded::No),
            hot: AtomicBool::new(false),
        }
    }
}

/// Returns a hash of an object's key, which differs for most objects.
pub(crate) fn number_of(name: &str, namespace: Option<&str>) -> u32 {
    let bytes = name.bytes().chain(namespace.unwrap_or_default().bytes());
    bytes.fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
