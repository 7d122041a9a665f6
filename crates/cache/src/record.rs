//! One object as it is stored, shared by the store, its readers and what listeners are told.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use opkit_apimachinery::redact::is_secret;
use opkit_client::{Object, ObjectKey, one_line};
use parking_lot::Mutex;
use tracing::warn;

use crate::object::{Codec, Ignored};
use crate::pool::Pool;
use crate::tape::diff::{FieldChange, ShownValues, Wanted, diff};
use crate::tape::meta::{Meta, field};
use crate::tape::reader::Reader;
use crate::tape::strings::Vocabulary;
use crate::tape::{encoder::Encoder, project, strings::Interner, visit};
use crate::{AnyObject, CachedObject, ObjectError, downcast};

/// No such field.
const NOWHERE: u32 = u32::MAX;
/// What a record costs beside its tape: itself, its reference counts, its two allocations, its
/// place in the store and in the indexes.
pub(crate) const OVERHEAD: usize = 176;

/// What all records of one generation share.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) codec: Arc<Codec>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) pool: Arc<Pool>,
    pub(crate) counts: Arc<Counts>,
}

/// What happened to the objects of an informer.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// How often a Rust object was made of a stored one.
    pub(crate) decodes: AtomicU64,
    /// How often that failed.
    pub(crate) decode_errors: AtomicU64,
}

/// An object in the cache. Cloning is cheap, and it never changes: a new version is another.
///
/// Its metadata is read in place; the Rust object is made when somebody asks for it, and kept while
/// it is in use.
#[derive(Clone)]
pub struct Stored {
    record: Arc<Record>,
}

struct Record {
    origin: Arc<Origin>,
    body: Body,
    /// Where in the tape the metadata is, and the name and namespace in it.
    metadata: u32,
    name: u32,
    namespace: u32,
    /// The resourceVersion, or 0 if that is not a number.
    version: u64,
    decoded: Mutex<Decoded>,
    /// Whether it was read since the pool looked last.
    hot: AtomicBool,
}

enum Body {
    Tape(Box<[u8]>),
    Typed(AnyObject),
    /// A tape of the metadata alone: the rest gave way to the memory budget.
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

/// How objects are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum StoreForm {
    /// Compactly; the Rust object is made when it is read, and kept while it is in use. The
    /// default.
    #[default]
    Compact,
    /// Compactly, and only those fields that the Rust type has: for types that leave most of a
    /// kind out.
    Projected,
    /// As Rust objects: for small kinds that are read all the time.
    Typed,
}

impl Stored {
    /// Stores the object of a tape. It must have a name.
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
            _ => Some(NOWHERE),
        };
        let (name, namespace) = (at("name")?, at("namespace")?);
        if name == NOWHERE {
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

    /// The object as it was when it could not even be stored: what its head says.
    pub(crate) fn unreadable(self, cause: serde_json::Error) -> Self {
        let error = self.error_of(cause);
        self.failed(error)
    }

    /// The metadata.
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

    /// The name.
    pub fn name(&self) -> Cow<'_, str> {
        self.text(self.record.name)
            .unwrap_or_else(|| self.meta().name())
    }

    /// The namespace, if the kind is namespaced.
    pub fn namespace(&self) -> Option<Cow<'_, str>> {
        match &self.record.body {
            Body::Typed(_) => self.meta().namespace(),
            _ => self
                .text(self.record.namespace)
                .filter(|namespace| !namespace.is_empty()),
        }
    }

    /// Name and namespace.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: self.namespace().map(Cow::into_owned),
            name: self.name().into_owned(),
        }
    }

    /// The text of a field, such as `spec.nodeName`, without making the Rust object. `None` if it
    /// is not there, or neither text, number nor flag, or the object is stored as a Rust object.
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

    /// Returns the first `limit` fields in which this differs from `old`, an earlier version of it.
    /// There are none where objects are stored as Rust objects. Values of Secrets are never shown,
    /// nor is kubectl's copy of what was applied.
    pub fn changes_since(&self, old: &Self, limit: usize, values: ShownValues) -> Vec<FieldChange> {
        let (Some(before), Some(after)) = (old.tape(), self.tape()) else {
            return Vec::new();
        };
        let before = Reader::new(before, &old.record.origin.vocabulary);
        let after = Reader::new(after, &self.record.origin.vocabulary);
        let wanted = Wanted {
            limit,
            values,
            is_secret: is_secret(&self.record.origin.codec.kind.kind),
        };
        diff(before, after, wanted)
    }

    /// The Rust object, without its type.
    ///
    /// # Errors
    /// When the object does not fit its Rust type, or was evicted.
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
                // What is read once, as in a scan, does not push out what is read all the time.
                if self.record.hot.swap(true, Ordering::Relaxed) {
                    self.record.origin.pool.keep(self, &object);
                }
                Ok(object)
            }
            Err(error) => {
                // An evicted object has no body to fail.
                if matches!(&*error, ObjectError::Unreadable { .. }) {
                    *decoded = Decoded::Failed(error.clone());
                }
                Err(error)
            }
        }
    }

    /// The Rust object.
    ///
    /// # Errors
    /// As [`any`](Stored::any), and when `K` is not the type it is stored for.
    pub fn get<K: Object>(&self) -> Result<Arc<K>, Arc<ObjectError>> {
        downcast(&self.any()?).ok_or_else(|| {
            self.error_of(serde::de::Error::custom(
                "the cache holds it as another type",
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
        // The type is the user's: a panic of its own is an error of this object as well.
        let decode = AssertUnwindSafe(|| origin.codec.decode(tape, &origin.vocabulary, ignored));
        let decoded = catch_unwind(decode)
            .unwrap_or_else(|_| Err(serde::de::Error::custom("its deserializer panicked")));
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
        warn!(error = one_line(&error), "an object does not fit its type");
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

    /// The resourceVersion as a number, 0 if it is none.
    pub(crate) fn version(&self) -> u64 {
        self.record.version
    }

    /// Whether it is of this generation of strings.
    pub(crate) fn is_of(&self, origin: &Arc<Origin>) -> bool {
        Arc::ptr_eq(&self.record.origin, origin)
    }

    /// Whether it was read since this was asked last.
    pub(crate) fn cool(&self) -> bool {
        self.record.hot.swap(false, Ordering::Relaxed)
    }

    /// Whether the body has given way to the memory budget.
    pub fn is_evicted(&self) -> bool {
        matches!(self.record.body, Body::Evicted(_))
    }

    /// Its memory in bytes, without that of the Rust object made of it.
    pub(crate) fn bytes(&self) -> usize {
        OVERHEAD + self.tape().map_or(0, <[u8]>::len)
    }

    pub(crate) fn tape(&self) -> Option<&[u8]> {
        match &self.record.body {
            Body::Typed(_) => None,
            Body::Tape(tape) | Body::Evicted(tape) => Some(tape),
        }
    }

    /// The same object with strings of another generation.
    pub(crate) fn moved_to(&self, origin: &Arc<Origin>, interner: &mut Interner) -> Option<Self> {
        if let Body::Typed(object) = &self.record.body {
            // It has no such strings, but would hold on to those of its generation.
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

    /// The same object without its body; `None` if it has none, or nothing is gained by it.
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
            metadata: NOWHERE,
            name: NOWHERE,
            namespace: NOWHERE,
            version: 0,
            decoded: Mutex::new(Decoded::No),
            hot: AtomicBool::new(false),
        }
    }
}

/// A number of an object that differs from that of most others.
pub(crate) fn number_of(name: &str, namespace: Option<&str>) -> u32 {
    let bytes = name.bytes().chain(namespace.unwrap_or_default().bytes());
    bytes.fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
