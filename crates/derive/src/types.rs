//! The class of a Rust type, such as integer or list, found by the name of the type in the source.
//! The class of an alias or a user-defined type is unknown: [`Class::Other`].

use syn::{GenericArgument, PathArguments, Type};

/// Class of a Rust type, by the JSON value that the type is encoded as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Bool,
    Integer,
    Float,
    String,
    List,
    Map,
    Other,
}

impl Class {
    /// Returns the class as a noun for error messages, such as `a list`.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Bool => "a bool",
            Self::Integer => "an integer",
            Self::Float => "a float",
            Self::String => "a string",
            Self::List => "a list",
            Self::Map => "a map",
            Self::Other => "a user-defined type",
        }
    }
}

const INTEGERS: [&str; 10] = [
    "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize",
];
const LISTS: [&str; 4] = ["Vec", "VecDeque", "BTreeSet", "HashSet"];

/// Returns the class of a type that is not an `Option`.
pub(crate) fn class(ty: &Type) -> Class {
    let Some(name) = name(ty) else {
        return Class::Other;
    };
    match name.as_str() {
        "bool" => Class::Bool,
        "f32" | "f64" => Class::Float,
        "String" => Class::String,
        "BTreeMap" | "HashMap" => Class::Map,
        name if INTEGERS.contains(&name) => Class::Integer,
        name if LISTS.contains(&name) => Class::List,
        _ => Class::Other,
    }
}

/// Returns `T` if the type is `Option<T>`.
pub(crate) fn in_option(ty: &Type) -> Option<&Type> {
    (name(ty)? == "Option").then(|| arguments(ty).into_iter().next_back())?
}

/// Returns the type of the elements of a list, or of the values of a map.
pub(crate) fn element(ty: &Type) -> Option<&Type> {
    match class(ty) {
        Class::List => arguments(ty).into_iter().next(),
        Class::Map => arguments(ty).into_iter().nth(1),
        _ => None,
    }
}

/// Returns the first float in a type, at any depth.
pub(crate) fn float_in(ty: &Type) -> Option<&Type> {
    if class(ty) == Class::Float {
        return Some(ty);
    }
    arguments(ty).into_iter().find_map(float_in)
}

/// Returns the name of a type without its path, such as `Vec` for `std::vec::Vec<T>`.
pub(crate) fn name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) if path.qself.is_none() => {
            Some(path.path.segments.last()?.ident.to_string())
        }
        Type::Group(group) => name(&group.elem),
        Type::Paren(paren) => name(&paren.elem),
        _ => None,
    }
}

/// Returns the generic type arguments of a type, such as `K` and `V` of `BTreeMap<K, V>`.
pub(crate) fn arguments(ty: &Type) -> Vec<&Type> {
    let path = match ty {
        Type::Path(path) => path,
        Type::Group(group) => return arguments(&group.elem),
        Type::Paren(paren) => return arguments(&paren.elem),
        _ => return Vec::new(),
    };
    let last = path.path.segments.last().map(|segment| &segment.arguments);
    let Some(PathArguments::AngleBracketed(arguments)) = last else {
        return Vec::new();
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}
