//! Builds the types of a schema.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::arguments::{self, literal};
use super::census::{self, Census};
use super::model::{Body, Field, Item, Ty, Typed, Variant};
use super::names::{self, TypeNames};
use super::schema::Schema;
use super::union::Union;
use super::{default, union};

/// Fields of every object.
const STANDARD: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Position of a value in a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position<'a> {
    /// Path in the object, such as `.spec.issuerRef`.
    pub(super) path: &'a str,
    /// Start of the names of types.
    pub(super) stem: &'a str,
    /// Name of the field in the form of a type.
    pub(super) field: &'a str,
    /// Whether the value is an item of a list, or a value of a map.
    pub(super) is_element: bool,
}

/// Builder of the types of one kind.
#[derive(Debug, Default)]
pub(super) struct Builder {
    pub(super) kind: String,
    pub(super) names: TypeNames,
    pub(super) census: Census,
    /// Names of types by their keys in the census.
    built: BTreeMap<String, String>,
    /// Types that were built, each after the types of its fields.
    pub(super) items: Vec<Item>,
    /// Parts of the schema that the types do not have.
    pub(super) notes: Vec<String>,
}

impl Builder {
    pub(super) fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn note(&mut self, path: &str, what: &str) {
        self.notes.push(match path.is_empty() {
            true => what.to_owned(),
            false => format!("{path}: {what}"),
        });
    }

    /// Returns the fields of a struct. Those of the object are without its standard fields.
    pub(super) fn fields(&mut self, schema: Schema<'_>, path: &str, stem: &str) -> Vec<Field> {
        let required = schema.required();
        let mut used = BTreeSet::new();
        let mut fields = Vec::new();
        for (json, property) in schema.properties().into_iter().flatten() {
            if path.is_empty() && STANDARD.contains(&json.as_str()) {
                continue;
            }
            let name = names::field(json, &mut used);
            let path = format!("{path}.{json}");
            let pascal = names::pascal(json);
            let position = Position {
                path: &path,
                stem,
                field: &pascal,
                is_element: false,
            };
            let is_required = required.contains(json.as_str());
            let mut field = self.field(Schema(property), &position, is_required);
            if names::json_of_field(&name) != *json {
                let rename = format!("rename = {}", literal(json));
                field.arguments.insert(0, rename);
            }
            (field.json, field.name) = (json.clone(), name);
            fields.push(field);
        }
        fields
    }

    fn field(&mut self, schema: Schema<'_>, at: &Position<'_>, is_required: bool) -> Field {
        let Typed {
            ty,
            arguments: limits,
        } = self.value(schema, at);
        let is_nullable = schema.is("nullable");
        let (mut arguments, mut default) = (Vec::new(), None);
        if let Some(value) = schema.get("default") {
            let written = default::attribute(&ty, value, &self.items);
            match written.filter(|_| !is_nullable) {
                Some(written) => {
                    arguments.push(format!("default = {written}"));
                    default = default::expression(&ty, value, &self.items);
                }
                None => self.note(at.path, "the default is left out"),
            }
        }
        let is_option = default.is_none() && (is_nullable || !is_required && !ty.is_collection());
        if is_nullable {
            arguments.push("nullable".to_owned());
            if is_required {
                self.note(at.path, "the field is not required, because it can be null");
            }
        } else if is_required && ty.is_collection() && default.is_none() {
            arguments.push("required".to_owned());
        }
        if ty.has_float() {
            arguments.push("allow_float".to_owned());
        }
        arguments.extend(limits);
        arguments::described(schema, &mut arguments);
        Field {
            json: String::new(),
            name: String::new(),
            description: schema.description(),
            is_required: is_required && !is_nullable && default.is_none(),
            ty,
            is_option,
            default,
            arguments,
        }
    }

    /// Returns the type of a value, and the arguments of its position.
    fn value(&mut self, schema: Schema<'_>, at: &Position<'_>) -> Typed {
        let mut arguments = Vec::new();
        let ty = match schema.type_() {
            _ if schema.is_quantity() => Ty::Quantity,
            _ if schema.is_int_or_string() => Ty::IntOrString,
            Some("boolean") => Ty::Bool,
            Some("integer") => integer(schema, at, &mut arguments),
            Some("number") => number(schema, at, &mut arguments),
            Some("string") => self.text(schema, at, &mut arguments),
            Some("array") => self.list(schema, at, &mut arguments),
            Some("object") => self.object(schema, at, &mut arguments),
            _ => Ty::Any,
        };
        if schema.enum_values().is_none() {
            arguments::values(schema, &mut arguments);
        }
        if let (Ty::Integer { rust: format } | Ty::Float { rust: format }, None, true) =
            (&ty, schema.text("format"), at.is_element)
        {
            let format = match *format {
                "i64" => "int64",
                _ => "double",
            };
            self.note(at.path, &format!("the format {format} is added"));
        }
        let is_own = at.is_element && matches!(&ty, Ty::Named(_)) && census::is_struct(schema);
        if !is_own {
            arguments::limits(schema, &ty, &mut arguments);
        }
        let is_union = census::is_struct(schema)
            .then(|| union::find(schema))
            .flatten();
        let rules = match is_union {
            Some(union) => union.rest.into_iter().cloned().collect(),
            None => schema.list("x-kubernetes-validations").to_vec(),
        };
        self.rules(&rules, at, &mut arguments);
        for keyword in ["allOf", "anyOf", "oneOf", "not"] {
            let is_said =
                schema.is_int_or_string() && keyword == "anyOf" || census::is_union(schema);
            if schema.get(keyword).is_some() && !is_said {
                let what = format!("the keyword {keyword} is left out");
                self.note(at.path, &what);
            }
        }
        Typed { ty, arguments }
    }

    fn rules(&mut self, rules: &[Value], at: &Position<'_>, arguments: &mut Vec<String>) {
        for rule in rules {
            match arguments::rule("rule", rule) {
                Ok(rule) => arguments.push(rule),
                Err(reason) => self.note(at.path, &format!("{reason} is left out")),
            }
        }
    }

    fn text(&mut self, schema: Schema<'_>, at: &Position<'_>, arguments: &mut Vec<String>) -> Ty {
        if schema.enum_values().is_some() {
            return Ty::Named(self.named(schema, at));
        }
        match schema.text("format") {
            Some("date-time") => return Ty::Time,
            // The type has no schema of its own, and a list or map needs one.
            Some("byte") if !at.is_element => {
                arguments.push("type_ = \"string\"".to_owned());
                arguments.push("format = \"byte\"".to_owned());
                return Ty::Bytes;
            }
            Some(format) => arguments.push(format!("format = {}", literal(format))),
            None => {}
        }
        Ty::Text
    }

    fn list(&mut self, schema: Schema<'_>, at: &Position<'_>, arguments: &mut Vec<String>) -> Ty {
        if schema.is_conditions() {
            return Ty::Conditions;
        }
        match schema.text("x-kubernetes-list-type") {
            Some("map") => {
                let keys = schema.texts("x-kubernetes-list-map-keys");
                let keys: Vec<String> = keys.into_iter().map(literal).collect();
                arguments.push(match keys.as_slice() {
                    [key] => format!("list_map = {key}"),
                    keys => format!("list_map = [{}]", keys.join(", ")),
                });
            }
            Some("set") => arguments.push("list_set".to_owned()),
            Some("atomic") => arguments.push("list_atomic".to_owned()),
            _ => {}
        }
        let item = match schema.items() {
            Some(items) => {
                let path = format!("{}[*]", at.path);
                let field = names::singular(at.field);
                self.element(items, at, &path, &field, "items", arguments)
            }
            None => Ty::Any,
        };
        Ty::List(Box::new(item))
    }

    /// Returns the type of the elements of a list or map, and adds their arguments.
    fn element(
        &mut self,
        schema: Schema<'_>,
        at: &Position<'_>,
        path: &str,
        field: &str,
        name: &str,
        arguments: &mut Vec<String>,
    ) -> Ty {
        let position = Position {
            path,
            field,
            is_element: true,
            ..*at
        };
        let typed = self.value(schema, &position);
        let is_nullable = schema.is("nullable");
        let mut typed = match typed.ty.is_collection() && !typed.arguments.is_empty() {
            true => self.newtype(typed, schema, &position),
            false => typed,
        };
        // A type of this module has its own description.
        if let (false, Some(text)) = (matches!(typed.ty, Ty::Named(_)), schema.description()) {
            let description = format!("description = {}", literal(&text));
            typed.arguments.insert(0, description);
        }
        if !typed.arguments.is_empty() {
            arguments.push(format!("{name}({})", typed.arguments.join(", ")));
        }
        match is_nullable {
            true => Ty::Nullable(Box::new(typed.ty)),
            false => typed.ty,
        }
    }

    fn object(&mut self, schema: Schema<'_>, at: &Position<'_>, arguments: &mut Vec<String>) -> Ty {
        let is_named = census::is_struct(schema);
        if let Some(kind) = schema.text("x-kubernetes-map-type") {
            let name = match is_named {
                true => "struct_type",
                false => "map_type",
            };
            if !(is_named && at.is_element) {
                arguments.push(format!("{name} = {}", literal(kind)));
            }
        }
        if is_named {
            return Ty::Named(self.named(schema, at));
        }
        let has_fields = schema.properties().is_some_and(|it| !it.is_empty());
        if schema.is("x-kubernetes-embedded-resource") {
            if has_fields {
                self.note(at.path, "the fields of the embedded object have no types");
            }
            arguments.push("embedded_resource".to_owned());
            return Ty::Any;
        }
        if let Some(values) = schema.values() {
            let path = format!("{}[*]", at.path);
            let field = names::singular(at.field);
            let value = self.element(values, at, &path, &field, "values", arguments);
            return Ty::Map(Box::new(value));
        }
        if schema.has_any_values() {
            return Ty::Map(Box::new(Ty::Any));
        }
        if has_fields {
            self.note(
                at.path,
                "the fields have no types, because unknown fields are kept",
            );
        }
        arguments.push("type_ = \"object\"".to_owned());
        arguments.push("preserve_unknown_fields".to_owned());
        Ty::Any
    }

    /// Returns the name of the type of an object or a string enum, which is built at its first
    /// occurrence.
    fn named(&mut self, schema: Schema<'_>, at: &Position<'_>) -> String {
        let key = census::key(schema, at.is_element).unwrap_or_default();
        if let Some(name) = self.built.get(&key) {
            return name.clone();
        }
        let own = format!("{}{}", at.stem, at.field);
        let name = match self.census.is_shared(&key) {
            true => {
                let shared = format!("{}{}", self.kind, at.field);
                self.names.first(&[shared, own])
            }
            false => self.names.first(&[own]),
        };
        self.built.insert(key.clone(), name.clone());
        let description = self.census.description(&key);
        let item = if schema.enum_values().is_some() {
            enumeration(&name, description, schema)
        } else if let Some(union) = union::find(schema) {
            self.union(&name, description, schema, &union, at)
        } else {
            let mut arguments = Vec::new();
            if at.is_element {
                if let Some(kind) = schema.text("x-kubernetes-map-type") {
                    arguments.push(format!("struct_type = {}", literal(kind)));
                }
                arguments::limits(schema, &Ty::Any, &mut arguments);
            }
            Item {
                description,
                arguments,
                attribute: Vec::new(),
                more: Vec::new(),
                body: Body::Struct(self.fields(schema, at.path, &name)),
                name: name.clone(),
            }
        };
        self.items.push(item);
        name
    }

    fn union(
        &mut self,
        name: &str,
        description: Option<String>,
        schema: Schema<'_>,
        union: &Union<'_>,
        at: &Position<'_>,
    ) -> Item {
        let mut used = BTreeSet::new();
        let mut variants = Vec::new();
        for (value, field) in &union.members {
            let variant = names::variant(value, &mut used);
            let property = field.and_then(|field| schema.property(field));
            let data = property.map(|property| {
                let path = format!("{}.{}", at.path, field.unwrap_or_default());
                let pascal = names::pascal(field.unwrap_or_default());
                let position = Position {
                    path: &path,
                    stem: name,
                    field: &pascal,
                    is_element: false,
                };
                let typed = self.value(property, &position);
                match typed.arguments.is_empty() && !typed.ty.has_float() {
                    true => typed.ty,
                    false => self.newtype(typed, property, &position).ty,
                }
            });
            let json = match union.tag {
                Some(_) => variant.clone(),
                None => names::in_case(&variant, "camelCase"),
            };
            variants.push(Variant {
                arguments: Vec::new(),
                is_renamed: json != *value,
                name: variant,
                json: (*value).to_owned(),
                description: property.and_then(Schema::description),
                data,
            });
        }
        if union.is_reworded {
            let what = "the rules of the alternatives have another form";
            self.note(at.path, what);
        }
        if let Some(tag) = union.tag
            && schema.property(tag).and_then(Schema::description).is_some()
        {
            let path = format!("{}.{tag}", at.path);
            self.note(&path, "the keyword description is left out");
        }
        let tag = union.tag.map(|tag| format!("union = {}", literal(tag)));
        Item {
            name: name.to_owned(),
            description,
            attribute: tag.into_iter().collect(),
            arguments: Vec::new(),
            more: Vec::new(),
            body: Body::Enum(variants),
        }
    }

    /// Returns a type of its own for a value whose arguments its position cannot have.
    fn newtype(&mut self, typed: Typed, schema: Schema<'_>, at: &Position<'_>) -> Typed {
        let name = self.names.first(&[format!("{}{}", at.stem, at.field)]);
        let mut arguments = typed.arguments;
        if typed.ty.has_float() {
            arguments.push("allow_float".to_owned());
        }
        self.items.push(Item {
            name: name.clone(),
            description: schema.description(),
            attribute: Vec::new(),
            arguments,
            more: Vec::new(),
            body: Body::Newtype(typed.ty),
        });
        Typed {
            ty: Ty::Named(name),
            arguments: Vec::new(),
        }
    }
}

fn integer(schema: Schema<'_>, at: &Position<'_>, arguments: &mut Vec<String>) -> Ty {
    let (rust, is_plain) = match schema.text("format") {
        Some("int32") => ("i32", false),
        Some("int64") => ("i64", false),
        _ => ("i64", true),
    };
    if is_plain && !at.is_element {
        arguments.push("type_ = \"integer\"".to_owned());
    }
    Ty::Integer { rust }
}

fn number(schema: Schema<'_>, at: &Position<'_>, arguments: &mut Vec<String>) -> Ty {
    let (rust, is_plain) = match schema.text("format") {
        Some("float") => ("f32", false),
        Some("double") => ("f64", false),
        _ => ("f64", true),
    };
    if is_plain && !at.is_element {
        arguments.push("type_ = \"number\"".to_owned());
    }
    Ty::Float { rust }
}

fn enumeration(name: &str, description: Option<String>, schema: Schema<'_>) -> Item {
    let mut used = BTreeSet::new();
    let values = schema.enum_values().unwrap_or_default().into_iter();
    let named: Vec<(String, String)> = values
        .map(|value| (names::variant(value, &mut used), value.to_owned()))
        .collect();
    let case = names::case(&named);
    let variants = named.into_iter().map(|(name, json)| Variant {
        arguments: Vec::new(),
        is_renamed: case.is_none() && name != json,
        name,
        json,
        description: None,
        data: None,
    });
    let case = case.filter(|case| !case.is_empty());
    Item {
        name: name.to_owned(),
        description,
        attribute: Vec::new(),
        arguments: case
            .map(|case| format!("rename_all = {}", literal(case)))
            .into_iter()
            .collect(),
        more: Vec::new(),
        body: Body::Enum(variants.collect()),
    }
}
