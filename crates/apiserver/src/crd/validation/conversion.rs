//! Validation of the conversion of a CRD.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Uri;
use opkit_apimachinery::names::{check_dns_subdomain, check_rfc_1035_label};
use opkit_apimachinery::structural::FieldError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::options::Options;
use super::spec::one_of;
use crate::object;

const STRATEGIES: [&str; 2] = ["None", "Webhook"];
/// The versions of ConversionReview that Kubernetes knows.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const CLIENT_CONFIG: &str = "spec.conversion.webhookClientConfig";
const URL_FORM: &str = "; desired format: https://host[/path]";

/// Returns the errors of the field `conversion` of the spec of a CRD.
pub(super) fn validate(spec: &Value, preserves: bool, options: &Options) -> Vec<FieldError> {
    let conversion = object::at(spec, &["conversion"]);
    if conversion.is_null() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let field = "spec.conversion.strategy";
    let strategy = object::text(conversion, &["strategy"]);
    if strategy != "None" && preserves {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(field, &json!(strategy), detail));
    }
    errors.extend(one_of(conversion, "strategy", field, &STRATEGIES));
    let config = object::at(conversion, &["webhook", "clientConfig"]);
    let reviews = object::items(conversion, &["webhook", "conversionReviewVersions"]);
    let reviews_field = "spec.conversion.conversionReviewVersions";
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if !config.is_null() {
            errors.push(FieldError::forbidden(CLIENT_CONFIG, detail));
        }
        if !reviews.is_empty() {
            errors.push(FieldError::forbidden(reviews_field, detail));
        }
        return errors;
    }
    errors.extend(client_config_errors(config, options));
    errors.extend(review_errors(reviews, reviews_field, options));
    errors
}

fn client_config_errors(config: &Value, options: &Options) -> Vec<FieldError> {
    if config.is_null() {
        let detail = "required when strategy is set to Webhook";
        return vec![FieldError::required(CLIENT_CONFIG, detail)];
    }
    let mut errors = Vec::new();
    let (url, service) = (
        object::at(config, &["url"]),
        object::at(config, &["service"]),
    );
    match (url.as_str(), service.is_null()) {
        (Some(_), false) | (None, true) => {
            let detail = "exactly one of url or service is required";
            errors.push(FieldError::required(CLIENT_CONFIG, detail));
        }
        (Some(url), true) => errors.extend(url_errors(url)),
        (None, false) => errors.extend(service_errors(service)),
    }
    let bundle = object::at(config, &["caBundle"]);
    if !options.allows_invalid_ca_bundle
        && let Some(error) = ca_bundle_error(bundle)
    {
        let field = format!("{CLIENT_CONFIG}.caBundle");
        errors.push(FieldError::invalid(field, bundle, error));
    }
    errors
}

fn url_errors(url: &str) -> Vec<FieldError> {
    let field = format!("{CLIENT_CONFIG}.url");
    let invalid =
        |value: &str, detail: String| FieldError::invalid(field.as_str(), &json!(value), detail);
    let (without_fragment, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (address, query) = without_fragment
        .split_once('?')
        .unwrap_or((without_fragment, ""));
    let is_relative = address.starts_with('/') || !address.contains(':');
    if !is_relative && address.parse::<Uri>().is_err() && !address.contains("://") {
        let detail = format!("url must be a valid URL: parse {url:?}: invalid URI{URL_FORM}");
        return vec![FieldError::required(field, detail)];
    }
    let (scheme, rest) = address.split_once("://").unwrap_or(("", ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut errors = Vec::new();
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{URL_FORM}");
        errors.push(invalid(scheme, detail));
    }
    if host.is_empty() {
        errors.push(invalid(host, format!("host must be specified{URL_FORM}")));
    }
    if let Some(user) = user {
        let detail = "user information is not permitted in the URL";
        errors.push(invalid(user, detail.to_owned()));
    }
    if !fragment.is_empty() {
        let detail = "fragments are not permitted in the URL";
        errors.push(invalid(fragment, detail.to_owned()));
    }
    if !query.is_empty() {
        let detail = "query parameters are not permitted in the URL";
        errors.push(invalid(query, detail.to_owned()));
    }
    errors
}

fn service_errors(service: &Value) -> Vec<FieldError> {
    let field = |name: &str| format!("{CLIENT_CONFIG}.service.{name}");
    let mut errors = Vec::new();
    // Kubernetes confuses the two fields here: a missing namespace is reported as a missing name.
    for (name, other) in [("name", "namespace"), ("namespace", "name")] {
        if object::text(service, &[other]).is_empty() {
            errors.push(FieldError::required(field(name), ""));
        }
    }
    let port = object::at(service, &["port"]);
    if !(1..=65535).contains(&port.as_i64().unwrap_or(443)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(field("port"), port, detail));
    }
    let path = object::text(service, &["path"]);
    let invalid = |detail: String| FieldError::invalid(field("path"), &json!(path), detail);
    match path {
        "" | "/" => return errors,
        "//" => {
            errors.push(invalid("segment[0] may not be empty".to_owned()));
            return errors;
        }
        _ => {}
    }
    if !path.starts_with('/') {
        errors.push(invalid("must start with a '/'".to_owned()));
    }
    let mut characters = path.chars();
    characters.next();
    let steps = characters.as_str();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            errors.push(invalid(format!("segment[{index}] may not be empty")));
        } else if let Err(detail) = check_dns_subdomain(step) {
            errors.push(invalid(format!("segment[{index}]: {detail}")));
        }
    }
    errors
}

fn review_errors(reviews: &[Value], field: &str, options: &Options) -> Vec<FieldError> {
    if reviews.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    let mut errors = Vec::new();
    let mut seen = Vec::new();
    for (index, version) in reviews.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if seen.contains(&version) {
            errors.push(FieldError::invalid(field, version, "duplicate version"));
            continue;
        }
        seen.push(version);
        if let Err(detail) = check_rfc_1035_label(version.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(field, version, detail));
        }
    }
    if options.requires_known_review && !reviews.iter().any(is_known_review) {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(FieldError::invalid(field, &json!(reviews), detail));
    }
    errors
}

fn is_known_review(version: &Value) -> bool {
    version
        .as_str()
        .is_some_and(|version| REVIEWS.contains(&version))
}

/// Reports whether a CRD has no versions of ConversionReview, or one that Kubernetes knows.
pub(super) fn has_known_review(crd: &Value) -> bool {
    let path = ["spec", "conversion", "webhook", "conversionReviewVersions"];
    let reviews = object::items(crd, &path);
    reviews.is_empty() || reviews.iter().any(is_known_review)
}

/// Reports whether a CRD has a CA bundle that is not valid.
pub(super) fn has_invalid_ca_bundle(crd: &Value) -> bool {
    !is_valid_ca_bundle(crd)
}

/// Reports whether a CRD has no CA bundle, or a valid one.
pub(crate) fn is_valid_ca_bundle(crd: &Value) -> bool {
    let path = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
    ca_bundle_error(object::at(crd, &path)).is_none()
}

/// Returns the error for a CA bundle without a certificate.
fn ca_bundle_error(bundle: &Value) -> Option<String> {
    let text = bundle.as_str().filter(|text| !text.is_empty())?;
    let pem = BASE64_STANDARD.decode(text).unwrap_or_default();
    let reason = match CertificateDer::pem_slice_iter(&pem).next() {
        Some(Ok(_)) => return None,
        _ if !String::from_utf8_lossy(&pem).contains("-----BEGIN ") => {
            "unable to parse bytes as PEM block"
        }
        _ => "no valid certificate authority data seen",
    };
    Some(format!("unable to load root certificates: {reason}"))
}
