//! Reads the facts from a cluster, in few requests.

mod access;
mod kinds;

use std::collections::BTreeSet;
use std::fmt;

use futures::future::join_all;
use jiff::Timestamp;
use opkit_client::{
    DynamicClient, GroupVersionResource, Kind, ListOptions, ObjectKey, RequestError, RestMapper,
    Unstructured, one_line,
};
use opkit_deploy::{ApplySet, Deployer};
use serde_json::Value;

use self::kinds::{Request, Scope};
use crate::value::{items, kind, name, namespace, text};
use crate::{Facts, Look, OperatorManifests};

/// Number of objects that are read of each kind of the operator. More would be a heavy request in a
/// large cluster.
const INSTANCES_MAX: u32 = 500;

/// Reason why a cluster cannot be diagnosed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// The API server does not respond.
    #[error("cannot reach the API server: {0}")]
    Unreachable(String),
}

/// Reads the facts about an operator.
///
/// # Examples
/// ```
/// use opkit_doctor::{Doctor, DoctorError, OperatorManifests, Report};
///
/// async fn examine(
///     client: kube::Client,
///     manifests: OperatorManifests,
/// ) -> Result<Report, DoctorError> {
///     let doctor = Doctor::new(client);
///     Ok(doctor.read(manifests).await?.examine())
/// }
/// ```
#[derive(Clone)]
pub struct Doctor {
    kube: kube::Client,
    dynamic: DynamicClient,
    mapper: RestMapper,
}

impl fmt::Debug for Doctor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doctor").finish_non_exhaustive()
    }
}

/// Objects of one request, or the kind that could not be read.
type Answer = Result<Vec<Value>, (String, String)>;

impl Doctor {
    /// Creates a doctor that sends through `client`.
    pub fn new(client: kube::Client) -> Self {
        Self {
            dynamic: DynamicClient::new(client.clone()),
            mapper: RestMapper::new(client.clone()),
            kube: client,
        }
    }

    /// Reads the facts. A kind that cannot be read is in [`Facts::unread`].
    ///
    /// # Errors
    /// If the API server does not respond.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub async fn read(&self, manifests: OperatorManifests) -> Result<Facts, DoctorError> {
        let version = self.kube.apiserver_version().await;
        let version = version.map_err(|error| DoctorError::Unreachable(one_line(&error)))?;
        let mut facts = Facts::new(manifests, Timestamp::now());
        facts.cluster = format!("Kubernetes {}", version.git_version.trim_start_matches('v'));
        let mut requests = kinds::requests(&facts.manifests);
        requests.push(self.inventory(&facts.manifests));
        let answers = join_all(requests.iter().map(|request| self.send(request))).await;
        for answer in answers {
            match answer {
                Ok(objects) => facts.objects.extend(objects),
                Err((kind, reason)) => drop(facts.unread.insert(kind, reason)),
            }
        }
        for secret in facts.objects.iter_mut().filter(|it| kind(it) == "Secret") {
            keep_certificates(secret);
        }
        self.read_instances(&mut facts).await;
        let deployer = Deployer::new(self.kube.clone());
        let OperatorManifests {
            operator,
            namespace,
            ..
        } = &facts.manifests;
        let history = deployer.history(operator, namespace).await;
        facts.deployed = history
            .ok()
            .and_then(|all| Some(all.into_iter().next()?.objects));
        facts.denied = access::denied(&self.dynamic, &self.mapper, &facts.manifests).await;
        Ok(facts)
    }

    /// Reads the objects of the operator's kinds again. Loops are seen in four looks or more.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub async fn look(&self, facts: &mut Facts) {
        let mut objects = Vec::new();
        for kind in instance_kinds(facts) {
            objects.extend(self.list_instances(&kind).await.unwrap_or_default());
        }
        facts.looks.push(Look::of(&objects));
    }

    async fn read_instances(&self, facts: &mut Facts) {
        for kind in instance_kinds(facts) {
            match self.list_instances(&kind).await {
                Ok(objects) => facts.instances.extend(objects),
                Err(error) => {
                    let reason = one_line(&error);
                    facts.unread.insert(kind.kind.clone(), reason);
                }
            }
        }
        facts.looks.push(Look::of(&facts.instances));
    }

    async fn list_instances(&self, kind: &Kind) -> Result<Vec<Value>, RequestError> {
        let options = ListOptions::new().limit(INSTANCES_MAX);
        let list = self.dynamic.resource(kind.clone()).list(&options).await?;
        Ok(list.items.into_iter().map(Value::from).collect())
    }

    /// Returns the request for the inventory of the deployment.
    fn inventory(&self, manifests: &OperatorManifests) -> Request {
        let set = ApplySet::new(&manifests.operator, &manifests.namespace);
        kinds::secret(&manifests.namespace, &set.parent_name())
    }

    async fn send(&self, request: &Request) -> Answer {
        let resource = self.dynamic.resource(request.kind.clone());
        let found = match &request.scope {
            Scope::Object { namespace, name } => {
                let key = ObjectKey {
                    namespace: namespace.clone(),
                    name: name.clone(),
                };
                resource.get(key).await.map(|object| vec![object])
            }
            Scope::List { namespace, fields } => {
                let mut options = ListOptions::new();
                options.namespace.clone_from(namespace);
                options.field_selector = (*fields).to_owned();
                resource.list_all(&options).await.map(|list| list.items)
            }
        };
        let mut found: Vec<Unstructured> = match found {
            Ok(found) => found,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err((request.kind.kind.clone(), one_line(&error))),
        };
        for object in &mut found {
            object.remove(&["metadata", "managedFields"]);
        }
        Ok(found.into_iter().map(Value::from).collect())
    }
}

/// Returns the kinds of the operator's CRDs that are served, each in the version of the build if
/// the cluster serves that one.
fn instance_kinds(facts: &Facts) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for expected in facts.manifests.all("CustomResourceDefinition") {
        let Some(live) = facts.live(expected) else {
            continue;
        };
        if !crate::value::has_condition(live, "Established", "True") {
            continue;
        }
        let versions = |crd: &Value| -> Vec<String> {
            let all = items(crd, "/spec/versions").iter();
            let served = all.filter(|it| it.get("served") != Some(&Value::Bool(false)));
            served.map(|it| text(it, "/name").to_owned()).collect()
        };
        let served = versions(live);
        let known = versions(expected);
        let version = known
            .iter()
            .find(|it| served.contains(it))
            .or(served.first());
        if let Some(version) = version {
            let plural = text(live, "/spec/names/plural");
            let resource = GroupVersionResource::new(text(live, "/spec/group"), &**version, plural);
            let mut kind = Kind::at(&resource, text(live, "/spec/scope") == "Namespaced");
            kind.kind = text(live, "/spec/names/kind").to_owned();
            kinds.push(kind);
        }
    }
    kinds
}

/// Removes everything from a Secret but its certificates: no private key stays in memory.
fn keep_certificates(secret: &mut Value) {
    let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) else {
        return;
    };
    data.retain(|key, _| matches!(key.as_str(), "tls.crt" | "ca.crt"));
}

/// Returns the namespaces of the roles and bindings of the manifests, and that of the operator.
fn role_namespaces(manifests: &OperatorManifests) -> BTreeSet<&str> {
    let roles = manifests.objects.iter();
    let roles = roles.filter(|it| matches!(kind(it), "Role" | "RoleBinding"));
    let mut namespaces: BTreeSet<_> = roles.filter_map(namespace).collect();
    namespaces.insert(&manifests.namespace);
    namespaces
}

/// Returns the Secrets with certificates of webhooks, as the manifests name them.
fn certificate_secrets(manifests: &OperatorManifests) -> BTreeSet<&str> {
    let runtime = manifests.runtime_objects.iter();
    let own = runtime.filter(|it| kind(it) == "Secret").map(name);
    let certificates = manifests.all("Certificate");
    own.chain(certificates.map(|it| text(it, "/spec/secretName")))
        .filter(|name| !name.is_empty())
        .collect()
}
