//! Evaluators: the resources that the objects of a kind use.

use jiff::Timestamp;
use opkit_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::pods;
use crate::admission::resource_list::{self, ResourceList};
use crate::kinds::Kind;
use crate::object;

/// The end of the name of a resource that is limited for the claims of one storage class.
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// The end of the name of the devices of one device class.
const DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// Number of devices that a request for all devices counts as: the largest possible number.
const ALL_DEVICES: i64 = 32;
/// Annotation that names a storage class in place of the field of the spec.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Resources whose objects are not counted.
const IGNORED: &[&str] = &[
    "bindings",
    "componentstatuses",
    "tokenreviews.authentication.k8s.io",
    "selfsubjectreviews.authentication.k8s.io",
    "subjectaccessreviews.authorization.k8s.io",
    "selfsubjectaccessreviews.authorization.k8s.io",
    "localsubjectaccessreviews.authorization.k8s.io",
    "selfsubjectrulesreviews.authorization.k8s.io",
    "events",
    "events.events.k8s.io",
];

/// The way in which the objects of a kind are counted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Evaluator {
    Pods,
    Services,
    /// PersistentVolumeClaims.
    Claims,
    ResourceClaims,
    /// Objects of any other kind, which are only counted. The text is the resource, such as
    /// `deployments.apps`.
    Count(String),
}

impl Evaluator {
    /// Returns the evaluator of a kind, or `None` if quotas do not count its objects.
    pub(crate) fn of(kind: &Kind) -> Option<Self> {
        let resource = kind.group_resource();
        if !kind.namespaced || IGNORED.contains(&resource.as_str()) {
            return None;
        }
        Some(Self::of_resource(&resource))
    }

    pub(crate) fn of_resource(resource: &str) -> Self {
        match resource {
            "pods" => Self::Pods,
            "services" => Self::Services,
            "persistentvolumeclaims" => Self::Claims,
            "resourceclaims.resource.k8s.io" => Self::ResourceClaims,
            resource => Self::Count(resource.to_owned()),
        }
    }

    /// Reports whether a request can change the use of a resource.
    pub(crate) fn handles(&self, subresource: &str, object: &Value, old: Option<&Value>) -> bool {
        let is_whole = subresource.is_empty();
        match (self, old) {
            (Self::Pods, Some(_)) if subresource == "resize" => true,
            (Self::Pods, Some(old)) => {
                is_whole && pods::is_terminating(object) != pods::is_terminating(old)
            }
            (Self::Claims, Some(_)) => is_whole || subresource == "status",
            (Self::Services | Self::ResourceClaims, Some(_)) | (_, None) => is_whole,
            (Self::Count(_), Some(_)) => false,
        }
    }

    /// Reports whether `name` is the name of a resource that these objects use.
    pub(crate) fn counts(&self, name: &str) -> bool {
        match self {
            Self::Pods => pods::counts(name),
            Self::Services => matches!(
                name,
                "count/services" | "services" | "services.nodeports" | "services.loadbalancers"
            ),
            Self::Claims => {
                let is_own = |name| matches!(name, "persistentvolumeclaims" | "requests.storage");
                let by_class = name.split_once(STORAGE_CLASS);
                name == "count/persistentvolumeclaims"
                    || is_own(name)
                    || by_class.is_some_and(|(_, name)| is_own(name))
            }
            Self::ResourceClaims => {
                name == "count/resourceclaims.resource.k8s.io" || name.ends_with(DEVICE_CLASS)
            }
            Self::Count(resource) => {
                name.strip_prefix("count/") == Some(resource)
                    || (has_alias(resource) && name == resource)
            }
        }
    }

    /// Reports whether a quota limits a resource that the object uses, and whether the object
    /// belongs to the scopes of the quota. `hard` is the list of limited resources.
    pub(super) fn matches(&self, quota: &Value, hard: &ResourceList, object: &Value) -> bool {
        hard.keys().any(|name| self.counts(name)) && self.is_in_scopes(quota, object)
    }

    /// Reports whether an object belongs to all scopes of a quota.
    pub(crate) fn is_in_scopes(&self, quota: &Value, object: &Value) -> bool {
        let scopes = object::items(quota, &["spec", "scopes"]).iter();
        let mut scopes = scopes.map(|scope| Scope {
            name: scope.as_str().unwrap_or_default(),
            operator: "Exists",
            values: &[],
        });
        let path = ["spec", "scopeSelector", "matchExpressions"];
        let selectors = object::items(quota, &path).iter();
        let mut selectors = selectors.map(|selector| Scope {
            name: object::text(selector, &["scopeName"]),
            operator: object::text(selector, &["operator"]),
            values: object::items(selector, &["values"]),
        });
        let is_in = |scope: Scope<'_>| match self {
            Self::Pods => pods::is_in_scope(&scope, object),
            Self::Claims => is_claim_in_scope(&scope, object),
            _ => false,
        };
        scopes.all(is_in) && selectors.all(is_in)
    }

    /// Checks that an object sets the resources that a quota limits, if the quota requires that.
    pub(super) fn check_constraints(&self, names: &[&str], object: &Value) -> Result<(), String> {
        match self {
            Self::Pods => pods::check_constraints(names, object),
            _ => Ok(()),
        }
    }

    /// Returns the resources that an object uses.
    pub(crate) fn usage(&self, object: &Value, now: Timestamp) -> ResourceList {
        match self {
            Self::Pods => pods::usage(object, now),
            Self::Services => of_service(object),
            Self::Claims => of_claim(object),
            Self::ResourceClaims => of_resource_claim(object),
            Self::Count(resource) => {
                let mut usage = ResourceList::from([(format!("count/{resource}"), one())]);
                if has_alias(resource) {
                    usage.insert(resource.clone(), one());
                }
                usage
            }
        }
    }
}

/// Reports whether a resource can also be limited without the prefix `count/`.
fn has_alias(resource: &str) -> bool {
    matches!(
        resource,
        "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets"
    )
}

pub(super) fn one() -> Quantity {
    Quantity::from(1)
}

/// A condition of a quota on the objects that the quota counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) name: &'a str,
    pub(super) operator: &'a str,
    pub(super) values: &'a [Value],
}

impl Scope<'_> {
    /// Reports whether the scope selects an object with this value, or with no value.
    pub(super) fn selects(&self, value: Option<&str>) -> bool {
        let is_listed = value.is_some_and(|value| self.values.iter().any(|own| own == value));
        match self.operator {
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    }
}

fn is_claim_in_scope(scope: &Scope<'_>, claim: &Value) -> bool {
    if scope.name != "VolumeAttributesClass" {
        return false;
    }
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &[
            "status",
            "modifyVolumeStatus",
            "targetVolumeAttributesClassName",
        ],
    ];
    let names = paths.map(|path| object::text(claim, path));
    let mut names = names.iter().filter(|name| !name.is_empty()).peekable();
    match names.peek() {
        None => scope.selects(None),
        Some(_) => names.any(|name| scope.selects(Some(name))),
    }
}

fn of_service(service: &Value) -> ResourceList {
    let ports = object::items(service, &["spec", "ports"]);
    let with_node_port = ports
        .iter()
        .filter(|port| object::int(port, &["nodePort"]) != 0);
    let allocates = object::at(service, &["spec", "allocateLoadBalancerNodePorts"]) != false;
    let (node_ports, balancers) = match object::text(service, &["spec", "type"]) {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if allocates => (ports.len(), 1),
        "LoadBalancer" => (with_node_port.count(), 1),
        _ => (0, 0),
    };
    let count = |number: usize| Quantity::from(i64::try_from(number).unwrap_or(i64::MAX));
    let usage = [
        ("count/services", 1),
        ("services", 1),
        ("services.nodeports", node_ports),
        ("services.loadbalancers", balancers),
    ];
    let usage = usage.map(|(name, number)| (name.to_owned(), count(number)));
    ResourceList::from(usage)
}

/// Returns the storage class of a claim.
pub(in crate::admission) fn storage_class(claim: &Value) -> &str {
    let annotation = object::at(claim, &["metadata", "annotations", CLASS_ANNOTATION]);
    match annotation.as_str() {
        Some(class) => class,
        None => object::text(claim, &["spec", "storageClassName"]),
    }
}

/// Reports whether a claim names a storage class, even if the name is empty.
pub(in crate::admission) fn has_storage_class(claim: &Value) -> bool {
    let annotation = object::at(claim, &["metadata", "annotations", CLASS_ANNOTATION]);
    !annotation.is_null() || !object::at(claim, &["spec", "storageClassName"]).is_null()
}

fn of_claim(claim: &Value) -> ResourceList {
    let storage = |path: &[&str]| {
        let list = resource_list::parse(object::at(claim, path));
        list.get("storage").copied()
    };
    let requested = storage(&["spec", "resources", "requests"]).map(|requested| {
        let allocated = storage(&["status", "allocatedResources"]);
        whole(requested.max(allocated.unwrap_or(requested)))
    });
    let mut usage = ResourceList::from([
        ("persistentvolumeclaims".to_owned(), one()),
        ("count/persistentvolumeclaims".to_owned(), one()),
    ]);
    let class = storage_class(claim);
    if !class.is_empty() {
        let name = format!("{class}{STORAGE_CLASS}persistentvolumeclaims");
        usage.insert(name, one());
    }
    if let Some(requested) = requested {
        usage.insert("requests.storage".to_owned(), requested);
        if !class.is_empty() {
            let name = format!("{class}{STORAGE_CLASS}requests.storage");
            usage.insert(name, requested);
        }
    }
    usage
}

/// Rounds a quantity up to whole bytes.
fn whole(quantity: Quantity) -> Quantity {
    match quantity.value().map(Quantity::from) {
        // The sum keeps the notation of `quantity`.
        Some(rounded) if rounded != quantity => quantity + (rounded - quantity),
        _ => quantity,
    }
}

fn of_resource_claim(claim: &Value) -> ResourceList {
    let count = "count/resourceclaims.resource.k8s.io";
    let mut usage = ResourceList::from([(count.to_owned(), one())]);
    let devices = |request: &Value| {
        let number = match object::text(request, &["allocationMode"]) {
            "ExactCount" => object::int(request, &["count"]),
            "All" => ALL_DEVICES,
            _ => 0,
        };
        let class = object::text(request, &["deviceClassName"]);
        (format!("{class}{DEVICE_CLASS}"), Quantity::from(number))
    };
    for request in object::items(claim, &["spec", "devices", "requests"]) {
        let alternatives = object::items(request, &["firstAvailable"]);
        let exact = object::at(request, &["exactly"]);
        // Only one alternative is used: each class counts with its largest number.
        let mut largest = ResourceList::new();
        let requests = match alternatives.is_empty() {
            true => std::slice::from_ref(exact),
            false => alternatives,
        };
        for (name, number) in requests.iter().filter(|one| one.is_object()).map(devices) {
            let own = largest.entry(name).or_default();
            *own = (*own).max(number);
        }
        resource_list::add(&mut usage, &largest);
    }
    usage
}
