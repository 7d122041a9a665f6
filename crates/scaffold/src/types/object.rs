//! Kinds whose objects have other fields than a spec and a status. `#[opkit::kind]` does not have
//! such kinds, so they become a type with the names of the kind, for a client.

use std::fmt::Write;

use super::arguments::literal;
use super::build::Builder;
use super::kind::Definition;
use super::model::{Body, Field, Item, Ty};
use super::print;

/// Builds the type of the objects. Returns it with its source.
pub(super) fn build(definition: Definition<'_>, builder: &mut Builder) -> (Vec<Item>, String) {
    let kind = definition.kind();
    let api_version = format!("{}/{}", definition.group(), definition.name());
    let what = "the objects have other fields than a spec and a status, so the type is for clients, and has no CRD";
    builder.note("", what);
    let named = |json: &str, name: &str, ty: &str, default: String| Field {
        json: json.to_owned(),
        name: name.to_owned(),
        description: None,
        ty: Ty::Named(ty.to_owned()),
        is_option: false,
        is_required: false,
        default: None,
        arguments: vec![format!("default = {default}")],
    };
    let of_text = |text: &str| format!("{}.to_owned()", literal(text));
    let mut fields = vec![
        named("apiVersion", "api_version", "String", of_text(&api_version)),
        named("kind", "kind", "String", of_text(kind)),
        named(
            "metadata",
            "metadata",
            "ObjectMeta",
            "ObjectMeta::default()".to_owned(),
        ),
    ];
    fields.extend(builder.fields(definition.root, "", kind));
    let item = Item {
        name: kind.to_owned(),
        description: definition.root.description(),
        attribute: Vec::new(),
        arguments: Vec::new(),
        more: Vec::new(),
        body: Body::Struct(fields),
    };
    let source = format!(
        "{}\n{}",
        print::item(&item, "opkit::schema"),
        resource(definition)
    );
    (vec![item], source)
}

/// Returns the imports that the type needs besides those of its fields.
pub(super) fn imports(definition: Definition<'_>) -> &'static [&'static str] {
    match definition.is_namespaced() {
        true => &[
            "std::borrow::Cow",
            "opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
            "opkit::kube::Resource",
            "opkit::kube::core::NamespaceResourceScope",
        ],
        false => &[
            "std::borrow::Cow",
            "opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
            "opkit::kube::Resource",
            "opkit::kube::core::ClusterResourceScope",
        ],
    }
}

/// Returns the implementation of kube's `Resource`.
fn resource(definition: Definition<'_>) -> String {
    let scope = match definition.is_namespaced() {
        true => "NamespaceResourceScope",
        false => "ClusterResourceScope",
    };
    let kind = definition.kind();
    let mut text = format!(
        "impl Resource for {kind} {{\n    type DynamicType = ();\n    type Scope = {scope};\n"
    );
    let api_version = format!("{}/{}", definition.group(), definition.name());
    for (name, value) in [
        ("kind", kind),
        ("group", definition.group()),
        ("version", definition.name()),
        ("api_version", &api_version),
        ("plural", definition.plural()),
    ] {
        let value = literal(value);
        let _ = write!(
            text,
            "\n    fn {name}(_: &()) -> Cow<'_, str> {{\n        {value}.into()\n    }}\n"
        );
    }
    text += "\n    fn meta(&self) -> &ObjectMeta {\n        &self.metadata\n    }\n";
    text +=
        "\n    fn meta_mut(&mut self) -> &mut ObjectMeta {\n        &mut self.metadata\n    }\n}\n";
    text
}
