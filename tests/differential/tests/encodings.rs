//! Comparison of the encodings of every object that the scripts write: the object in a get, in a
//! list, in a watch, as JSON and as protobuf, as metadata and in a Table must be the same.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use differential::{Reply, Script, Server, Suite, run};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use opkit_apimachinery::identity::ResourcePath;
use opkit_apimachinery::protobuf::{
    self, CONTENT_TYPE, Deserializer, ListParts, MessageType, WatchEventParts,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Server in this process that compares the encodings of an object after each successful write.
struct Compared {
    runtime: Runtime,
    server: opkit_apiserver::Server,
    /// Number of compared objects, and of those that have a protobuf encoding.
    compared: Cell<(usize, usize)>,
}

impl Server for Compared {
    fn send(&self, request: Request<Vec<u8>>) -> Result<Reply> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let reply = self.forward(request)?;
        let is_write = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        if is_write && reply.status().is_success() && !query.contains("dryRun") {
            let body: Value = serde_json::from_slice(reply.body()).unwrap_or_default();
            self.check(&path, method == Method::POST, &body)
                .with_context(|| format!("{method} {path}"))?;
        }
        Ok(reply)
    }

    fn pause(&self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(time).await });
    }
}

impl Compared {
    fn start(script: &Script) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        let entered = runtime.enter();
        let mut options = opkit_apiserver::Options::default();
        // The script of quotas writes their status itself, in place of the controller.
        options.controllers = script.name != "quotas";
        let server = opkit_apiserver::Server::start(options)?;
        drop(entered);
        Ok(Self {
            runtime,
            server,
            compared: Cell::default(),
        })
    }

    fn forward(&self, request: Request<Vec<u8>>) -> Result<Reply> {
        let request = request.map(|body| Full::new(Bytes::from(body)));
        self.runtime.block_on(async {
            let response = self.server.service().oneshot(request).await?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await?.to_bytes().to_vec();
            Ok(Reply::from_parts(parts, body))
        })
    }

    fn get(&self, path: &str, accept: &str) -> Result<Reply> {
        let request = Request::get(path).header("accept", accept);
        self.forward(request.body(Vec::new())?)
    }

    fn json(&self, path: &str, accept: &str) -> Result<Value> {
        let reply = self.get(path, accept)?;
        ensure!(reply.status() == 200, "{path}: {}", reply.status());
        Ok(serde_json::from_slice(reply.body())?)
    }

    /// Compares the encodings of the object that a write to `path` has stored.
    fn check(&self, path: &str, is_create: bool, body: &Value) -> Result<()> {
        let Some(name) = body.pointer("/metadata/name").and_then(Value::as_str) else {
            return Ok(());
        };
        let (collection, object) = match is_create {
            true => (path.to_owned(), format!("{path}/{name}")),
            false => {
                let parsed = ResourcePath::parse(path).context("not the path of a resource")?;
                let path = match &parsed.subresource {
                    Some(subresource) => path.trim_end_matches(&format!("/{subresource}")),
                    None => path,
                };
                let collection = path.rsplit_once('/').map(|(collection, _)| collection);
                (collection.unwrap_or_default().to_owned(), path.to_owned())
            }
        };
        let reply = self.get(&object, "application/json")?;
        if reply.status() != 200 {
            return Ok(());
        }
        let expected: Value = serde_json::from_slice(reply.body())?;
        let selector = format!("fieldSelector=metadata.name%3D{name}");
        let checked = self
            .check_json(&collection, &object, &selector, &expected)
            // Twice: the second time, the protobuf message may have been kept.
            .and_then(|()| self.check_protobuf(&collection, &object, &selector, &expected))
            .and_then(|()| self.check_protobuf(&collection, &object, &selector, &expected));
        // The controllers run during the watches, and may have changed or deleted the object.
        if self.get(&object, "application/json")?.body() != reply.body() {
            return Ok(());
        }
        let (compared, encoded) = self.compared.get();
        self.compared.set((compared + 1, encoded));
        checked
    }

    fn check_json(
        &self,
        collection: &str,
        object: &str,
        selector: &str,
        expected: &Value,
    ) -> Result<()> {
        const JSON: &str = "application/json";
        let list = self.json(&format!("{collection}?{selector}"), JSON)?;
        let mut item = at(&list, "/items/0");
        for field in ["apiVersion", "kind"] {
            if let Some(fields) = item.as_object_mut() {
                fields.insert(field.to_owned(), at(expected, &format!("/{field}")));
            }
        }
        same("item of a list", &item, expected)?;
        let watch = format!("{collection}?watch=true&timeoutSeconds=1&{selector}");
        let frames = self.get(&watch, JSON)?.into_body();
        let first = frames.split(|byte| *byte == b'\n').next();
        let frame: Value = serde_json::from_slice(first.unwrap_or_default())?;
        same("frame of a watch", &at(&frame, "/object"), expected)?;

        let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let metadata = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": at(expected, "/metadata"),
        });
        same("metadata", &self.json(object, partial)?, &metadata)?;
        let partial_list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let list = self.json(&format!("{collection}?{selector}"), partial_list)?;
        same("metadata in a list", &at(&list, "/items/0"), &metadata)?;
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let table = self.json(
            &format!("{collection}?{selector}&includeObject=Object"),
            table,
        )?;
        same("object in a Table", &at(&table, "/rows/0/object"), expected)
    }

    fn check_protobuf(
        &self,
        collection: &str,
        object: &str,
        selector: &str,
        expected: &Value,
    ) -> Result<()> {
        let reply = self.get(object, CONTENT_TYPE)?;
        // Custom resources have no protobuf encoding.
        if reply.status() == 406 {
            return Ok(());
        }
        let (compared, encoded) = self.compared.get();
        self.compared.set((compared, encoded + 1));
        // Protobuf does not have empty lists.
        let mut expected = protobuf::decode(&protobuf::encode(expected)?)?;
        same("protobuf", &protobuf::decode(reply.body())?, &expected)?;
        let watch = format!("{collection}?watch=true&timeoutSeconds=1&{selector}");
        let frames = self.get(&watch, CONTENT_TYPE)?.into_body();
        let (length, rest) = frames.split_at_checked(4).context("no frame")?;
        let length = u32::from_be_bytes(length.try_into()?) as usize;
        let frame = WatchEventParts::read(rest.get(..length).context("a short frame")?)?;
        same(
            "protobuf frame",
            &protobuf::decode(frame.object)?,
            &expected,
        )?;

        let list = self.get(&format!("{collection}?{selector}"), CONTENT_TYPE)?;
        let list = protobuf::envelope(list.body())?;
        let item = ListParts::read(list.raw)?
            .items()
            .next()
            .context("no item")?;
        let (version, kind) = (at(&expected, "/apiVersion"), at(&expected, "/kind"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let message = MessageType::of(&text(&version), &text(&kind));
        let message = message.context("no message")?;
        let item = Value::deserialize(Deserializer::new(message, item))?;
        let fields = expected.as_object_mut().context("no object")?;
        fields.remove("apiVersion");
        fields.remove("kind");
        same("item of a protobuf list", &item, &expected)
    }
}

/// Returns the value at a JSON pointer, or null if there is none.
fn at(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or_default()
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<()> {
    ensure!(found == expected, "{what}: {found}\nexpected: {expected}");
    Ok(())
}

#[test]
fn all_encodings_of_an_object_have_the_same_content() {
    let suite = Suite::read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (mut compared, mut encoded) = (0, 0);
    for script in &suite.scripts {
        let server = Compared::start(script).unwrap();
        run(script, &server).unwrap();
        compared += server.compared.get().0;
        encoded += server.compared.get().1;
    }
    assert!(compared > 200 && encoded > 200, "{compared} {encoded}");
}
