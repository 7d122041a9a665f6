//! Latest reconciles of one object.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;
use opkit_client::ObjectKey;
use opkit_controller::{Kind, ReconcileRecord, ShardKey};
use opkit_debug::{Explanation, Owner, Refusal};
use serde_json::Value;

use super::{Subject, json, message, refusal};

/// Returns the latest reconciles of the objects with the queried `kind`, `name` and, if given,
/// `namespace`. `kind` may be the kind, its plural, a short name, or the name of its controller.
pub(super) async fn explain(subject: &Subject, query: Option<&str>) -> (StatusCode, String) {
    let query: HashMap<_, _> =
        form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
    let (Some(kind), Some(name)) = (query.get("kind"), query.get("name")) else {
        return (
            StatusCode::BAD_REQUEST,
            refusal("kind and name must be given"),
        );
    };
    let controllers = controllers(subject, kind).await;
    if controllers.is_empty() {
        let kinds = subject.controllers.iter().map(|(_, of)| of.kind.clone());
        let refusal = Refusal {
            error: format!("{} reconciles no {kind}", subject.operator),
            kinds: kinds.collect(),
        };
        return (StatusCode::NOT_FOUND, json(&refusal));
    }
    let is_meant = |record: &&Arc<ReconcileRecord>| {
        record.request.name == **name
            && query
                .get("namespace")
                .is_none_or(|asked| record.request.namespace.as_deref() == Some(asked))
            && controllers.contains(&&*record.controller)
    };
    let last = subject.log.last_of_each();
    let records: Vec<_> = last.iter().filter(is_meant).collect();
    let mut keys: Vec<ObjectKey> = records.iter().map(|it| it.request.key().clone()).collect();
    let asked = query.get("namespace").map(|asked| asked.to_string());
    let kinds = subject.controllers.iter();
    let mut kinds = kinds.filter(|(controller, _)| controllers.contains(&controller.as_str()));
    let kind = kinds.next().map(|(_, kind)| kind);
    // Another replica may reconcile the object, and then there is no record of it here.
    if keys.is_empty() && kind.is_some_and(|kind| !kind.namespaced || asked.is_some()) {
        keys.push(ObjectKey {
            namespace: asked.filter(|_| kind.is_some_and(|kind| kind.namespaced)),
            name: name.to_string(),
        });
    }
    keys.dedup();
    let mut owners = Vec::new();
    if let Some(kind) = kind {
        for key in &keys {
            owners.extend(owner(subject, kind, key).await);
        }
    }
    let records = records
        .into_iter()
        .map(|last| subject.log.of(&last.controller, &last.request));
    let objects = records.map(|records| records.iter().map(|it| message::reconcile(it)).collect());
    let explanation = Explanation {
        operator: subject.operator.clone(),
        objects: objects.collect(),
        owners,
    };
    (StatusCode::OK, json(&explanation))
}

/// Returns the owner of an object; `None` if the operator is not sharded, or if it is sharded by
/// UID and the object cannot be read.
async fn owner(subject: &Subject, kind: &Kind, key: &ObjectKey) -> Option<Owner> {
    let uid = match subject.owners.by()? {
        ShardKey::Uid => {
            let object = subject.client.get(kind, key).await.ok()?;
            let object: Value = serde_json::from_slice(&object).ok()?;
            object.pointer("/metadata/uid")?.as_str()?.to_owned()
        }
        ShardKey::Namespace => String::new(),
    };
    let owner = subject.owners.of(&uid, key.namespace.as_deref())?;
    Some(Owner {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        hash: format!("{:016x}", owner.hash),
        slot: owner.slot,
        of: owner.of,
        replica: owner.replica,
    })
}

/// Returns the names of the controllers whose kind or name matches `name`.
async fn controllers<'a>(subject: &'a Subject, name: &str) -> Vec<&'a str> {
    let of = |is_meant: &dyn Fn(&str, &Kind) -> bool| -> Vec<&'a str> {
        let controllers = subject.controllers.iter();
        let meant = controllers.filter(|(controller, kind)| is_meant(controller, kind));
        meant.map(|(controller, _)| controller.as_str()).collect()
    };
    let known = of(&|controller, kind| {
        let mut names = [&kind.kind, &kind.plural, controller].into_iter();
        names.any(|known| known.eq_ignore_ascii_case(name))
    });
    if !known.is_empty() {
        return known;
    }
    // A short name, or a name with its group: only the server's discovery knows these.
    match subject.names.resource(&name.to_lowercase()).await {
        Ok(found) => of(&|_, kind| kind.kind == found.kind && kind.group == found.group),
        Err(_) => Vec::new(),
    }
}
