//! The kind of a CRD: its definition, its spec and its status.

use serde_json::Value;

use super::arguments::{self, literal};
use super::build::Builder;
use super::model::{Body, Field, Item, Ty};
use super::schema::Schema;
use crate::plural::regular;

/// One version of a CRD.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition<'a> {
    pub(super) crd: Schema<'a>,
    pub(super) version: Schema<'a>,
    /// Schema of the whole object.
    pub(super) root: Schema<'a>,
}

impl<'a> Definition<'a> {
    fn at(self, path: &str) -> Option<&'a Value> {
        self.crd.0.pointer(path)
    }

    fn text(self, path: &str) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn kind(self) -> &'a str {
        self.text("/spec/names/kind")
    }

    pub(super) fn group(self) -> &'a str {
        self.text("/spec/group")
    }

    pub(super) fn name(self) -> &'a str {
        self.version.text("name").unwrap_or_default()
    }

    pub(super) fn plural(self) -> &'a str {
        self.text("/spec/names/plural")
    }

    pub(super) fn is_namespaced(self) -> bool {
        self.text("/spec/scope") != "Cluster"
    }

    fn texts(self, path: &str) -> Vec<&'a str> {
        let list = self.at(path).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// Returns the names of the fields of an object besides those that every object has.
    pub(super) fn fields(self) -> Vec<&'a str> {
        let fields = self.root.properties().into_iter().flatten();
        let fields = fields.map(|(name, _)| name.as_str());
        fields
            .filter(|name| !["apiVersion", "kind", "metadata"].contains(name))
            .collect()
    }

    /// Reports whether the objects have only a spec and a status.
    pub(super) fn has_spec(self) -> bool {
        let fields = self.fields();
        let is_struct = |name: &&str| {
            self.root
                .property(name)
                .is_some_and(super::census::is_struct)
        };
        fields.contains(&"spec")
            && fields.iter().all(|name| ["spec", "status"].contains(name))
            && fields.iter().all(is_struct)
    }

    /// Returns the arguments of `#[opkit::kind(...)]`.
    fn arguments(self, status: Option<&str>) -> Vec<String> {
        let mut all = vec![
            format!("group = {}", literal(self.group())),
            format!("version = {}", literal(self.name())),
        ];
        let kind = self.kind();
        if self.plural() != regular(kind) {
            all.push(format!("plural = {}", literal(self.plural())));
        }
        let singular = self.text("/spec/names/singular");
        if !singular.is_empty() && singular != kind.to_lowercase() {
            all.push(format!("singular = {}", literal(singular)));
        }
        all.push(match self.is_namespaced() {
            true => "namespaced".to_owned(),
            false => "cluster".to_owned(),
        });
        all.extend(status.map(|status| format!("status = {status}")));
        let named = |name: &str, values: Vec<&str>| {
            let values = values.into_iter();
            let values = values.map(|value| format!("{name} = {}", literal(value)));
            values.collect::<Vec<_>>()
        };
        all.extend(named("shortname", self.texts("/spec/names/shortNames")));
        all.extend(named("category", self.texts("/spec/names/categories")));
        if self.version.is("deprecated") {
            all.push(match self.version.text("deprecationWarning") {
                Some(warning) => format!("deprecated = {}", literal(warning)),
                None => "deprecated".to_owned(),
            });
        }
        if self.version.get("served") == Some(&Value::Bool(false)) {
            all.push("unserved".to_owned());
        }
        all
    }

    /// Returns the description of the object, and that of the spec.
    fn descriptions(self) -> (Option<String>, Option<String>) {
        let spec = self.root.property("spec").and_then(Schema::description);
        (self.root.description(), spec)
    }
}

/// Builds the spec with the definition of the kind, and the status. Other types are in the builder.
pub(super) fn build(definition: Definition<'_>, builder: &mut Builder) -> (Item, Option<Item>) {
    let kind = definition.kind();
    let (spec_name, status_name) = (format!("{kind}Spec"), format!("{kind}Status"));
    let status = definition.root.property("status");
    let status = status.map(|schema| self::status(schema, &status_name, builder));
    let root = definition.root;
    let mut arguments = Vec::new();
    columns(definition, builder, &mut arguments);
    metadata(definition, &mut arguments);
    for rule in root.list("x-kubernetes-validations") {
        match arguments::rule("object_rule", rule) {
            Ok(rule) => arguments.push(rule),
            Err(reason) => builder.note("", &format!("{reason} is left out")),
        }
    }
    let mut attribute = definition.arguments(status.as_ref().map(|it| it.name.as_str()));
    scale(definition, builder, &mut attribute);
    let (of_object, of_spec) = definition.descriptions();
    if let (Some(object), true) = (&of_object, of_object != of_spec) {
        attribute.push(format!("description = {}", literal(object)));
    }
    let description = of_spec;
    let (mut fields, mut more) = (Vec::new(), Vec::new());
    if let Some(spec) = root.property("spec") {
        of_struct(spec, ".spec", builder, &mut arguments);
        fields = builder.fields(spec, ".spec", kind);
        let can_be_absent = |field: &Field| !field.is_required || has_default(&field.ty);
        if !root.required().contains("spec") {
            if fields.iter().all(can_be_absent) {
                attribute.push("optional_spec".to_owned());
                more.push("derive(Default)".to_owned());
            } else {
                builder.note(".spec", "the spec is required here, unlike in the CRD");
            }
        }
    }
    let item = Item {
        name: spec_name,
        description,
        attribute,
        arguments,
        more,
        body: Body::Struct(fields),
    };
    (item, status)
}

/// Adds the arguments that a struct without a field has.
fn of_struct(schema: Schema<'_>, path: &str, builder: &mut Builder, arguments: &mut Vec<String>) {
    if let Some(kind) = schema.text("x-kubernetes-map-type") {
        arguments.push(format!("struct_type = {}", literal(kind)));
    }
    arguments::limits(schema, &Ty::Any, arguments);
    for rule in schema.list("x-kubernetes-validations") {
        match arguments::rule("rule", rule) {
            Ok(rule) => arguments.push(rule),
            Err(reason) => builder.note(path, &format!("{reason} is left out")),
        }
    }
    for keyword in ["default", "allOf", "anyOf", "oneOf", "not", "nullable"] {
        if schema.get(keyword).is_some() {
            builder.note(path, &format!("the keyword {keyword} is left out"));
        }
    }
}

/// Returns the status. `#[opkit::status]` has no required fields and no defaults, so that a status
/// with such fields is an ordinary struct.
fn status(schema: Schema<'_>, name: &str, builder: &mut Builder) -> Item {
    let mut arguments = Vec::new();
    of_struct(schema, ".status", builder, &mut arguments);
    let mut fields = builder.fields(schema, ".status", name);
    let is_plain = |field: &Field| !field.is_required && field.default.is_none();
    let is_status = fields.iter().all(is_plain);
    let mut more = Vec::new();
    if is_status {
        for field in &mut fields {
            if field.ty == Ty::Conditions {
                field.is_option = false;
            }
        }
        let has = |json: &str| fields.iter().any(|field| field.json == json);
        if !(has("observedGeneration") && has("conditions")) {
            more.push("allow(deprecated)".to_owned());
        }
    } else if fields
        .iter()
        .all(|it| !it.is_required || has_default(&it.ty))
    {
        more.push("derive(Default)".to_owned());
    }
    Item {
        name: name.to_owned(),
        description: schema.description(),
        attribute: Vec::new(),
        arguments,
        more,
        body: Body::Struct(fields),
    }
}

/// Reports whether a type implements `Default`, as far as this is known without its declaration.
fn has_default(ty: &Ty) -> bool {
    !matches!(ty, Ty::Named(_) | Ty::Time)
}

/// Returns the attribute of a status: not all can have `#[opkit::status]`.
pub(super) fn status_attribute(item: &Item) -> &'static str {
    match is_status(item) {
        true => "opkit::status",
        false => "opkit::schema",
    }
}

/// Reports whether a status is one for `#[opkit::status]`.
pub(super) fn is_status(item: &Item) -> bool {
    let Body::Struct(fields) = &item.body else {
        return false;
    };
    fields
        .iter()
        .all(|field| !field.is_required && field.default.is_none())
}

/// Adds the printer columns.
fn columns(definition: Definition<'_>, builder: &mut Builder, arguments: &mut Vec<String>) {
    for column in definition.version.list("additionalPrinterColumns") {
        let column = Schema(column);
        let text = |key| column.text(key).unwrap_or_default();
        let (name, path, kind) = (text("name"), text("jsonPath"), text("type"));
        let is_age = path == ".metadata.creationTimestamp" && name == "Age" && kind == "date";
        let mut parts = match is_age {
            true => vec!["age".to_owned()],
            false => vec![
                literal(name),
                format!("path = {}", literal(path)),
                format!("type_ = {}", literal(kind)),
            ],
        };
        if !is_age && !has_path(definition.root, path) {
            let what = format!("the printer column {name} is left out: there is no field {path}");
            builder.note("", &what);
            continue;
        }
        if let Some(description) = column.text("description").filter(|it| !it.is_empty()) {
            parts.push(format!("description = {}", literal(description)));
        }
        if let Some(format) = column.text("format").filter(|it| !it.is_empty()) {
            parts.push(format!("format = {}", literal(format)));
        }
        match column.get("priority").and_then(Value::as_u64) {
            None | Some(0) => {}
            Some(priority) => parts.push(format!("priority = {priority}")),
        }
        arguments.push(format!("printcolumn({})", parts.join(", ")));
    }
}

/// Reports whether the fields at the start of a JSON path exist.
pub(super) fn has_path(root: Schema<'_>, path: &str) -> bool {
    let Some(path) = path.strip_prefix('.') else {
        return false;
    };
    let start = path.split(['[', '\\']).next().unwrap_or_default();
    let mut at = root;
    for (depth, name) in start.split('.').enumerate() {
        if name == "metadata" && depth == 0 {
            return true;
        }
        match at.property(name) {
            Some(below) => at = below,
            // The type of the object is not known from here on.
            None => return depth > 0 && at.properties().is_none(),
        }
    }
    true
}

/// Adds labels and annotations of the CRD.
fn metadata(definition: Definition<'_>, arguments: &mut Vec<String>) {
    for (path, name) in [
        ("/metadata/labels", "label"),
        ("/metadata/annotations", "annotation"),
    ] {
        let pairs = definition.at(path).and_then(Value::as_object);
        for (key, value) in pairs.into_iter().flatten() {
            let is_generated = key.starts_with("controller-gen.kubebuilder.io/")
                || key == "kubectl.kubernetes.io/last-applied-configuration"
                || key.starts_with("cert-manager.io/inject-ca-from");
            let value = value.as_str().filter(|_| !is_generated);
            if let Some(value) = value {
                arguments.push(format!("{name}({}, {})", literal(key), literal(value)));
            }
        }
    }
}

/// Adds the subresource `scale` and the selectable fields.
fn scale(definition: Definition<'_>, builder: &mut Builder, attribute: &mut Vec<String>) {
    let version = definition.version;
    let subresources = version.get("subresources").map(Schema);
    let has = |name: &str| subresources.is_some_and(|it| it.0.get(name).is_some());
    match (has("status"), definition.root.property("status").is_some()) {
        (true, false) => builder.note("", "the subresource status is left out: there is no status"),
        (false, true) => builder.note("", "the status is a subresource here, unlike in the CRD"),
        _ => {}
    }
    let scale = subresources.and_then(|it| it.get("scale")).map(Schema);
    if let Some(scale) = scale {
        let paths = [
            ("spec_replicas_path", "specReplicasPath"),
            ("status_replicas_path", "statusReplicasPath"),
            ("label_selector_path", "labelSelectorPath"),
        ];
        let paths = paths.iter().filter_map(|(name, key)| {
            let path = scale.text(key).filter(|path| !path.is_empty())?;
            Some(format!("{name} = {}", literal(path)))
        });
        let paths: Vec<String> = paths.collect();
        attribute.push(format!("scale({})", paths.join(", ")));
    }
    for field in version.list("selectableFields") {
        if let Some(path) = Schema(field).text("jsonPath") {
            attribute.push(format!("selectable = {}", literal(path)));
        }
    }
}
