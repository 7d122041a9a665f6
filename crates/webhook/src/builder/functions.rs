//! The functions of a webhook, and the calls of them: the only part that depends on the type of the
//! object.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use opkit_controller::ReadDeclarations;

use super::{AdmissionObject, AsyncMutate, AsyncValidate};
use crate::admission::endpoint::{Decide, Decision, Failure};
use crate::admission::request::{AdmissionRequest, Operation};
use crate::admission::review::{self, ParsedReview};
use crate::handler::Call;
use crate::{Admission, WebhookContext};

type Mutate<K> = dyn Fn(&mut K) + Send + Sync;
type Validate<K> = dyn Fn(&K, Option<&K>) -> Admission + Send + Sync;
type ValidateDelete<K> = dyn Fn(&K) -> Admission + Send + Sync;

/// Functions that set fields.
pub(super) struct Mutating<K> {
    pub(super) plain: Vec<Arc<Mutate<K>>>,
    pub(super) with: Vec<Arc<AsyncMutate<K>>>,
}

/// Functions that decide.
pub(super) struct Validating<K> {
    pub(super) plain: Vec<Arc<Validate<K>>>,
    pub(super) delete: Vec<Arc<ValidateDelete<K>>>,
    pub(super) with: Vec<Arc<AsyncValidate<K>>>,
}

impl<K> Default for Mutating<K> {
    fn default() -> Self {
        Self {
            plain: Vec::new(),
            with: Vec::new(),
        }
    }
}

impl<K> Default for Validating<K> {
    fn default() -> Self {
        Self {
            plain: Vec::new(),
            delete: Vec::new(),
            with: Vec::new(),
        }
    }
}

impl<K: AdmissionObject> Mutating<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.with.is_empty()
    }

    pub(super) fn erase(self, reads: &ReadDeclarations) -> Arc<dyn Decide> {
        Arc::new(ErasedMutating {
            functions: Arc::new(self),
            reads: reads.clone(),
        })
    }

    async fn call(
        &self,
        review: &ParsedReview,
        context: &WebhookContext<()>,
    ) -> Result<Decision, Failure> {
        // A deletion changes no object.
        if review.attributes.operation == Operation::Delete {
            return Ok(Decision::default());
        }
        let mut object: K = decode(review.object.as_ref(), "object")?;
        let size = review.object.as_ref().map_or(0, Bytes::len);
        let before = encode(&object, size)?;
        for function in &self.plain {
            function(&mut object);
        }
        let mut admission = Admission::allowed();
        for function in &self.with {
            let request = AdmissionRequest {
                attributes: review.attributes.clone(),
                object,
                old: old(review)?,
            };
            let changed = function(request, context.clone()).await;
            let (changed, notes) = changed.map_err(|error| Failure::Error(error.to_string()))?;
            object = changed;
            if !admission.merge(notes).is_allowed() {
                break;
            }
        }
        let after = encode(&object, size)?;
        let change = (before != after).then_some((before, after));
        Ok(Decision { admission, change })
    }
}

impl<K: AdmissionObject> Validating<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.delete.is_empty() && self.with.is_empty()
    }

    /// `explicit` are the operations that the user has chosen, if any.
    pub(super) fn erase(
        self,
        reads: &ReadDeclarations,
        explicit: Option<BTreeSet<Operation>>,
    ) -> Arc<dyn Decide> {
        Arc::new(ErasedValidating {
            functions: Arc::new(self),
            explicit: Arc::new(explicit),
            reads: reads.clone(),
        })
    }

    async fn call(
        &self,
        review: &ParsedReview,
        explicit: Option<&BTreeSet<Operation>>,
        context: &WebhookContext<()>,
    ) -> Result<Decision, Failure> {
        let operation = review.attributes.operation;
        let is_write = matches!(operation, Operation::Create | Operation::Update);
        let is_with = explicit.map_or(is_write, |it| it.contains(&operation));
        let mut admission = Admission::allowed();
        let object: K = match operation {
            Operation::Delete => decode(review.old_object.as_ref(), "old object")?,
            _ => decode(review.object.as_ref(), "object")?,
        };
        let old: Option<K> = old(review)?;
        match operation {
            Operation::Create | Operation::Update => {
                for function in &self.plain {
                    admission.merge(function(&object, old.as_ref()));
                }
            }
            Operation::Delete => {
                for function in &self.delete {
                    admission.merge(function(&object));
                }
            }
            Operation::Connect => {}
        }
        for function in self.with.iter().filter(|_| is_with) {
            if !admission.is_allowed() {
                break;
            }
            let request = AdmissionRequest {
                attributes: review.attributes.clone(),
                object: object.clone(),
                old: old.clone(),
            };
            let decided = function(request, context.clone()).await;
            admission.merge(decided.map_err(|error| Failure::Error(error.to_string()))?);
        }
        Ok(Decision {
            admission,
            change: None,
        })
    }
}

struct ErasedMutating<K> {
    functions: Arc<Mutating<K>>,
    reads: ReadDeclarations,
}

impl<K: AdmissionObject> Decide for ErasedMutating<K> {
    fn decide(
        &self,
        review: Arc<ParsedReview>,
        call: Call,
    ) -> BoxFuture<'static, Result<Decision, Failure>> {
        let (functions, reads) = (self.functions.clone(), self.reads.clone());
        async move {
            let context = context(&review, call, &reads).await?;
            functions.call(&review, &context).await
        }
        .boxed()
    }
}

struct ErasedValidating<K> {
    functions: Arc<Validating<K>>,
    explicit: Arc<Option<BTreeSet<Operation>>>,
    reads: ReadDeclarations,
}

impl<K: AdmissionObject> Decide for ErasedValidating<K> {
    fn decide(
        &self,
        review: Arc<ParsedReview>,
        call: Call,
    ) -> BoxFuture<'static, Result<Decision, Failure>> {
        let (functions, reads) = (self.functions.clone(), self.reads.clone());
        let explicit = self.explicit.clone();
        async move {
            let context = context(&review, call, &reads).await?;
            let explicit = explicit.as_ref().as_ref();
            functions.call(&review, explicit, &context).await
        }
        .boxed()
    }
}

/// Returns the context of a call, once the declared caches are filled.
async fn context(
    review: &ParsedReview,
    call: Call,
    reads: &ReadDeclarations,
) -> Result<WebhookContext<()>, Failure> {
    if let Some(caches) = &call.services.reads {
        reads.wait_for_sync(caches).await;
    }
    let namespace = review.attributes.namespace.as_str();
    let namespace = Some(namespace).filter(|it| !it.is_empty());
    Ok(WebhookContext::new(
        call.services,
        namespace.map(Into::into),
    ))
}

fn old<K: AdmissionObject>(review: &ParsedReview) -> Result<Option<K>, Failure> {
    match review.attributes.operation {
        Operation::Update => decode(review.old_object.as_ref(), "old object").map(Some),
        _ => Ok(None),
    }
}

fn decode<K: AdmissionObject>(json: Option<&Bytes>, what: &str) -> Result<K, Failure> {
    let Some(json) = json else {
        return Err(Failure::BadRequest(format!("there is no {what} to decode")));
    };
    review::decode(json)
        .map_err(|error| Failure::BadRequest(format!("cannot decode the {what}: {error}")))
}

/// Encodes an object as JSON of about `size` bytes.
fn encode<K: AdmissionObject>(object: &K, size: usize) -> Result<Vec<u8>, Failure> {
    let mut json = JsonBuffer(Vec::with_capacity(size));
    match serde_json::to_writer(&mut json, object) {
        Ok(()) => Ok(json.0),
        Err(error) => Err(Failure::Error(error.to_string())),
    }
}

/// Buffer that an object is encoded into. The encoder is compiled in the crate of the operator,
/// often for size, and writes many short pieces; these methods are compiled in this crate.
struct JsonBuffer(Vec<u8>);

impl io::Write for JsonBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [byte] => self.0.push(*byte),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
