//! `cargo xtask rbac`: reads the Roles, ClusterRoles and bindings that a new API server creates,
//! and writes them for the embedded server.
//!
//! The server must be new, and no controller manager may run beside it: its controllers aggregate
//! ClusterRoles, and the embedded server does this itself.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use differential::Server;
use http::Request;
use serde_json::{Map, Value};

use crate::curl::{Curl, Target};

/// Server to read, and file to write.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// File to write
    #[arg(long, default_value = "crates/apiserver/data/v1.36/rbac.jsonl")]
    out: PathBuf,
}

const RESOURCES: [(&str, &str); 4] = [
    ("clusterroles", "ClusterRole"),
    ("clusterrolebindings", "ClusterRoleBinding"),
    ("roles", "Role"),
    ("rolebindings", "RoleBinding"),
];

/// Reads the server and writes the file.
pub(crate) fn run(args: &Args) -> Result<()> {
    let server = args.target.server()?;
    let mut text = String::new();
    for (resource, kind) in RESOURCES {
        let mut objects = list(&server, resource)?;
        objects.sort_by_key(name);
        for object in objects {
            writeln!(text, "{}", stripped(object, kind)?)?;
        }
    }
    std::fs::write(&args.out, text).with_context(|| format!("cannot write {}", args.out.display()))
}

fn list(server: &Curl, resource: &str) -> Result<Vec<Value>> {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/{resource}");
    let reply = server.send(Request::get(&path).body(Vec::new())?)?;
    ensure!(reply.status() == 200, "GET {path}: {}", reply.status());
    let list: Value = serde_json::from_slice(reply.body()).context("the list is not JSON")?;
    let items = list.get("items").and_then(Value::as_array).cloned();
    items.with_context(|| format!("GET {path} returns no list"))
}

fn name(object: &Value) -> (String, String) {
    let text = |pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}

/// Returns the object without the fields that differ from server to server.
fn stripped(object: Value, kind: &str) -> Result<Value> {
    let mut fields = Map::new();
    fields.insert(
        "apiVersion".to_owned(),
        "rbac.authorization.k8s.io/v1".into(),
    );
    fields.insert("kind".to_owned(), kind.into());
    let Value::Object(rest) = object else {
        anyhow::bail!("an item of the list is not an object");
    };
    fields.extend(rest);
    let mut object = Value::Object(fields);
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let metadata = metadata.context("an object has no metadata")?;
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(field);
    }
    let managers = metadata.get_mut("managedFields");
    for manager in managers.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(manager) = manager.as_object_mut() {
            manager.remove("time");
        }
    }
    Ok(object)
}
