//! Execution of a script's requests.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::{Request, Response, header};
use opkit_apimachinery::protobuf::{self, WatchEventParts};
use serde_json::{Value, json};

use crate::{Normalizer, RecordedResponse, Script, Step, Wait};

/// User agent, which becomes the field manager of requests that name none.
const USER_AGENT: &str = "differential/1";
const PAUSE: Duration = Duration::from_millis(50);

/// Complete response.
pub type Reply = Response<Vec<u8>>;

/// Server that responds to requests.
pub trait Server {
    /// Sends one request and returns its complete response.
    ///
    /// # Errors
    /// If there is no response.
    fn send(&self, request: Request<Vec<u8>>) -> Result<Reply>;

    /// Waits for `time`.
    fn pause(&self, time: Duration);
}

/// Runs `script` in its own namespace, and deletes the CRDs that it created.
///
/// # Errors
/// If a request gets no response, a condition is not met in time, or a value to capture is missing.
pub fn run(script: &Script, server: &dyn Server) -> Result<Vec<RecordedResponse>> {
    let namespace = format!("diff-{}", script.name);
    let mut run = Run {
        server,
        normalizer: Normalizer::new(&script.text),
        values: script.vars.clone(),
    };
    run.values.insert("namespace".to_owned(), namespace.clone());
    run.create_namespace(&namespace)?;
    let mut crds = Vec::new();
    let mut responses = Vec::with_capacity(script.steps.len());
    for step in &script.steps {
        let doing = || format!("script {}, step {:?}", script.name, step.name);
        let (response, body) = run.step(step).with_context(doing)?;
        if body.get("kind") == Some(&json!("CustomResourceDefinition")) {
            let name = body.pointer("/metadata/name").and_then(Value::as_str);
            crds.extend(name.map(str::to_owned));
        }
        responses.push(response);
    }
    run.remove_crds(crds)?;
    Ok(responses)
}

struct Run<'a> {
    server: &'a dyn Server,
    normalizer: Normalizer,
    values: BTreeMap<String, String>,
}

impl Run<'_> {
    fn create_namespace(&self, name: &str) -> Result<()> {
        let body = json!({"metadata": {"name": name}}).to_string();
        let request = base("POST", "/api/v1/namespaces")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.into_bytes())?;
        let reply = self.server.send(request)?;
        ensure!(
            reply.status() == 201,
            "cannot create namespace {name}: {}: record on a new control plane",
            String::from_utf8_lossy(reply.body())
        );
        Ok(())
    }

    fn remove_crds(&self, names: Vec<String>) -> Result<()> {
        for name in names {
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            self.server.send(base("DELETE", &path).body(Vec::new())?)?;
        }
        Ok(())
    }

    /// Returns the normalized response, and the original body.
    fn step(&mut self, step: &Step) -> Result<(RecordedResponse, Value)> {
        let reply = self.send_until(step)?;
        let body = body_of(&reply);
        for (name, pointer) in &step.capture {
            let value = body
                .pointer(pointer)
                .with_context(|| format!("nothing to capture at {pointer} of {body}"))?;
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            self.values.insert(name.clone(), text);
        }
        let texts = |name: header::HeaderName| {
            let values = reply.headers().get_all(name).into_iter();
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut compared = body.clone();
        for ignore in &step.ignore {
            ignore.remove_from(&mut compared);
        }
        self.normalizer.is_dry_run = step.path.contains("dryRun=");
        let response = RecordedResponse {
            step: step.name.clone(),
            request: format!("{} {}", step.method, step.path),
            status: reply.status().as_u16(),
            content_type: texts(header::CONTENT_TYPE).collect::<Vec<_>>().join(", "),
            // Warnings about features that the embedded server lacks, which a real server never
            // sends, are dropped.
            warnings: texts(header::WARNING)
                .filter(|warning| !warning.contains("opkit does not model"))
                .map(|warning| self.normalizer.text(&warning))
                .collect(),
            body: self.normalizer.body(&compared),
        };
        Ok((response, body))
    }

    fn send_until(&self, step: &Step) -> Result<Reply> {
        let mut waited = Duration::ZERO;
        loop {
            let reply = self.server.send(self.request(step)?)?;
            let Some(wait) = &step.wait else {
                return Ok(reply);
            };
            if is_met(wait, &reply) {
                return Ok(reply);
            }
            if waited > Duration::from_secs(wait.seconds) {
                bail!(
                    "the condition is not met after {} s: {} {}",
                    wait.seconds,
                    reply.status(),
                    String::from_utf8_lossy(reply.body())
                );
            }
            self.server.pause(PAUSE);
            waited += PAUSE;
        }
    }

    fn request(&self, step: &Step) -> Result<Request<Vec<u8>>> {
        let mut request = base(&step.method, &self.fill(&step.path)?);
        if let Some(headers) = request.headers_mut() {
            if step.body.is_some() {
                let json = header::HeaderValue::from_static("application/json");
                headers.insert(header::CONTENT_TYPE, json);
            }
            for (name, value) in &step.headers {
                let name = header::HeaderName::try_from(name.as_str())?;
                headers.insert(name, self.fill(value)?.try_into()?);
            }
        }
        let body = match &step.body {
            None => String::new(),
            Some(Value::String(text)) => self.fill(text)?,
            Some(body) => self.fill(&body.to_string())?,
        };
        Ok(request.body(body.into_bytes())?)
    }

    /// Replaces the names of values in `text` by the values, which may contain further names.
    fn fill(&self, text: &str) -> Result<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').context("a ${ without its }")?;
            let value = self
                .values
                .get(name)
                .with_context(|| format!("no value has the name {name}"))?;
            filled.push_str(before);
            filled.push_str(&self.fill(value)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

fn base(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, USER_AGENT)
}

fn is_met(wait: &Wait, reply: &Reply) -> bool {
    let body = body_of(reply);
    wait.status.is_none_or(|status| reply.status() == status)
        && wait
            .body
            .iter()
            .all(|(pointer, value)| body.pointer(pointer) == Some(value))
}

/// Decodes the body: JSON, YAML and protobuf to JSON, the frames of a watch to a list, anything
/// else to text.
fn body_of(reply: &Reply) -> Value {
    let bytes = reply.body();
    let content_type = reply.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let read = match content_type.unwrap_or_default().split_once(';') {
        Some((protobuf::CONTENT_TYPE, "stream=watch")) => protobuf_frames(bytes),
        None if bytes.starts_with(protobuf::MAGIC) => protobuf::decode(bytes).ok(),
        None if content_type == Some("application/yaml") => serde_saphyr::from_slice(bytes).ok(),
        _ => None,
    };
    if let Some(body) = read {
        return body;
    }
    if let Ok(body) = serde_json::from_slice(bytes) {
        // A watch with one frame is a list too.
        return match body {
            Value::Object(frame) if is_frame(&frame) => json!([frame]),
            body => body,
        };
    }
    let text = String::from_utf8_lossy(bytes);
    let frames: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    match frames {
        Ok(frames) if !frames.is_empty() => Value::Array(frames),
        _ => Value::String(text.into_owned()),
    }
}

/// Decodes the frames of a watch in protobuf: each is a length in four bytes and as many bytes.
fn protobuf_frames(mut bytes: &[u8]) -> Option<Value> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (frame, rest) = rest.split_at_checked(length)?;
        let event = WatchEventParts::read(frame).ok()?;
        let object = protobuf::decode(event.object).ok()?;
        frames.push(json!({"type": event.type_, "object": object}));
        bytes = rest;
    }
    bytes.is_empty().then_some(Value::Array(frames))
}

fn is_frame(object: &serde_json::Map<String, Value>) -> bool {
    object.len() == 2 && object.contains_key("type") && object.contains_key("object")
}
