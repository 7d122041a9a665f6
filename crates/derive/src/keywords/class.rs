//! Checks that an argument is valid for the type of its field.

use syn::{Error, Expr, ExprLit, Lit};

use super::limits::LIMITS;
use crate::arguments::Argument;
use crate::literal::Number;
use crate::types::Class;

/// Arguments that are not limits, each with the classes of types on which the argument is allowed
/// and a noun for these classes.
const CLASSES: [(&str, &[Class], &str); 14] = [
    ("pattern", &[Class::String], "a string"),
    (
        "format",
        &[Class::String, Class::Integer, Class::Float],
        "a string or a number",
    ),
    ("list_map", &[Class::List], "a list"),
    ("list_set", &[Class::List], "a list"),
    ("list_atomic", &[Class::List], "a list"),
    ("unique_items", &[Class::List], "a list"),
    ("items", &[Class::List], "a list"),
    ("values", &[Class::Map], "a map"),
    ("map_type", &[Class::Map], "a map"),
    ("struct_type", &[], "a struct"),
    ("embedded_resource", &[Class::Map], "an object"),
    ("preserve_unknown_fields", &[Class::Map], "an object"),
    ("int_or_string", &[], "a user-defined type"),
    (
        "allow_float",
        &[Class::Float, Class::List, Class::Map],
        "a float",
    ),
];

/// Checks that an argument is allowed on a field with a type of this class. The argument is not
/// checked if the type is user-defined, because the class is then unknown.
pub(super) fn check(argument: &Argument, class: Class) -> syn::Result<()> {
    if class == Class::Other {
        return Ok(());
    }
    let limit = LIMITS.iter().find(|limit| argument.is(limit.name));
    let other = CLASSES.iter().find(|(name, ..)| argument.is(name));
    let (classes, noun) = match (limit, other) {
        (Some(limit), _) => (limit.classes, limit.noun),
        (None, Some((_, classes, noun))) => (*classes, *noun),
        (None, None) => return Ok(()),
    };
    if classes.contains(&class) {
        return Ok(());
    }
    let name = argument.name.to_string();
    let hint = match hint(&name, class) {
        Some(other) => format!(": did you mean `{other}`?"),
        None => String::new(),
    };
    let message = format!(
        "`{name}` applies to {noun}, but this field is {}{hint}",
        class.noun()
    );
    Err(Error::new(argument.name.span(), message))
}

/// Returns the argument with the same meaning for a type of this class.
fn hint(name: &str, class: Class) -> Option<&'static str> {
    match (name, class) {
        ("struct_type", Class::Map) => return Some("map_type"),
        ("values", Class::List) => return Some("items"),
        ("items", Class::Map) => return Some("values"),
        _ => {}
    }
    let bound = name.split_once('_').map_or(name, |(bound, _)| bound);
    let other = LIMITS.iter().find(|limit| {
        let is_same = limit.name == bound || limit.name.starts_with(&format!("{bound}_"));
        limit.classes.contains(&class) && is_same
    });
    other.map(|limit| limit.name)
}

/// Checks that a literal can be a value of a type of this class. `what` names the literal in the
/// error.
pub(crate) fn check_literal(what: &str, expr: &Expr, class: Class) -> syn::Result<()> {
    let literal = match expr {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Str(_) => Some(Class::String),
            Lit::Bool(_) => Some(Class::Bool),
            Lit::Int(_) => Some(Class::Integer),
            Lit::Float(_) => Some(Class::Float),
            _ => None,
        },
        Expr::Array(_) => Some(Class::List),
        expr => match Number::of(expr)? {
            Some((number, _)) if number.is_integer() => Some(Class::Integer),
            Some(_) => Some(Class::Float),
            None => None,
        },
    };
    let Some(literal) = literal else {
        return Ok(());
    };
    if class == Class::Other || class == literal {
        return Ok(());
    }
    let message = format!(
        "{what} is {}, but this field is {}",
        literal.noun(),
        class.noun()
    );
    Err(Error::new_spanned(expr, message))
}
