//! The parameters of lists and watches, with the errors of Kubernetes for invalid parameters.

use opkit_apimachinery::structural::FieldError;
use serde_json::json;

use crate::query::Query;
use crate::registry::{PageRequest, Token};
use crate::status::{ApiError, ApiResult};

const MATCH: &str = "resourceVersionMatch";
const NEEDS_MATCH: &str = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";

/// Checks the parameters of a list.
pub(super) fn check_list(query: &Query) -> ApiResult<()> {
    check_numbers(query)?;
    let version = query.get("resourceVersion");
    let mut errors = Vec::new();
    if let Some(wanted) = query.get(MATCH) {
        if version.is_none() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        if !matches!(wanted, "Exact" | "NotOlderThan") {
            let supported = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(MATCH, &json!(wanted), &supported));
        }
        if query.get("continue").is_some() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        if wanted == "Exact" && version == Some("0") {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
    }
    if query.get("sendInitialEvents").is_some() {
        let detail = "sendInitialEvents is forbidden for list";
        errors.push(FieldError::forbidden("sendInitialEvents", detail));
    }
    refuse(&errors)
}

/// Returns the part of a list that the parameters request, such as `limit` and `continue`.
pub(super) fn page(query: &Query) -> ApiResult<PageRequest> {
    let limit: i64 = query
        .get("limit")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(0);
    let version = query.get("resourceVersion").unwrap_or_default();
    if let Some(token) = query.get("continue") {
        let token = Some(Token::parse(token)?);
        if !matches!(version, "" | "0") {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return Ok(PageRequest {
            limit,
            exact: None,
            token,
        });
    }
    let revision = revision(query, "invalid resource version: ")?;
    let is_exact = match query.get(MATCH) {
        Some(wanted) => wanted == "Exact",
        // Without `resourceVersionMatch`, a version with a limit means an exact match.
        None => limit > 0,
    };
    Ok(PageRequest {
        // A list at version 0 is served from the cache of Kubernetes, which ignores the limit.
        limit: if version == "0" { 0 } else { limit },
        exact: Some(revision).filter(|revision| is_exact && *revision > 0),
        token: None,
    })
}

/// Checks the parameters of a watch.
pub(super) fn check_watch(query: &Query) -> ApiResult<()> {
    check_numbers(query)?;
    let mut errors = Vec::new();
    let wanted = query.get(MATCH);
    if query.get("sendInitialEvents").is_none() {
        if wanted.is_some() {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
    } else if wanted != Some("NotOlderThan") {
        errors.push(FieldError::forbidden(MATCH, NEEDS_MATCH));
        if let Some(wanted) = wanted {
            let supported = ["NotOlderThan"];
            errors.push(FieldError::not_supported(MATCH, &json!(wanted), &supported));
        }
    }
    refuse(&errors)
}

/// Returns the revision in the parameter `resourceVersion`. The error message for an invalid
/// revision starts with `prefix`. As in Kubernetes, the error code is 500 if the prefix is empty,
/// and otherwise 400.
pub(super) fn revision(query: &Query, prefix: &str) -> ApiResult<u64> {
    let text = query.get("resourceVersion").unwrap_or("0");
    text.parse().map_err(|_| {
        let message = format!(
            "{prefix}resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
             invalid syntax"
        );
        if prefix.is_empty() {
            ApiError::without_reason(500, message)
        } else {
            ApiError::bad_request(message)
        }
    })
}

fn check_numbers(query: &Query) -> ApiResult<()> {
    for parameter in ["limit", "timeoutSeconds"] {
        check_number(query, parameter)?;
    }
    Ok(())
}

/// Refuses a parameter that is not an integer.
pub(super) fn check_number(query: &Query, parameter: &str) -> ApiResult<()> {
    match query.get(parameter) {
        Some(text) if text.parse::<i64>().is_err() => Err(ApiError::bad_request(format!(
            "strconv.ParseInt: parsing {text:?}: invalid syntax"
        ))),
        _ => Ok(()),
    }
}

fn refuse(errors: &[FieldError]) -> ApiResult<()> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid_options("ListOptions", errors))
    }
}
