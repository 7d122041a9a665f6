//! Create, update and patch.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::Handler;
use super::body::decode_patch;
use crate::object;
use crate::registry::{
    Binding, Escalation, Patch, PatchType, Write, check_namespace, from_storage,
};
use crate::response::{Content, Response};
use crate::reviews;
use crate::status::{ApiError, ApiResult};
use crate::store::Committed;
use crate::target::Target;

impl Handler<'_> {
    pub(super) async fn create(&self) -> ApiResult<Response> {
        let (body, duplicates) = self.object_body()?;
        if let Some(response) = self.create_subresource(&body) {
            return response;
        }
        let mut write = self.write_options()?;
        write.duplicate_fields = duplicates;
        if reviews::is_review(self.kind()) {
            let (registry, target) = (self.registry, &self.target);
            let review = registry.prepare_review(target, body, &mut write)?;
            let review = reviews::respond(registry, target, review, self.request.identity).await?;
            return Ok(Response::with_code(201, review, write.warnings));
        }
        if self.target.subresource == "token" {
            let body = self
                .registry
                .request_token(&self.target, body, &mut write)?;
            return Ok(Response::with_code(201, body, write.warnings));
        }
        write.escalation = self.escalation(Some(&body)).await;
        let stored = self.registry.create(&self.target, body, &mut write)?;
        self.written(201, stored, write)
    }

    /// Returns the response to a create request for a Binding or an Eviction, which change a Pod
    /// and are not stored. Returns `None` for any other target.
    fn create_subresource(&self, body: &Value) -> Option<ApiResult<Response>> {
        let kind = self.kind();
        if !kind.group.is_empty() {
            return None;
        }
        let checked = check_namespace(&self.target, body);
        let status = match (kind.plural.as_str(), self.target.subresource.as_str()) {
            ("bindings", "") => checked.and_then(|()| self.bind(object::name(body), body)),
            ("pods", "binding") => checked.and_then(|()| self.bind(&self.target.name, body)),
            ("pods", "eviction") => checked.and_then(|()| {
                let write = self.write_options()?;
                let pod = Target::new(kind, &self.target.namespace, &self.target.name);
                self.registry.evict(&pod, body, write.dry_run)
            }),
            _ => return None,
        };
        Some(status.map(|status| Response::with_code(201, status, Vec::new())))
    }

    /// Binds the Pod `name` as the Binding `body` requests, and returns the `Status` for the
    /// response.
    fn bind(&self, name: &str, body: &Value) -> ApiResult<Value> {
        let write = self.write_options()?;
        let binding = Binding::parse(name, body)?;
        let pods = self.registry.builtin("", "pods")?;
        let pod = Target::new(&pods, &self.target.namespace, name);
        self.registry.bind(&pod, &binding, write.dry_run)?;
        Ok(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        }))
    }

    pub(super) async fn update(&self) -> ApiResult<Response> {
        let (body, duplicates) = self.object_body()?;
        let mut write = self.write_options()?;
        write.duplicate_fields = duplicates;
        write.escalation = self.escalation(Some(&body)).await;
        let (stored, created) = self.registry.update(&self.target, body, &mut write)?;
        self.written(if created { 201 } else { 200 }, stored, write)
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
        let (stored, created) = self.registry.patch(&self.target, &patch, &mut write)?;
        self.written(if created { 201 } else { 200 }, stored, write)
    }

    /// Asks the authorizers whether the user may escalate by this request.
    async fn escalation(&self, body: Option<&Value>) -> Escalation {
        let identity = self.request.identity;
        self.registry.escalation(&self.target, body, identity).await
    }

    /// Returns the response to a write. `committed` is the object that was stored, or that would
    /// have been stored if this is a dry run.
    fn written(&self, code: u16, committed: Committed, mut write: Write) -> ApiResult<Response> {
        let is_created = code == 201;
        write.warnings.extend_from_slice(&committed.warnings);
        if self.target.subresource.is_empty() {
            let warnings = self.registry.warnings(self.kind(), &committed);
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
            let scale = self.registry.scale_from(&self.target, &committed)?;
            return Ok(Response::with_code(code, scale, write.warnings));
        }
        let view = self.view();
        let body = match committed.stored() {
            Some(stored) => Content::Encoded(view.object(stored)?),
            None => {
                let object = from_storage(self.kind(), committed.into_object());
                Content::Value(view.unstored(object))
            }
        };
        Ok(Response::with_content(code, body, write.warnings))
    }
}
