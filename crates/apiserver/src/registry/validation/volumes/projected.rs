//! Validation of projected volumes, whose files come from several sources.

use serde_json::json;

use super::super::field::{Errors, Field};
use super::super::{format, selectors};
use super::{downward_file, file_mode, key_to_path};

const CONFLICT: &str = "conflicting duplicate paths";
const KEY_TYPES: &[&str] = &[
    "RSA3072",
    "RSA4096",
    "ECDSAP256",
    "ECDSAP384",
    "ECDSAP521",
    "ED25519",
];
/// Shortest life of a ServiceAccount token in seconds: ten minutes.
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// Adds the errors in the sources of a projected volume.
pub(super) fn projected(volume: &Field<'_>, errors: &mut Errors) {
    file_mode(&volume.get("defaultMode"), errors);
    let mut paths: Vec<&str> = Vec::new();
    for source in volume.get("sources").items() {
        let mut count = 0;
        for name in ["secret", "configMap"] {
            let map = source.get(name);
            if !map.is_set() {
                continue;
            }
            count += 1;
            let name = map.get("name");
            errors.not_empty(&name);
            for item in map.get("items").items() {
                key_to_path(&item, errors);
                let path = item.get("path").text();
                unique(volume, &mut paths, path, name.text(), errors);
            }
        }
        let downward = source.get("downwardAPI");
        if downward.is_set() {
            count += 1;
            for file in downward.get("items").items() {
                downward_file(&file.renamed(downward.path.clone()), errors);
                let path = file.get("path").text();
                unique(volume, &mut paths, path, path, errors);
            }
        }
        let token = source.get("serviceAccountToken");
        if token.is_set() {
            count += 1;
            service_account_token(volume, &token, errors);
        }
        let bundle = source.get("clusterTrustBundle");
        if bundle.is_set() {
            count += 1;
            trust_bundle(&bundle, errors);
            let path = bundle.get("path").text();
            unique(volume, &mut paths, path, path, errors);
        }
        let certificate = source.get("podCertificate");
        if certificate.is_set() {
            count += 1;
            errors.supported(&certificate.get("keyType"), KEY_TYPES);
            let names = ["credentialBundlePath", "keyPath", "certificateChainPath"];
            let files = names.iter().map(|name| certificate.get(name));
            let files: Vec<Field<'_>> = files.filter(|path| !path.is_empty()).collect();
            for path in &files {
                format::local_path(path, errors);
                unique(volume, &mut paths, path.text(), path.text(), errors);
            }
            if files.is_empty() {
                let detail = "specify at least one of credentialBundlePath, keyPath, and \
                              certificateChainPath";
                errors.required(&certificate, detail);
            }
        }
        if count > 1 {
            let detail = "may not specify more than 1 volume type per source";
            errors.forbidden(&source, detail);
        }
    }
}

/// Adds an error if another file of the volume has the path.
fn unique<'a>(
    volume: &Field<'_>,
    paths: &mut Vec<&'a str>,
    path: &'a str,
    value: &str,
    errors: &mut Errors,
) {
    if path.is_empty() {
        return;
    }
    if paths.contains(&path) {
        errors.invalid_value(&volume.path, json!(value), CONFLICT);
    }
    paths.push(path);
}

fn service_account_token(volume: &Field<'_>, token: &Field<'_>, errors: &mut Errors) {
    let expiration = token.get("expirationSeconds");
    if expiration.int() < TOKEN_SECONDS_MIN {
        let detail = "may not specify a duration less than 10 minutes";
        errors.invalid_int(&expiration, detail);
    }
    if expiration.int() > TOKEN_SECONDS_MAX {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.invalid_int(&expiration, detail);
    }
    let path = token.get("path").renamed(volume.join("path"));
    match path.text() {
        "" => errors.required(&path, ""),
        _ => format::local_path(&path, errors),
    }
}

fn trust_bundle(bundle: &Field<'_>, errors: &mut Errors) {
    let (name, signer) = (bundle.get("name"), bundle.get("signerName"));
    match (name.is_set(), signer.is_set()) {
        (true, true) => {
            errors.invalid(bundle, "only one of name and signerName may be used");
        }
        (true, false) => {
            if name.is_empty() {
                errors.required(&name, "must be a valid object name");
            }
            let plain = name.text().rsplit(':').next().unwrap_or_default();
            for rule in format::dns_subdomain(plain) {
                let detail = format!("not a valid clustertrustbundlename: {rule}");
                errors.invalid_text(&name, &detail);
            }
        }
        (false, true) => {
            if signer.is_empty() {
                errors.required(&signer, "must be a valid signer name");
            }
            selectors::selector(&bundle.get("labelSelector"), errors);
        }
        (false, false) => {
            errors.required(bundle, "either name or signerName must be specified");
        }
    }
    errors.not_empty(&bundle.get("path"));
    format::local_path(&bundle.get("path"), errors);
}
