//! Versions of a kind: the traits that `#[opkit::kind(...)]` and `#[opkit::version(...)]`
//! implement, the CustomResourceDefinition of all versions, and the conversions between them.

mod carried;
mod functions;

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion,
    ServiceReference, WebhookClientConfig, WebhookConversion,
};
pub use opkit_apimachinery::conversion::{Container, FieldNote, Functions, KindVersions, Notes};
use opkit_apimachinery::schema::Schema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::carried::{Carried, Inside, Plain, PlainMut, Target, Unchanged, UnchangedTarget};
pub use self::functions::{of_object, of_spec, of_spec_and_status};
use super::SchemaOf;

/// Kind of `#[opkit::kind(...)]`, which can have other versions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the hub of a version",
    label = "write the kind of an `#[opkit::kind(...)]`, such as `of = super::Robot`"
)]
pub trait Hub {
    /// Spec of the kind.
    type Spec;
    /// Status of the kind; [`NoStatus`] if the kind has no status.
    type Status: Clone + fmt::Debug + Serialize + DeserializeOwned;
    /// Version of the kind.
    const VERSION: &'static str;
    /// Schema of the status, if the kind has a status.
    const STATUS_SCHEMA: Option<SchemaOf>;
}

/// Status of a kind without status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "serde")]
pub struct NoStatus {}

/// Type of `#[opkit::version(...)]`, which can be converted to a type of the hub and back.
pub trait Version: Sized {
    /// Type of the hub.
    type Hub;

    /// Converts a value to the hub.
    fn to_hub(self) -> Self::Hub;

    /// Converts a value of the hub to this version.
    fn from_hub(hub: Self::Hub) -> Self;

    /// Returns the declared conversions of the fields.
    fn notes() -> Notes;
}

/// Kind of `#[opkit::version(...)]`: a version of the kind `H`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a version of `{H}`",
    label = "write `#[opkit::version(of = .., version = \"..\")]` on the spec of `{Self}`"
)]
pub trait SpokeOf<H> {
    /// Name of the version.
    const VERSION: &'static str;

    /// Returns the definition and the conversions of the version.
    fn version() -> SpokeVersion;
}

/// Definition and conversions of a version.
#[derive(Clone, Debug)]
pub struct SpokeVersion {
    /// The version in the CustomResourceDefinition.
    pub definition: CustomResourceDefinitionVersion,
    /// Conversions to and from the hub.
    pub functions: Functions,
}

impl SpokeVersion {
    /// Takes the definition of a version from a CustomResourceDefinition with only this version.
    pub fn new(
        crd: CustomResourceDefinition,
        is_served: bool,
        deprecated: Option<&str>,
        functions: Functions,
    ) -> Self {
        let mut definition = crd.spec.versions.into_iter().next().unwrap_or_default();
        definition.served = is_served;
        definition.deprecated = deprecated.map(|_| true);
        definition.deprecation_warning = deprecated
            .filter(|warning| !warning.is_empty())
            .map(str::to_owned);
        Self {
            definition,
            functions,
        }
    }
}

/// Adds versions to the CustomResourceDefinition of a hub, and sets the version that is stored.
/// Reports the conversions to the caller of [`collect`], with the functions that serve them.
pub fn with_versions(
    mut crd: CustomResourceDefinition,
    storage: &str,
    spokes: Vec<SpokeVersion>,
    serving: Serving,
) -> CustomResourceDefinition {
    COLLECTED.with_borrow_mut(|collected| {
        if let Some(collected) = collected {
            collected.kinds.extend(kind_versions(&crd, &spokes));
            collected.serving = Some(serving);
        }
    });
    let definitions = spokes.into_iter().map(|spoke| spoke.definition);
    crd.spec.versions.extend(definitions);
    for version in &mut crd.spec.versions {
        version.storage = version.name == storage;
    }
    crd
}

fn kind_versions(crd: &CustomResourceDefinition, spokes: &[SpokeVersion]) -> Option<KindVersions> {
    let hub = crd.spec.versions.first()?;
    let (group, kind) = (&crd.spec.group, &crd.spec.names.kind);
    let mut versions = KindVersions::new(group, kind, &hub.name, schema(hub));
    for spoke in spokes {
        let (definition, functions) = (&spoke.definition, spoke.functions);
        versions = versions.spoke(&definition.name, schema(definition), functions);
    }
    Some(versions)
}

/// Returns the parsed schema of a version. A schema that is not valid, which every API server
/// refuses, is replaced by an empty one.
fn schema(version: &CustomResourceDefinitionVersion) -> Arc<Schema> {
    let schema = version.schema.as_ref();
    let schema = schema.and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema = schema.and_then(|schema| serde_json::to_value(schema).ok());
    let parsed = schema.and_then(|schema| Schema::parse(&schema).ok());
    Arc::new(parsed.unwrap_or_default())
}

/// Functions of the crate `operator` that serve conversions. Generated code refers to them, and
/// nothing else does: the linker leaves them out of an operator whose kinds have one version.
pub type Serving = &'static (dyn Any + Send + Sync);

/// Conversions that were reported during [`collect`].
#[derive(Debug, Default)]
pub struct Collected {
    /// Versions of the kinds that have more than one.
    pub kinds: Vec<KindVersions>,
    /// Functions that serve their conversion, if there are such kinds.
    pub serving: Option<Serving>,
}

thread_local! {
    static COLLECTED: RefCell<Option<Collected>> = const { RefCell::new(None) };
}

/// Calls a function that builds CustomResourceDefinitions, and returns its result with the
/// conversions of the kinds. A kind of kube's derive has no conversions.
pub fn collect<T>(build: impl FnOnce() -> T) -> (T, Collected) {
    let outer = COLLECTED.replace(Some(Collected::default()));
    let built = build();
    let collected = COLLECTED.replace(outer);
    (built, collected.unwrap_or_default())
}

/// Service of an operator's webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookService<'a> {
    /// Namespace of the Service.
    pub namespace: &'a str,
    /// Name of the Service.
    pub name: &'a str,
}

/// Path at which an operator serves conversions.
pub const CONVERT_PATH: &str = "/convert";

/// Sets the conversion webhook of a CustomResourceDefinition. There is no `caBundle`, which the
/// operator itself writes.
pub fn set_conversion(crd: &mut CustomResourceDefinition, service: WebhookService<'_>) {
    crd.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            conversion_review_versions: vec!["v1".to_owned()],
            client_config: Some(WebhookClientConfig {
                service: Some(ServiceReference {
                    namespace: service.namespace.to_owned(),
                    name: service.name.to_owned(),
                    path: Some(CONVERT_PATH.to_owned()),
                    port: None,
                }),
                ..Default::default()
            }),
        }),
    });
}

/// Reports whether one of the versions has this name.
pub const fn is_version(mut versions: &[&str], name: &str) -> bool {
    while let [first, rest @ ..] = versions {
        if is_same(first, name) {
            return true;
        }
        versions = rest;
    }
    false
}

/// Reports whether no two versions have the same name.
pub const fn are_distinct(mut versions: &[&str]) -> bool {
    while let [first, rest @ ..] = versions {
        if is_version(rest, first) {
            return false;
        }
        versions = rest;
    }
    true
}

const fn is_same(left: &str, right: &str) -> bool {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    loop {
        match (left, right) {
            ([], []) => return true,
            ([a, left_rest @ ..], [b, right_rest @ ..]) if *a == *b => {
                (left, right) = (left_rest, right_rest);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests;
