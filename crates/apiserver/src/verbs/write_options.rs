//! The options of write requests: field manager, field validation, dry run, and the options of
//! deletes.

use std::time::Duration;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::body::decode;
use super::{Handler, list_options};
use crate::admission::Notes;
use crate::admission::resource_quota::Charges;
use crate::kinds::Verb;
use crate::object;
use crate::registry::{DeleteOptions, Escalation, FieldValidation, Write};
use crate::status::{ApiError, ApiResult};

impl Handler<'_> {
    /// Returns the options of a create, update or patch.
    pub(super) fn write_options(&self) -> ApiResult<Write> {
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
        // The default is the first part of the user agent: `kubectl` for
        // `kubectl/v1.36.3 (linux/amd64)`.
        let manager = query
            .get("fieldManager")
            .or_else(|| {
                self.request
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
            escalation: Escalation::default(),
            user: Some(self.request.identity.clone()),
            is_direct: false,
            given_manager: query.get("fieldManager").map(str::to_owned),
            given_field_validation: query.get("fieldValidation").map(str::to_owned),
            is_collection: self.verb == Verb::DeleteCollection,
            delete_options: Value::Null,
            notes: Notes::default(),
            charges: Charges::default(),
            deadline: Some(Instant::now() + timeout(query.get("timeout"))),
        })
    }

    /// Returns the options of a delete, from the body and the query.
    pub(super) fn delete_options(&self) -> ApiResult<(DeleteOptions, Write)> {
        let mut options: DeleteOptions = if self.request.body.is_empty() {
            DeleteOptions::default()
        } else {
            let body = decode(self.request.content_type, &self.request.body)?;
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
            self.audit.delete_options(&body);
            serde_json::from_value(body)
                .map_err(|error| ApiError::bad_request(format!("delete options: {error}")))?
        };
        let query = self.query();
        list_options::check_number(query, "gracePeriodSeconds")?;
        if let Some(policy) = query.get("propagationPolicy") {
            options.propagation_policy = Some(policy.to_owned());
        }
        if let Some(text) = query.get("gracePeriodSeconds") {
            let seconds = text.parse().map_err(|_| {
                ApiError::bad_request(format!("gracePeriodSeconds: {text:?} is no whole number"))
            })?;
            options.grace_period_seconds = Some(seconds);
        }
        let mut write = self.write_options()?;
        write.delete_options = options.to_json();
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

    /// Returns the kind of the options of this request in Kubernetes, such as `PatchOptions`.
    fn options_kind(&self) -> &'static str {
        match self.verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch => "PatchOptions",
            _ => "DeleteOptions",
        }
    }
}

/// Maximum time of a request, as in kube-apiserver.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Returns the time for a request from its parameter `timeout`, which is a duration of Go such as
/// `1m30s`.
fn timeout(text: Option<&str>) -> Duration {
    let given = text.and_then(parse_duration);
    given.map_or(TIMEOUT_MAX, |given| given.min(TIMEOUT_MAX))
}

/// Parses a duration of Go with whole numbers, such as `1m30s`. Returns `None` if it is 0.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = rest.split_at_checked(digits)?;
        let end = unit
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(unit.len());
        let (unit, after) = unit.split_at_checked(end)?;
        let number: u32 = number.parse().ok()?;
        let unit = match unit {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(60 * 60),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(number)?)?;
        rest = after;
    }
    (!total.is_zero()).then_some(total)
}
