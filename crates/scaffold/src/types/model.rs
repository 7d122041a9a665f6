//! The types of a kind before they are printed: structs, enums, unions and types with limits.

use super::kind::Definition;
use super::{kind, object, print};

/// Type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    Bool,
    /// Integer, with its Rust type.
    Integer {
        rust: &'static str,
    },
    /// Float, with its Rust type.
    Float {
        rust: &'static str,
    },
    Text,
    Time,
    Bytes,
    IntOrString,
    Quantity,
    /// Any JSON value.
    Any,
    Conditions,
    List(Box<Self>),
    Map(Box<Self>),
    /// Value that can be null, in a list or map.
    Nullable(Box<Self>),
    /// Type of this module.
    Named(String),
}

impl Ty {
    /// Returns the Rust type.
    pub(super) fn rust(&self) -> String {
        match self {
            Self::Bool => "bool".to_owned(),
            Self::Integer { rust } | Self::Float { rust } => (*rust).to_owned(),
            Self::Text => "String".to_owned(),
            Self::Time => "Time".to_owned(),
            Self::Bytes => "ByteString".to_owned(),
            Self::IntOrString => "IntOrString".to_owned(),
            Self::Quantity => "Quantity".to_owned(),
            Self::Any => "Value".to_owned(),
            Self::Conditions => "Conditions".to_owned(),
            Self::List(item) => format!("Vec<{}>", item.rust()),
            Self::Map(value) => format!("BTreeMap<String, {}>", value.rust()),
            Self::Nullable(value) => format!("Option<{}>", value.rust()),
            Self::Named(name) => name.clone(),
        }
    }

    pub(super) fn is_collection(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(_))
    }

    pub(super) fn has_float(&self) -> bool {
        match self {
            Self::Float { .. } => true,
            Self::List(inner) | Self::Map(inner) | Self::Nullable(inner) => inner.has_float(),
            _ => false,
        }
    }

    /// Calls a function with this type and the types in it.
    pub(super) fn visit(&self, seen: &mut impl FnMut(&Self)) {
        seen(self);
        match self {
            Self::List(inner) | Self::Map(inner) | Self::Nullable(inner) => inner.visit(seen),
            _ => {}
        }
    }
}

/// Field of a struct.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// JSON name.
    pub(super) json: String,
    /// Rust name.
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) ty: Ty,
    /// Whether the Rust type is an `Option`.
    pub(super) is_option: bool,
    /// Whether the JSON always has the field, so that Rust code has to give a value.
    pub(super) is_required: bool,
    /// Default as a Rust expression, in the form that a struct literal needs.
    pub(super) default: Option<String>,
    /// Arguments of `#[opkit(...)]`.
    pub(super) arguments: Vec<String>,
}

/// Type that is printed.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// Attribute above the type, such as `opkit::schema`.
    pub(super) attribute: Vec<String>,
    /// Arguments of `#[opkit(...)]`.
    pub(super) arguments: Vec<String>,
    /// Other attributes, such as `derive(Default)`.
    pub(super) more: Vec<String>,
    pub(super) body: Body,
}

/// Content of a type.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Struct(Vec<Field>),
    Enum(Vec<Variant>),
    Newtype(Ty),
}

/// Variant of an enum.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) name: String,
    /// JSON value, or the name of the field with the data.
    pub(super) json: String,
    pub(super) description: Option<String>,
    pub(super) data: Option<Ty>,
    /// Whether the JSON value is not the name in the case of the enum.
    pub(super) is_renamed: bool,
    /// Arguments of `#[opkit(...)]` besides the name.
    pub(super) arguments: Vec<String>,
}

/// Value of a schema: its type, and the arguments that its position needs.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) ty: Ty,
    pub(super) arguments: Vec<String>,
}

/// Types of one version of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Model<'a> {
    pub(super) definition: Definition<'a>,
    pub(crate) root: Root,
    /// Types that the root needs, each after the types of its fields.
    pub(super) items: Vec<Item>,
    /// Parts of the CRD that the types do not have.
    pub(crate) notes: Vec<String>,
}

/// Type of the objects.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    /// Spec and status of a kind.
    Kind {
        spec: Box<Item>,
        status: Option<Box<Item>>,
    },
    /// Objects with other fields, as source.
    Object { items: Vec<Item>, code: String },
}

impl Model<'_> {
    /// Returns lines of the module's documentation about parts that the types do not have.
    pub(crate) fn differences(&self) -> String {
        let mut text = String::new();
        if !self.notes.is_empty() {
            text += "//!\n//! Differences from the CRD:\n";
        }
        for note in &self.notes {
            text += &format!("//! - {}\n", print::code(note));
        }
        text
    }

    /// Returns the paths that the types import.
    pub(crate) fn imports(&self) -> Vec<&'static str> {
        let own: Vec<&Item> = match &self.root {
            Root::Kind { spec, status } => {
                std::iter::once(&**spec).chain(status.as_deref()).collect()
            }
            Root::Object { items, .. } => items.iter().collect(),
        };
        let mut paths = match &self.root {
            Root::Kind { .. } => Vec::new(),
            Root::Object { .. } => object::imports(self.definition).to_vec(),
        };
        paths.extend(print::used(own.into_iter().chain(&self.items)));
        paths
    }

    /// Returns the source of the types.
    pub(crate) fn code(&self) -> String {
        let mut code = match &self.root {
            Root::Kind { spec, status } => {
                let mut code = print::item(spec, "opkit::kind");
                if let Some(status) = status {
                    code += "\n";
                    code += &print::item(status, kind::status_attribute(status));
                }
                code
            }
            Root::Object { code, .. } => code.clone(),
        };
        for item in &self.items {
            code.push('\n');
            code += &print::item(item, "opkit::schema");
        }
        code
    }

    /// Adds the other versions of the kind, of which the hub may not be the stored one.
    pub(crate) fn set_versions(&mut self, paths: &[String], storage: Option<&str>) {
        let Root::Kind { spec, .. } = &mut self.root else {
            return;
        };
        if !paths.is_empty() {
            spec.attribute
                .push(format!("versions({})", paths.join(", ")));
            spec.attribute
                .extend(storage.map(|it| format!("storage = {it:?}")));
        }
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.definition.is_namespaced()
    }

    /// Returns the names of the types.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.items.iter().map(|item| item.name.as_str()).collect()
    }
}
