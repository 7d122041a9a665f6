//! The parameters of writes: who, how strictly, whether for real.

use http::Method;
use opkit_apimachinery::structural::FieldError;
use serde_json::json;

use super::{Request, body::decode, listing};
use crate::{
    object,
    registry::{DeleteOptions, FieldValidation, Write},
    status::{ApiError, ApiResult},
};

impl Request<'_> {
    pub(super) fn write(&self) -> ApiResult<Write> {
        let query = self.query();
        let field_validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported("fieldValidation", &json!(other), &supported);
                return Err(ApiError::invalid_options(self.options_kind(), &[error]));
            }
        };
        // Without a name, the client's program is the manager, as in
        // `kubectl/v1.36.3 (linux/amd64)`.
        let manager = query
            .get("fieldManager")
            .or_else(|| {
                self.incoming
                    .user_agent
                    .split('/')
                    .next()
                    .filter(|name| !name.is_empty())
            })
            .unwrap_or("unknown");
        if manager.len() > 128 {
            let error = FieldError::too_long("fieldManager", 128);
            return Err(ApiError::invalid_options(self.options_kind(), &[error]));
        }
        if let Some((at, c)) = manager.chars().enumerate().find(|(_, c)| c.is_control()) {
            let detail = format!(
                "invalid character U+{:04X} (at position {at})",
                u32::from(c)
            );
            let error = FieldError::invalid("fieldManager", &json!(manager), detail);
            return Err(ApiError::invalid_options(self.options_kind(), &[error]));
        }
        Ok(Write {
            manager: manager.to_owned(),
            dry_run: self.dry_run(query.get("dryRun"))?,
            force: query.flag("force"),
            field_validation,
            warnings: Vec::new(),
        })
    }

    pub(super) fn delete_options(&self) -> ApiResult<(DeleteOptions, Write)> {
        let mut options: DeleteOptions = if self.incoming.body.is_empty() {
            DeleteOptions::default()
        } else {
            let body = decode(self.incoming.content_type, &self.incoming.body)?;
            let (version, kind) = (
                object::text(&body, &["apiVersion"]),
                object::text(&body, &["kind"]),
            );
            if !matches!(kind, "" | "DeleteOptions") {
                return Err(ApiError::bad_request(format!(
                    "no kind {kind:?} is registered for version {version:?} in scheme \
                     \"pkg/runtime/scheme.go:111\""
                )));
            }
            serde_json::from_value(body)
                .map_err(|error| ApiError::bad_request(format!("delete options: {error}")))?
        };
        let query = self.query();
        listing::check_number(query, "gracePeriodSeconds")?;
        if let Some(policy) = query.get("propagationPolicy") {
            options.propagation_policy = Some(policy.to_owned());
        }
        if let Some(text) = query.get("gracePeriodSeconds") {
            let seconds = text.parse().map_err(|_| {
                ApiError::bad_request(format!("gracePeriodSeconds: {text:?} is no whole number"))
            })?;
            options.grace_period_seconds = Some(seconds);
        }
        let mut write = self.write()?;
        write.dry_run |=
            self.dry_run(options.dry_run.iter().flatten().next().map(String::as_str))?;
        Ok((options, write))
    }

    fn dry_run(&self, value: Option<&str>) -> ApiResult<bool> {
        match value {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => {
                let error = FieldError::not_supported("dryRun", &json!([other]), &["All"]);
                Err(ApiError::invalid_options(self.options_kind(), &[error]))
            }
        }
    }

    /// What Kubernetes calls the parameters of this request.
    fn options_kind(&self) -> &'static str {
        match *self.incoming.method {
            Method::POST => "CreateOptions",
            Method::PUT => "UpdateOptions",
            Method::PATCH => "PatchOptions",
            _ => "DeleteOptions",
        }
    }
}
