//! Create, update and patch.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::Handler;
use super::body::decode_patch;
use crate::object;
use crate::registry::{Binding, Escalation, Patch, PatchType, Write, check_namespace};
use crate::response::{Content, Response};
use crate::reviews;
use crate::status::{ApiError, ApiResult};
use crate::store::Committed;
use crate::target::Target;

impl Handler<'_> {
    pub(super) async fn create(&self) -> ApiResult<Response> {
        let (body, duplicates) = self.object_body()?;
        let mut write = self.write_options()?;
        write.duplicate_fields = duplicates;
        if !self.is_stored() {
            let body = self.create_unstored(body, &mut write).await;
            let body = self.noted(&mut write, body)?;
            return Ok(Response::with_code(201, body, write.warnings));
        }
        write.escalation = self.escalation(Some(&body)).await;
        let stored = self.registry.create(&self.target, body, &mut write).await;
        let stored = self.noted(&mut write, stored)?;
        self.written(201, stored, write).await
    }

    /// Reports whether a create request stores the object in its body. Reviews, tokens, Bindings
    /// and Evictions are not stored.
    fn is_stored(&self) -> bool {
        let kind = self.kind();
        let is_core = kind.group.is_empty();
        !match self.target.subresource.as_str() {
            "" => reviews::is_review(kind),
            subresource => is_core && matches!(subresource, "token" | "binding" | "eviction"),
        }
    }

    /// Executes a create request whose object is not stored, and returns the object for the
    /// response.
    async fn create_unstored(&self, mut body: Value, write: &mut Write) -> ApiResult<Value> {
        let (registry, target) = (self.registry, &self.target);
        let is_binding = self.kind().group.is_empty() && self.kind().plural == "bindings";
        if reviews::is_review(self.kind()) && !is_binding {
            let mut review = registry.prepare_review(target, body, write)?;
            registry.admit_unstored(target, &mut review, write).await?;
            return reviews::respond(registry, target, review, self.request.identity).await;
        }
        check_namespace(target, &body)?;
        if is_binding {
            let name = object::name(&body).to_owned();
            registry.admit_unstored(target, &mut body, write).await?;
            return self.bind(&name, &body, write).await;
        }
        registry.admit_unstored(target, &mut body, write).await?;
        match target.subresource.as_str() {
            "binding" => self.bind(&target.name, &body, write).await,
            "eviction" => {
                let pod = Target::new(self.kind(), &target.namespace, &target.name);
                registry.evict(&pod, &body, write.dry_run).await
            }
            _ => registry.request_token(target, body, write),
        }
    }

    /// Binds the Pod `name` as the Binding `body` requests, and returns the `Status` for the
    /// response.
    async fn bind(&self, name: &str, body: &Value, write: &Write) -> ApiResult<Value> {
        let binding = Binding::parse(name, body)?;
        let pods = self.registry.builtin("", "pods")?;
        let pod = Target::new(&pods, &self.target.namespace, name);
        self.registry.bind(&pod, &binding, write.dry_run).await?;
        Ok(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        }))
    }

    /// Adds the notes of admission to the audit event, and to the warnings of the response or of
    /// the error.
    pub(super) fn noted<T>(&self, write: &mut Write, result: ApiResult<T>) -> ApiResult<T> {
        self.audit.annotate(&write.notes);
        write.warnings.extend(write.notes.warnings());
        result.map_err(|mut error| {
            error.warnings.append(&mut write.warnings);
            error
        })
    }

    pub(super) async fn update(&self) -> ApiResult<Response> {
        let (body, duplicates) = self.object_body()?;
        let mut write = self.write_options()?;
        write.duplicate_fields = duplicates;
        write.escalation = self.escalation(Some(&body)).await;
        let updated = self.registry.update(&self.target, body, &mut write).await;
        let (stored, created) = self.noted(&mut write, updated)?;
        self.written(if created { 201 } else { 200 }, stored, write)
            .await
    }

    pub(super) async fn patch(&self) -> ApiResult<Response> {
        let content_type = self.request.content_type;
        let accepted = [
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ];
        let type_ =
            PatchType::parse(content_type).ok_or_else(|| match self.kind().is_custom() {
                true => ApiError::unsupported_media_type(&accepted),
                false => ApiError::unsupported_patch_type(),
            })?;
        let body = match self.request.body.as_ref() {
            b"" if type_ == PatchType::Apply => json!({}),
            body => decode_patch(type_, content_type, body)?,
        };
        self.audit.patch(&body);
        let patch = Patch { type_, body };
        let mut write = self.write_options()?;
        if type_ == PatchType::Apply && self.query().get("fieldManager").is_none() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(ApiError::invalid_options("PatchOptions", &[error]));
        }
        let applied = Some(&patch.body).filter(|_| type_ == PatchType::Apply);
        write.escalation = self.escalation(applied).await;
        let patched = self.registry.patch(&self.target, &patch, &mut write).await;
        let (stored, created) = self.noted(&mut write, patched)?;
        self.written(if created { 201 } else { 200 }, stored, write)
            .await
    }

    /// Asks the authorizers whether the user may escalate by this request.
    async fn escalation(&self, body: Option<&Value>) -> Escalation {
        let identity = self.request.identity;
        self.registry.escalation(&self.target, body, identity).await
    }

    /// Returns the response to a write. `committed` is the object that was stored, or that would
    /// have been stored if this is a dry run.
    async fn written(
        &self,
        code: u16,
        committed: Committed,
        mut write: Write,
    ) -> ApiResult<Response> {
        let is_created = code == 201;
        write.warnings.extend_from_slice(&committed.warnings);
        if self.target.subresource.is_empty() {
            let warnings = self.registry.warnings(self.kind(), &committed, is_created);
            write.warnings.extend(warnings);
        }
        if self.target.subresource.is_empty() && !write.dry_run {
            let warnings = self
                .registry
                .warn_unmodelled(self.kind(), &committed, is_created);
            write.warnings.extend(warnings);
        }
        // A Scale is always returned as a whole object.
        if self.target.subresource == "scale" {
            let scale = self.registry.scale_from(&self.target, &committed).await?;
            return Ok(Response::with_code(code, scale, write.warnings));
        }
        let view = self.view();
        let body = match committed.stored() {
            Some(stored) => {
                let stored = self.registry.readable(self.kind(), stored.clone()).await?;
                Content::Encoded(view.object(&stored)?)
            }
            None => {
                let object = committed.into_object();
                let object = self.registry.read_from_storage(self.kind(), object).await?;
                Content::Value(view.unstored(object))
            }
        };
        Ok(Response::with_content(code, body, write.warnings))
    }
}
