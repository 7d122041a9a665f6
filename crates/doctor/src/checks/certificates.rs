//! The serving certificate of the webhooks, and the authorities in each `caBundle`.

use serde_json::Value;

use crate::certificate::{Refusal, Validity, decode, validities, verify};
use crate::value::{duration, items, kind, name, namespace, text};
use crate::{Facts, Finding};

/// A certificate is renewed after two thirds of its lifetime, so that less than this part means
/// that the renewal does not work.
const RENEWAL: i64 = 6;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(secret) = secret(facts) else {
        return Vec::new();
    };
    let chain = decode(text(secret, "/data/tls.crt"));
    let mut findings = Vec::new();
    for (object, client) in clients(facts) {
        let bundle = decode(text(client, "/caBundle"));
        // The check of webhooks reports an empty bundle.
        if bundle.is_empty() {
            continue;
        }
        let service = client.get("service").unwrap_or(&Value::Null);
        let host = format!(
            "{}.{}.svc",
            text(service, "/name"),
            text(service, "/namespace")
        );
        if let Err(refusal) = verify(&chain, &bundle, &host, facts.now) {
            findings.push(refused(facts, secret, object, &host, &refusal));
        } else if let Some(finding) = expired_authority(facts, object, &bundle) {
            findings.push(finding);
        }
    }
    // The same problem of several configurations is one of the certificate.
    findings.sort();
    findings.dedup_by(|a, b| a.message == b.message);
    if findings.is_empty() {
        findings.extend(expiring(facts, secret, &chain));
    }
    findings
}

/// Returns the Secret with the serving certificate.
fn secret(facts: &Facts) -> Option<&Value> {
    let secrets = facts.all("Secret");
    let mut secrets = secrets.filter(|secret| {
        namespace(secret) == Some(facts.manifests.namespace.as_str())
            && !text(secret, "/data/tls.crt").is_empty()
    });
    secrets.next()
}

/// Returns the client configurations with a Service of the operator, each with its object.
fn clients(facts: &Facts) -> Vec<(&Value, &Value)> {
    let mut clients = Vec::new();
    for configuration in super::webhooks::configurations(facts) {
        let webhooks = items(configuration, "/webhooks").iter();
        clients.extend(webhooks.filter_map(|it| Some((configuration, it.get("clientConfig")?))));
    }
    for crd in facts.manifests.all("CustomResourceDefinition") {
        let Some(live) = facts.live(crd) else {
            continue;
        };
        if text(live, "/spec/conversion/strategy") == "Webhook" {
            let client = live.pointer("/spec/conversion/webhook/clientConfig");
            clients.extend(client.map(|client| (live, client)));
        }
    }
    clients.retain(|(_, client)| text(client, "/service/namespace") == facts.manifests.namespace);
    clients
}

fn refused(
    facts: &Facts,
    secret: &Value,
    object: &Value,
    host: &str,
    refusal: &Refusal,
) -> Finding {
    let certificate = format!("the serving certificate in secret/{}", name(secret));
    let what = format!("{} {}", kind(object), name(object));
    let message = match refusal {
        Refusal::Unreadable(what) => format!("{what} of {} is not valid PEM", name(object)),
        Refusal::UnknownAuthority => format!(
            "no authority in the caBundle of {what} has signed {certificate}: the API server refuses every call"
        ),
        Refusal::OtherName => {
            format!("{certificate} is not for {host}: the API server refuses every call")
        }
        Refusal::NotYet => format!("{certificate} is not valid yet: a clock is wrong"),
        Refusal::Expired => {
            let chain = decode(text(secret, "/data/tls.crt"));
            let until = validities(&chain).first().map_or(0, |it| it.until);
            let ago = duration(facts.now.as_second().saturating_sub(until));
            format!("{certificate} expired {ago} ago: the API server refuses every call")
        }
        Refusal::Other(error) => format!("the API server refuses {certificate}: {error}"),
    };
    let finding = Finding::fail("certificate", message);
    finding.about(secret).command(renew(facts, secret))
}

/// Finds a bundle in which every authority has expired.
fn expired_authority(facts: &Facts, object: &Value, bundle: &str) -> Option<Finding> {
    let now = facts.now.as_second();
    let all = validities(bundle);
    let last = all.iter().map(|it| it.until).max()?;
    (last < now).then(|| {
        let ago = duration(now.saturating_sub(last));
        let message = format!(
            "the authority in the caBundle of {} {} expired {ago} ago: the API server refuses every call",
            kind(object),
            name(object)
        );
        let namespace = &facts.manifests.namespace;
        let operator = &facts.manifests.operator;
        Finding::fail("certificate", message)
            .about(object)
            .command(format!("kubectl -n {namespace} logs -l app.kubernetes.io/name={operator}"))
    })
}

/// Finds a certificate that should have been renewed.
fn expiring(facts: &Facts, secret: &Value, chain: &str) -> Option<Finding> {
    let Validity { from, until } = *validities(chain).first()?;
    let left = until.saturating_sub(facts.now.as_second());
    (left > 0 && left < until.saturating_sub(from) / RENEWAL).then(|| {
        let message = format!(
            "the serving certificate in secret/{} expires in {} and was not renewed",
            name(secret),
            duration(left)
        );
        let finding = Finding::warning("certificate", message);
        finding.about(secret).command(renew(facts, secret))
    })
}

/// Returns the command with which the owner of the certificate creates a new one.
fn renew(facts: &Facts, secret: &Value) -> String {
    let namespace = &facts.manifests.namespace;
    let name = name(secret);
    let mut runtime = facts.manifests.runtime_objects.iter();
    match runtime.any(|it| text(it, "/kind") == "Secret" && crate::value::name(it) == name) {
        true => format!(
            "kubectl -n {namespace} logs -l app.kubernetes.io/name={}   # or, to start over: kubectl -n {namespace} delete secret {name}",
            facts.manifests.operator
        ),
        false => format!("kubectl -n {namespace} describe certificates,secret/{name}"),
    }
}
