//! The types of a kind before they are printed: structs, enums, unions and types with limits.

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
pub(super) struct Item {
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
}

/// Value of a schema: its type, and the arguments that its position needs.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub(super) ty: Ty,
    pub(super) arguments: Vec<String>,
}
