//! Decoding of request bodies: JSON, YAML or protobuf.

use opkit_apimachinery::protobuf;
use serde_json::{Value, json};

use super::Handler;
use crate::object;
use crate::registry::PatchType;
use crate::registry::decoding::syntax_error;
use crate::status::{ApiError, ApiResult};

impl Handler<'_> {
    /// Returns the object in the request, which must be of the kind in the path, and the paths of
    /// fields that occur twice in it.
    pub(super) fn object_body(&self) -> ApiResult<(Value, Vec<String>)> {
        let content_type = self.request.content_type.split(';').next();
        let content_type = content_type.unwrap_or_default().trim();
        let accepted = [
            "application/json",
            "application/yaml",
            protobuf::CONTENT_TYPE,
        ];
        if !content_type.is_empty() && !accepted.contains(&content_type) {
            return Err(ApiError::unsupported_media_type(&accepted));
        }
        let (mut body, duplicates) = self.decode_object(content_type)?;
        let kind = self.kind();
        let (api_version, name) = match self.target.kind.subresource(&self.target.subresource) {
            Some(sub) => match &sub.response {
                Some((group, version, kind)) if !group.is_empty() => {
                    (format!("{group}/{version}"), kind.clone())
                }
                Some((_, version, kind)) => (version.clone(), kind.clone()),
                None => (kind.api_version(), kind.kind.clone()),
            },
            None => (kind.api_version(), kind.kind.clone()),
        };
        let (given_version, given_kind) = (
            object::text(&body, &["apiVersion"]),
            object::text(&body, &["kind"]),
        );
        if kind.is_custom() && self.target.subresource.is_empty() {
            for (field, called) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
                if object::text(&body, &[field]).is_empty() {
                    return Err(self.missing_type(called));
                }
            }
            if given_kind != name && given_version == api_version {
                let named = object::name(&body);
                return Err(ApiError::wrong_kind(kind, given_kind, named));
            }
        }
        // An Eviction of the older version has the same fields.
        let is_older_eviction = name == "Eviction" && given_version == "policy/v1beta1";
        if !kind.is_custom() && !is_older_eviction {
            self.check_registered(given_version, given_kind, &api_version, &name)?;
        }
        if !given_version.is_empty() && given_version != api_version && !is_older_eviction {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({given_version}) does not match the expected API version \
                 ({api_version})"
            )));
        }
        if !given_kind.is_empty() && given_kind != name {
            return Err(ApiError::bad_request(format!(
                "{given_kind} in version {given_version:?} cannot be handled as a {name}: \
                 the kind does not match"
            )));
        }
        object::set_field(&mut body, "apiVersion", api_version.into());
        object::set_field(&mut body, "kind", name.into());
        self.audit.request_object(&body, |copy| {
            // As in Kubernetes, the recorded object has its defaults.
            if self.target.subresource.is_empty() {
                self.registry.set_defaults(kind, copy)?;
            }
            Ok(())
        });
        Ok((body, duplicates))
    }

    /// Checks that the type of an object is one that Kubernetes can decode at all, and can convert
    /// to the wanted type, which is built in.
    fn check_registered(
        &self,
        given_version: &str,
        given_kind: &str,
        api_version: &str,
        name: &str,
    ) -> ApiResult<()> {
        let is_given = !given_version.is_empty() && !given_kind.is_empty();
        if !is_given || (given_version == api_version && given_kind == name) {
            return Ok(());
        }
        let split = |text: &str| match text.split_once('/') {
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (String::new(), text.to_owned()),
        };
        let ((group, version), (wanted_group, _)) = (split(given_version), split(api_version));
        let registered = self.registry.catalog.find(|kind| {
            !kind.is_custom() && kind.api_version() == given_version && kind.kind == given_kind
        });
        let why = match registered {
            None => format!(
                "no kind {given_kind:?} is registered for version {given_version:?} in scheme \
                 \"pkg/runtime/scheme.go:111\""
            ),
            Some(_) if given_kind == name && group == wanted_group => return Ok(()),
            Some(_) => {
                // The package of Go for a group.
                let package = match wanted_group.split('.').next() {
                    None | Some("") => "core",
                    Some(first) => first,
                };
                format!(
                    "converting ({version}.{given_kind}) to ({package}.{name}): unknown conversion"
                )
            }
        };
        Err(ApiError::bad_request(format!(
            "{given_kind} in version {version:?} cannot be handled as a {name}: {why}"
        )))
    }

    /// Decodes the request body as an object. For a built-in kind, a body of `null` counts as an
    /// empty object.
    fn decode_object(&self, content_type: &str) -> ApiResult<(Value, Vec<String>)> {
        const TYPE: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                            Kind string \"json:\\\"kind,omitempty\\\"\" }";
        let bytes = self.request.body.as_ref();
        let is_yaml = content_type.contains("yaml");
        let wrong = if is_yaml || content_type == protobuf::CONTENT_TYPE {
            let decoded = match is_yaml {
                true => decode_yaml(bytes).map_err(|error| {
                    ApiError::bad_request(format!(
                        "the object provided is unrecognized (must be of type {}): {error} ({})",
                        self.kind().kind,
                        summary(bytes)
                    ))
                }),
                false => decode(content_type, bytes),
            };
            match decoded? {
                body if body.is_object() => return Ok((body, Vec::new())),
                body => unmarshal_error(&body, TYPE),
            }
        } else {
            match super::json::parse(bytes) {
                Ok((Value::Null, _)) if !self.kind().is_custom() => {
                    return Ok((json!({}), Vec::new()));
                }
                Ok((mut body, duplicates)) if body.is_object() => {
                    if self.kind().is_custom() {
                        print_whole_numbers(&mut body);
                    }
                    return Ok((body, duplicates));
                }
                Ok((body, _)) => unmarshal_error(&body, TYPE),
                Err(_) => syntax_error(bytes),
            }
        };
        Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; \
             json parse error: {wrong} ({})",
            self.kind().kind,
            summary(bytes)
        )))
    }

    /// Returns the error for a custom resource without `kind` or `apiVersion`.
    fn missing_type(&self, field: &str) -> ApiError {
        let bytes = self.request.body.as_ref();
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object '{field}' is missing in \
             '{}' ({})",
            self.kind().kind,
            String::from_utf8_lossy(bytes),
            summary(bytes)
        ))
    }
}

/// Replaces each whole number that is written with a fraction or exponent, such as `2.0`, by the
/// integer that Go prints for it.
fn print_whole_numbers(value: &mut Value) {
    /// Above this number Go prints an exponent.
    const MAX: f64 = 1e15;
    match value {
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|n| number.is_f64() && n.fract() == 0.0);
            if let Some(whole) = whole.filter(|whole| whole.abs() < MAX)
                && let Ok(integer) = format!("{whole}").parse::<i64>()
            {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(print_whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(print_whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Decodes the body of a patch. A JSON patch must be a list, any other patch an object.
pub(super) fn decode_patch(type_: PatchType, content_type: &str, body: &[u8]) -> ApiResult<Value> {
    let refuse = |why: String| {
        let doing = match type_ {
            PatchType::Strategic => "",
            PatchType::Apply => {
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            }
            PatchType::Json | PatchType::Merge => "error decoding patch: ",
        };
        Err(ApiError::bad_request(format!("{doing}{why}")))
    };
    if type_ != PatchType::Apply {
        let read: Result<Value, _> = serde_json::from_slice(body);
        if read.is_err_and(|error| error.is_eof()) {
            return refuse("unexpected end of JSON input".to_owned());
        }
    }
    let patch = match type_ {
        PatchType::Apply => decode_yaml(body).map_err(|error| {
            let doing = "error decoding YAML: error converting YAML to JSON";
            ApiError::bad_request(format!("{doing}: {error}"))
        })?,
        _ => decode(content_type, body)?,
    };
    let wanted = match type_ {
        PatchType::Json if patch.is_array() => return Ok(patch),
        PatchType::Json => "[]handlers.jsonPatchOp",
        _ if patch.is_object() => return Ok(patch),
        _ => "map[string]interface {}",
    };
    refuse(unmarshal_error(&patch, wanted))
}

/// Returns the start of a body, as Kubernetes quotes it in errors.
fn summary(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    let start = body.get(..LENGTH).unwrap_or(body);
    let text = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let more = if body.len() > LENGTH { " ..." } else { "" };
    format!("{text}{more}")
}

/// Returns the error message of Go for a JSON value of the wrong type.
fn unmarshal_error(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// Decodes a body in the format of `content_type`: YAML, protobuf, or JSON for any other type.
pub(super) fn decode(content_type: &str, body: &[u8]) -> ApiResult<Value> {
    if content_type.starts_with(protobuf::CONTENT_TYPE) {
        return protobuf::decode(body)
            .map_err(|error| ApiError::bad_request(format!("error decoding: {error}")));
    }
    if content_type.contains("yaml") {
        return decode_yaml(body)
            .map_err(|error| ApiError::bad_request(format!("error parsing YAML: {error}")));
    }
    serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!("error decoding: the body is not JSON: {error}"))
    })
}

/// Decodes YAML, of which JSON is a part. Returns the message of Go's parser if the text is not
/// YAML.
fn decode_yaml(body: &[u8]) -> Result<Value, String> {
    /// Messages that both parsers have.
    const KNOWN: &[&str] = &[
        "mapping values are not allowed in this context",
        "did not find expected key",
        "did not find expected node content",
        "found character that cannot start any token",
        "could not find expected ':'",
        "found unexpected end of stream",
    ];
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    serde_saphyr::from_slice(body).map_err(|error| {
        let text = error.to_string();
        let known = KNOWN.iter().find(|known| text.contains(*known));
        let message = known.map_or(text.as_str(), |known| *known);
        let line = text.split("line ").nth(1).map(|rest| {
            let digits = rest.chars().take_while(char::is_ascii_digit);
            digits.collect::<String>().parse::<usize>().unwrap_or(1)
        });
        match line {
            // Go's parser counts from 0, and leaves out the first line.
            Some(line) if line > 1 => format!("yaml: line {line}: {message}"),
            _ => format!("yaml: {message}"),
        }
    })
}
