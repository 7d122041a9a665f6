//! Conversion of exchanges to a script of the differential suite.

use std::collections::BTreeMap;

use http::{HeaderMap, header};
use opkit_apimachinery::protobuf;
use serde_json::Value;

use super::capture::Captures;
use super::proxy::{Exchange, is_watch};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// Length limit of a body that is written on one line.
const LINE_MAX: usize = 100;
const NAMESPACE: &str = "${namespace}";
/// Name of a literal `$`.
const DOLLAR: &str = "${dollar}";

/// Reports whether a path belongs to discovery, and not to an object.
pub(crate) fn is_discovery(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        ["openapi", ..] | ["version"] => true,
        // `/api`, `/api/v1`, `/apis`, `/apis/apps`, `/apis/apps/v1`: longer paths name a resource.
        ["api", rest @ ..] => rest.len() < 2,
        ["apis", rest @ ..] => rest.len() < 3,
        _ => false,
    }
}

/// Returns the script, in which `namespace` becomes the script's own.
pub(crate) fn write<'a>(
    about: &str,
    namespace: &str,
    exchanges: impl Iterator<Item = &'a Exchange>,
) -> String {
    let mut writer = Writer {
        namespace,
        captures: Captures::default(),
        names: BTreeMap::new(),
    };
    let mut steps = Vec::new();
    for (place, exchange) in exchanges.enumerate() {
        steps.push(writer.step(exchange));
        writer.captures.learn(place, &exchange.response);
    }
    let mut script = format!("about: {}\n", quoted(about));
    if steps.iter().flatten().any(|line| line.contains(DOLLAR)) {
        script.push_str("vars: {dollar: \"$\"}\n");
    }
    script.push_str(if steps.is_empty() {
        "steps: []\n"
    } else {
        "steps:\n"
    });
    for (place, mut lines) in steps.into_iter().enumerate() {
        let captures = writer.captures.of(place);
        let pairs = captures.map(|capture| format!("{}: {}", capture.name, capture.pointer));
        let pairs: Vec<String> = pairs.collect();
        if !pairs.is_empty() {
            lines.push(format!("capture: {{{}}}", pairs.join(", ")));
        }
        let mut indent = "  - ";
        for line in lines {
            script.push_str(std::mem::replace(&mut indent, "    "));
            script.push_str(&line);
            script.push('\n');
        }
    }
    script
}

struct Writer<'a> {
    namespace: &'a str,
    captures: Captures,
    /// Number of steps with each name.
    names: BTreeMap<String, usize>,
}

impl Writer<'_> {
    /// Returns the lines of a step, without the values that later steps capture.
    fn step(&mut self, exchange: &Exchange) -> Vec<String> {
        let (body, problem) = self.body(exchange);
        let mut lines = vec![
            format!("name: {}", quoted(&self.name(exchange))),
            format!("# {}", exchange.outcome),
        ];
        lines.extend(problem.map(|problem| format!("# {problem}")));
        lines.push(format!("method: {}", exchange.method));
        lines.push(format!("path: {}", quoted(&self.path(&exchange.path))));
        let headers = headers(&exchange.headers, body.is_some());
        if !headers.is_empty() {
            let pairs: Vec<String> = headers
                .iter()
                .map(|(name, value)| format!("{name}: {}", quoted(&literal(value))))
                .collect();
            lines.push(format!("headers: {{{}}}", pairs.join(", ")));
        }
        if let Some(body) = body {
            let short = body.to_string();
            if short.len() <= LINE_MAX {
                lines.push(format!("body: {short}"));
            } else {
                // JSON is valid YAML if it is indented more than its key.
                lines.push("body:".to_owned());
                lines.extend(format!("{body:#}").lines().map(|line| format!("  {line}")));
            }
        }
        lines
    }

    /// Returns the method and the last part of the path, with a number if that name is taken.
    fn name(&mut self, exchange: &Exchange) -> String {
        let path = exchange.path.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        let name = format!("{} {last}", exchange.method.to_lowercase());
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            count => format!("{name}, {count}"),
        }
    }

    /// Returns the path in the script's namespace. A watch lasts one second, instead of the
    /// client's eight minutes.
    fn path(&mut self, path: &str) -> String {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let path = literal(path);
        let path = match path.split_once(&format!("/namespaces/{}", self.namespace)) {
            Some((before, after)) if after.is_empty() || after.starts_with('/') => {
                format!("{before}/namespaces/{NAMESPACE}{after}")
            }
            _ => path,
        };
        if query.is_empty() {
            return path;
        }
        let mut pairs = Vec::new();
        for pair in query.split('&') {
            let version = pair.strip_prefix("resourceVersion=");
            match version.and_then(|version| self.captures.version(version)) {
                Some(name) => pairs.push(format!("resourceVersion={name}")),
                None => pairs.push(self.captures.uids(&literal(pair))),
            }
        }
        if is_watch(query) {
            pairs.retain(|pair| !pair.starts_with("timeoutSeconds="));
            pairs.push("timeoutSeconds=1".to_owned());
        }
        format!("{path}?{}", pairs.join("&"))
    }

    /// Returns the body for the script, and a comment if the body cannot be recorded.
    fn body(&mut self, exchange: &Exchange) -> (Option<Value>, Option<String>) {
        let bytes = exchange.body.as_slice();
        if bytes.is_empty() {
            return (None, None);
        }
        let kind = exchange.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let mut body = if kind.starts_with(PROTOBUF) {
            match protobuf::decode(bytes) {
                Ok(body) => body,
                Err(error) => {
                    let problem = format!("The body was protobuf that cannot be read: {error}");
                    return (None, Some(problem.replace('\n', " ")));
                }
            }
        } else {
            let Ok(text) = std::str::from_utf8(bytes) else {
                let problem = format!("The body was {} bytes that are not text.", bytes.len());
                return (None, Some(problem));
            };
            // In the suite a text is sent unchanged, and null is no body.
            match serde_json::from_str(text) {
                Ok(Value::String(_) | Value::Null) | Err(_) => Value::from(text),
                Ok(body) => body,
            }
        };
        self.replace(&mut body);
        (Some(body), None)
    }

    /// Replaces the namespace, versions and uids by names, also in the copies of objects that
    /// `kubectl apply` stores.
    fn replace(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let operand = fields.get("path").and_then(Value::as_str);
                let is_version_patched =
                    operand.is_some_and(|path| path.ends_with("/resourceVersion"));
                for (field, mut value) in std::mem::take(fields) {
                    let name = match (field.as_str(), value.as_str()) {
                        ("namespace", Some(text)) if text == self.namespace => {
                            Some(NAMESPACE.to_owned())
                        }
                        ("resourceVersion", Some(text)) => self.captures.version(text),
                        ("value", Some(text)) if is_version_patched => self.captures.version(text),
                        _ => None,
                    };
                    match name {
                        Some(name) => value = Value::from(name),
                        None => self.replace(&mut value),
                    }
                    fields.insert(literal(&field), value);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::String(text) => {
                let of = |namespace: &str| format!("\"namespace\":\"{namespace}\"");
                let filled = literal(text).replace(&of(self.namespace), &of(NAMESPACE));
                *text = self.captures.uids(&filled);
            }
            _ => {}
        }
    }
}

/// Returns the headers that affect the response, without those that the suite sends by itself.
pub(crate) fn headers(headers: &HeaderMap, has_body: bool) -> BTreeMap<String, String> {
    let mut kept = BTreeMap::new();
    for (name, value) in headers {
        let Ok(value) = value.to_str() else { continue };
        let value = match name {
            &header::ACCEPT => {
                // The suite compares JSON.
                let types = value.split(',').map(str::trim);
                let types: Vec<&str> = types.filter(|kind| !kind.starts_with(PROTOBUF)).collect();
                let is_plain = |kind: &&str| matches!(*kind, "application/json" | "*/*" | "");
                if types.iter().all(is_plain) {
                    continue;
                }
                types.join(",")
            }
            &header::CONTENT_TYPE => {
                if !has_body || value == "application/json" || value.starts_with(PROTOBUF) {
                    continue;
                }
                value.to_owned()
            }
            name if name.as_str().starts_with("impersonate-") => value.to_owned(),
            _ => continue,
        };
        kept.insert(name.to_string(), value);
    }
    kept
}

/// Escapes `text` so that the suite sends it unchanged.
fn literal(text: &str) -> String {
    text.replace("${", &format!("{DOLLAR}{{"))
}

/// Quotes `text` as JSON, which is valid YAML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
