//! Reads kubeconfig files.
//!
//! kube can read kubeconfig files too, straight from YAML into kube's types. However, kube's way
//! compiles the YAML parser once for each of a dozen types, which adds a third of a megabyte to
//! every operator. This module parses a file into a JSON value first, as client-go does.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;
use serde_json::Value;
use tower::BoxError;

use super::ConnectError;

/// Fields of a kubeconfig that hold a boolean. All other scalars are strings.
const BOOLEANS: [&str; 3] = [
    "disable-compression",
    "insecure-skip-tls-verify",
    "provideClusterInfo",
];

/// Reads one kubeconfig.
pub(super) fn read(path: &Path) -> Result<Kubeconfig, ConnectError> {
    let unusable = |cause| ConnectError::Use {
        path: path.display().to_string(),
        cause,
    };
    let bytes = std::fs::read(path).map_err(|cause| ConnectError::Read {
        path: path.to_owned(),
        cause,
    })?;
    let text = decode_text(&bytes).ok_or_else(|| unusable("it is not text".into()))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|cause| unusable(cause.into()))?;
    let mut merged = Kubeconfig::default();
    for mut document in documents {
        write_scalars_as_strings(&mut document);
        let mut config: Kubeconfig =
            serde_json::from_value(document).map_err(|cause| unusable(cause.into()))?;
        check(&config).map_err(unusable)?;
        if let Some(directory) = path.parent() {
            resolve_paths(&mut config, directory);
        }
        merged = merge(merged, config);
    }
    Ok(merged)
}

/// Reads and merges the files of `KUBECONFIG`. Files that do not exist are ignored, unless none
/// exists.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Kubeconfig, ConnectError> {
    let mut merged = None;
    for path in paths {
        let config = match read(path) {
            Err(ConnectError::Read { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                continue;
            }
            config => config?,
        };
        merged = Some(match merged {
            Some(merged) => merge(merged, config),
            None => config,
        });
    }
    merged.ok_or_else(|| ConnectError::NoFile {
        paths: std::env::join_paths(paths).unwrap_or_default().into(),
    })
}

/// Merges two kubeconfigs, as `kubectl` does: the first one that sets the current context, or that
/// has a cluster, user or context of a name, wins as a whole.
fn merge(mut first: Kubeconfig, second: Kubeconfig) -> Kubeconfig {
    fn add<T>(first: &mut Vec<T>, second: Vec<T>, name: fn(&T) -> &str) {
        for item in second {
            if first.iter().all(|it| name(it) != name(&item)) {
                first.push(item);
            }
        }
    }
    add(&mut first.clusters, second.clusters, |it| &it.name);
    add(&mut first.auth_infos, second.auth_infos, |it| &it.name);
    add(&mut first.contexts, second.contexts, |it| &it.name);
    // `kubectl config unset current-context` leaves an empty text, which sets nothing.
    let current = first.current_context.filter(|name| !name.is_empty());
    first.current_context = current.or(second.current_context);
    first
}

/// Refuses a file that is not a kubeconfig, or that has two entries of one name.
fn check(config: &Kubeconfig) -> Result<(), BoxError> {
    let given = |text: &Option<String>, default: &str| {
        let text = text.clone().filter(|text| !text.is_empty());
        text.unwrap_or_else(|| default.to_owned())
    };
    let version = given(&config.api_version, "v1");
    let kind = given(&config.kind, "Config");
    if (&*version, &*kind) != ("v1", "Config") {
        return Err(format!("it is a {kind} of {version}, and not a Config of v1").into());
    }
    let clusters = config.clusters.iter().map(|it| ("cluster", &it.name));
    let users = config.auth_infos.iter().map(|it| ("user", &it.name));
    let contexts = config.contexts.iter().map(|it| ("context", &it.name));
    let mut names = HashSet::new();
    for (item, name) in clusters.chain(users).chain(contexts) {
        if !names.insert((item, name)) {
            return Err(format!("it has two {item}s with the name {name:?}").into());
        }
    }
    Ok(())
}

/// Decodes text in UTF-8, or in UTF-16 if it starts with the byte order mark of UTF-16, which
/// PowerShell writes.
fn decode_text(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (units, rest) = bytes.as_chunks::<2>();
        let units: Vec<u16> = units.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    match bytes {
        [0xFF, 0xFE, text @ ..] => utf16(text, u16::from_le_bytes),
        [0xFE, 0xFF, text @ ..] => utf16(text, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, text @ ..] => String::from_utf8(text.to_vec()).ok(),
        text => String::from_utf8(text.to_vec()).ok(),
    }
}

/// Turns numbers and booleans into strings where a kubeconfig holds strings: `name: 1234` is valid
/// YAML for the name "1234". Extensions hold any type and stay as they are.
fn write_scalars_as_strings(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter_mut();
            fields
                .filter(|(key, _)| !BOOLEANS.contains(&key.as_str()) && *key != "extensions")
                .for_each(|(_, value)| write_scalars_as_strings(value));
        }
        Value::Array(items) => items.iter_mut().for_each(write_scalars_as_strings),
        Value::Number(_) | Value::Bool(_) => *value = Value::String(value.to_string()),
        Value::String(_) | Value::Null => {}
    }
}

/// Resolves relative paths of certificates, tokens and plugins against `directory`, which contains
/// the kubeconfig.
fn resolve_paths(config: &mut Kubeconfig, directory: &Path) {
    let resolve = |file: &mut Option<String>| {
        let path = file.as_deref().map(Path::new);
        if let Some(path) = path.filter(|path| path.is_relative()) {
            *file = directory.join(path).to_str().map(str::to_owned);
        }
    };
    let clusters = config.clusters.iter_mut();
    for cluster in clusters.filter_map(|named| named.cluster.as_mut()) {
        resolve(&mut cluster.certificate_authority);
    }
    let users = config.auth_infos.iter_mut();
    for user in users.filter_map(|named| named.auth_info.as_mut()) {
        resolve(&mut user.client_certificate);
        resolve(&mut user.client_key);
        resolve(&mut user.token_file);
        // A command without a separator is looked up in `PATH`, as client-go does.
        if let Some(exec) = &mut user.exec {
            let is_path = |command: &String| command.contains(std::path::MAIN_SEPARATOR);
            if exec.command.as_ref().is_some_and(is_path) {
                resolve(&mut exec.command);
            }
        }
    }
}

#[cfg(test)]
mod tests;
