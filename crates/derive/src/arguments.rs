//! Arguments of `#[opkit::kind(...)]`, `#[opkit::schema]`, `#[opkit::status]` and `#[opkit(...)]`:
//! a table of all arguments with the positions where each argument is allowed, and the parser of a
//! list of arguments.

use proc_macro2::{Delimiter, Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, ExprLit, ExprUnary, Ident, Lit, LitInt, LitStr, Token, UnOp};

use crate::errors::Errors;
use crate::literal::Number;
use crate::nearest::nearest;

/// Set of positions where an argument is allowed. Each position is one bit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u16);

/// Position in `#[opkit::kind(...)]`, or in `#[opkit(...)]` on a struct with `#[opkit::kind(...)]`.
pub(crate) const KIND: Place = Place(1);
/// Position in `#[opkit(...)]` on any struct.
pub(crate) const STRUCT: Place = Place(1 << 1);
/// Position in `#[opkit(...)]` on an enum.
pub(crate) const ENUM: Place = Place(1 << 2);
/// Position in `#[opkit(...)]` on a field of a kind's spec.
pub(crate) const SPEC_FIELD: Place = Place(1 << 3);
/// Position in `#[opkit(...)]` on a field of any struct.
pub(crate) const FIELD: Place = Place(1 << 4);
/// Position in `#[opkit(...)]` on a variant of an enum.
pub(crate) const VARIANT: Place = Place(1 << 5);
/// Position inside `items(...)` or `values(...)` on a field.
pub(crate) const ELEMENT: Place = Place(1 << 6);
/// Position inside `printcolumn(...)`.
pub(crate) const COLUMN: Place = Place(1 << 7);
/// Position inside `scale(...)`.
pub(crate) const SCALE: Place = Place(1 << 8);
/// Position inside `rule(...)`.
pub(crate) const RULE: Place = Place(1 << 9);
/// Position in `#[opkit(...)]` on a struct with one unnamed field.
pub(crate) const NEWTYPE: Place = Place(1 << 10);
/// Position inside `external_docs(...)`.
pub(crate) const DOCS: Place = Place(1 << 11);
/// Position in `#[opkit::schema(...)]` or `#[opkit::status(...)]`.
pub(crate) const SCHEMA: Place = Place(1 << 12);

/// Positions of the arguments that limit a value.
const VALUE: Place = FIELD.and(ELEMENT).and(NEWTYPE);
/// Positions of the arguments that describe a type or a field.
const DESCRIBED: Place = FIELD.and(STRUCT).and(ENUM).and(NEWTYPE);

/// Descriptions of the positions for error messages.
const PLACES: [(Place, &str); 13] = [
    (KIND, "in `#[opkit::kind(...)]`"),
    (STRUCT, "in `#[opkit(...)]` on a struct"),
    (ENUM, "in `#[opkit(...)]` on an enum"),
    (SPEC_FIELD, "on a field of a kind's spec"),
    (FIELD, "on a field"),
    (VARIANT, "on a variant"),
    (ELEMENT, "in `items(...)` or `values(...)` of a field"),
    (COLUMN, "in `printcolumn(...)`"),
    (SCALE, "in `scale(...)`"),
    (RULE, "in `rule(...)`"),
    (NEWTYPE, "on a struct with one unnamed field"),
    (DOCS, "in `external_docs(...)`"),
    (
        SCHEMA,
        "in `#[opkit::schema(...)]` or `#[opkit::status(...)]`",
    ),
];

impl Place {
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// All arguments, each with the positions where it is allowed. A new argument needs a row in this
/// table, and code in the module that handles the position.
const ARGUMENTS: &[(&str, Place)] = &[
    // Definition of the kind.
    ("group", KIND),
    ("version", KIND),
    ("kind", KIND),
    ("plural", KIND),
    ("singular", KIND),
    ("namespaced", KIND),
    ("cluster", KIND),
    ("status", KIND),
    ("shortname", KIND),
    ("category", KIND),
    ("derive", KIND),
    ("scale", KIND),
    ("selectable", KIND),
    ("printcolumn", KIND.and(SPEC_FIELD)),
    ("deprecated", KIND),
    ("unserved", KIND),
    ("optional_spec", KIND),
    ("label", KIND),
    ("annotation", KIND),
    ("object_rule", KIND),
    ("apply", KIND.and(SCHEMA).and(FIELD)),
    ("union", SCHEMA),
    ("spec_replicas_path", SCALE),
    ("status_replicas_path", SCALE),
    ("label_selector_path", SCALE),
    ("path", COLUMN),
    ("condition", COLUMN),
    ("age", COLUMN),
    ("priority", COLUMN),
    ("type_", COLUMN.and(VALUE)),
    ("description", COLUMN.and(DOCS).and(KIND).and(ELEMENT)),
    ("url", DOCS),
    // Types.
    ("at_most_one_of", STRUCT),
    ("exactly_one_of", STRUCT),
    ("at_least_one_of", STRUCT),
    ("title", DESCRIBED),
    ("external_docs", DESCRIBED),
    ("rename_all", ENUM),
    ("other", VARIANT),
    // Fields of types.
    ("rename", FIELD.and(VARIANT)),
    ("required", FIELD),
    ("nullable", FIELD.and(ELEMENT)),
    ("default", FIELD),
    ("example", FIELD.and(NEWTYPE)),
    ("min", VALUE),
    ("max", VALUE),
    ("exclusive_min", VALUE),
    ("exclusive_max", VALUE),
    ("multiple_of", VALUE),
    ("min_length", VALUE),
    ("max_length", VALUE),
    ("pattern", VALUE),
    ("format", VALUE.and(COLUMN)),
    ("enum", VALUE),
    ("min_items", VALUE),
    ("max_items", VALUE),
    ("unique_items", VALUE),
    ("list_map", FIELD.and(NEWTYPE)),
    ("list_set", FIELD.and(NEWTYPE)),
    ("list_atomic", FIELD.and(NEWTYPE)),
    ("items", FIELD.and(NEWTYPE)),
    ("min_properties", VALUE.and(STRUCT)),
    ("max_properties", VALUE.and(STRUCT)),
    ("values", FIELD.and(NEWTYPE)),
    ("map_type", FIELD.and(NEWTYPE)),
    ("struct_type", FIELD.and(STRUCT)),
    ("embedded_resource", FIELD.and(ELEMENT)),
    ("int_or_string", VALUE),
    ("preserve_unknown_fields", VALUE.and(STRUCT)),
    ("schemaless", FIELD.and(NEWTYPE)),
    ("allow_float", FIELD.and(NEWTYPE)),
    ("immutable", FIELD),
    ("rule", STRUCT.and(VALUE).and(ENUM)),
    ("message", RULE),
    ("message_expression", RULE),
    ("reason", RULE),
    ("field", RULE),
    ("optional_old_self", RULE),
];

/// Argument of an attribute, with its value.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) value: Value,
}

/// Value of an argument.
pub(crate) enum Value {
    /// No value, as in `namespaced`.
    None,
    /// Expression after an equals sign, as in `min = 1`.
    Expr(Box<Expr>),
    /// Tokens in parentheses, as in `items(min = 1)`.
    List(TokenStream),
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Value::Expr(Box::new(input.parse()?))
        } else if input.peek(syn::token::Paren) {
            let group: proc_macro2::Group = input.parse()?;
            debug_assert!(group.delimiter() == Delimiter::Parenthesis);
            Value::List(group.stream())
        } else {
            Value::None
        };
        Ok(Self { name, value })
    }
}

impl Argument {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Reports whether the argument is allowed at a position.
    pub(crate) fn is_allowed_at(&self, place: Place) -> bool {
        let mut known = ARGUMENTS.iter();
        known.any(|(name, allowed)| self.is(name) && allowed.overlaps(place))
    }

    /// Returns the error for an argument with a wrong form. `shape` is an example of the right
    /// form.
    pub(crate) fn expected(&self, shape: &str) -> Error {
        Error::new(self.name.span(), format!("write `{shape}`"))
    }

    /// Checks that the argument has no value.
    pub(crate) fn flag(&self) -> syn::Result<()> {
        match self.value {
            Value::None => Ok(()),
            _ => Err(self.expected(&self.name.to_string())),
        }
    }

    /// Returns the string value of the argument.
    pub(crate) fn string(&self) -> syn::Result<LitStr> {
        match &self.value {
            Value::Expr(value) => match &**value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Ok(text.clone()),
                _ => Err(self.expected(&format!("{} = \"...\"", self.name))),
            },
            _ => Err(self.expected(&format!("{} = \"...\"", self.name))),
        }
    }

    /// Returns the integer value of the argument.
    pub(crate) fn integer(&self) -> syn::Result<i64> {
        let Value::Expr(value) = &self.value else {
            return Err(self.expected(&format!("{} = 1", self.name)));
        };
        match integer_of(value)? {
            Some((value, _)) => Ok(value),
            None => Err(self.expected(&format!("{} = 1", self.name))),
        }
    }

    /// Returns the integer value of the argument, which must not be negative.
    pub(crate) fn count(&self) -> syn::Result<i64> {
        match self.integer()? {
            count if count >= 0 => Ok(count),
            _ => Err(Error::new(
                self.name.span(),
                format!("`{}` must not be negative", self.name),
            )),
        }
    }

    /// Returns the number that the argument has as its value.
    pub(crate) fn number(&self) -> syn::Result<Number> {
        let number = match &self.value {
            Value::Expr(value) => Number::of(value)?,
            _ => None,
        };
        number
            .map(|(number, _)| number)
            .ok_or_else(|| self.expected(&format!("{} = 1", self.name)))
    }

    /// Returns the names in the parentheses of the argument, such as `a` and `b` of
    /// `exactly_one_of(a, b)`.
    pub(crate) fn idents(&self) -> syn::Result<Vec<Ident>> {
        let shape = format!("{}(first, second)", self.name);
        let Value::List(tokens) = &self.value else {
            return Err(self.expected(&shape));
        };
        let parser = Punctuated::<Ident, Token![,]>::parse_separated_nonempty_with;
        let parser = |input: ParseStream<'_>| parser(input, Ident::parse_any);
        let idents = parser.parse2(tokens.clone());
        let idents = idents.map_err(|_| self.expected(&shape))?;
        Ok(idents.into_iter().collect())
    }

    /// Returns the literals in the parentheses of the argument, such as those of `enum(1, 2)`.
    pub(crate) fn literals(&self) -> syn::Result<Vec<Expr>> {
        let shape = format!("{}(1, 2)", self.name);
        let Value::List(tokens) = &self.value else {
            return Err(self.expected(&shape));
        };
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        let values = parser.parse2(tokens.clone())?;
        match values.is_empty() {
            true => Err(self.expected(&shape)),
            false => Ok(values.into_iter().collect()),
        }
    }

    /// Returns the two strings in the parentheses of the argument, such as those of
    /// `label("key", "value")`.
    pub(crate) fn pair(&self) -> syn::Result<(LitStr, LitStr)> {
        let shape = format!("{}(\"key\", \"value\")", self.name);
        let Value::List(tokens) = &self.value else {
            return Err(self.expected(&shape));
        };
        let parser = Punctuated::<LitStr, Token![,]>::parse_terminated;
        let texts = parser.parse2(tokens.clone());
        let texts = texts.map_err(|_| self.expected(&shape))?;
        let mut texts = texts.into_iter();
        match (texts.next(), texts.next(), texts.next()) {
            (Some(key), Some(value), None) => Ok((key, value)),
            _ => Err(self.expected(&shape)),
        }
    }

    /// Returns the expression of the argument.
    pub(crate) fn expr(&self) -> syn::Result<&Expr> {
        match &self.value {
            Value::Expr(value) => Ok(value),
            _ => Err(self.expected(&format!("{} = ...", self.name))),
        }
    }

    /// Parses the parentheses of this argument as a list of arguments, which must be allowed at
    /// `place`.
    pub(crate) fn list(&self, place: Place) -> syn::Result<Vec<Self>> {
        match &self.value {
            Value::List(tokens) => parse(tokens.clone(), place),
            _ => Err(self.expected(&format!("{}(...)", self.name))),
        }
    }

    /// Parses the parentheses of this argument as a string, followed by arguments that must be
    /// allowed at `place`. An error shows the example `shape`.
    pub(crate) fn named_list(&self, place: Place, shape: &str) -> syn::Result<(LitStr, Vec<Self>)> {
        let Value::List(tokens) = &self.value else {
            return Err(self.expected(shape));
        };
        let parser = |input: ParseStream<'_>| {
            if !input.peek(LitStr) {
                return Err(self.expected(shape));
            }
            let text: LitStr = input.parse()?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            let arguments = Punctuated::<Self, Token![,]>::parse_terminated(input)?;
            Ok((text, arguments))
        };
        let (text, arguments) = parser.parse2(tokens.clone())?;
        Ok((text, checked(arguments, place)?))
    }
}

/// Returns the value and the span of an expression, if the expression is an integer literal.
pub(crate) fn integer_of(expr: &Expr) -> syn::Result<Option<(i64, Span)>> {
    let (negative, literal): (bool, &LitInt) = match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Int(literal),
            ..
        }) => (false, literal),
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) => match &**expr {
            Expr::Lit(ExprLit {
                lit: Lit::Int(literal),
                ..
            }) => (true, literal),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let sign = if negative { "-" } else { "" };
    let value = format!("{sign}{}", literal.base10_digits());
    match value.parse() {
        Ok(value) => Ok(Some((value, literal.span()))),
        Err(_) => Err(Error::new_spanned(
            expr,
            "Kubernetes has no integers larger than signed 64 bits",
        )),
    }
}

/// Parses a list of arguments, each of which must be allowed at `place`.
pub(crate) fn parse(tokens: TokenStream, place: Place) -> syn::Result<Vec<Argument>> {
    let arguments = Punctuated::<Argument, Token![,]>::parse_terminated.parse2(tokens)?;
    checked(arguments, place)
}

/// Removes all `#[opkit(...)]` from `attributes`, and returns the arguments of the removed
/// attributes.
pub(crate) fn take(attributes: &mut Vec<Attribute>, place: Place) -> syn::Result<Vec<Argument>> {
    let mut arguments = Vec::new();
    let mut errors = Errors::default();
    attributes.retain(|attribute| {
        if !attribute.path().is_ident("opkit") {
            return true;
        }
        let tokens = attribute
            .meta
            .require_list()
            .map(|list| list.tokens.clone());
        match tokens.and_then(|tokens| parse(tokens, place)) {
            Ok(found) => arguments.extend(found),
            Err(error) => errors.push(error),
        }
        false
    });
    errors.take(reject_repeats(&arguments));
    errors.none_or(arguments)
}

/// Arguments that may occur more than once in an attribute.
const REPEATABLE: [&str; 12] = [
    "shortname",
    "category",
    "derive",
    "selectable",
    "printcolumn",
    "label",
    "annotation",
    "rule",
    "object_rule",
    "at_most_one_of",
    "exactly_one_of",
    "at_least_one_of",
];

/// Checks that no argument is repeated unless it is in [`REPEATABLE`].
pub(crate) fn reject_repeats(arguments: &[Argument]) -> syn::Result<()> {
    let mut errors = Errors::default();
    for (at, argument) in arguments.iter().enumerate() {
        let is_repeated = arguments
            .iter()
            .take(at)
            .any(|before| before.name == argument.name);
        if is_repeated && !REPEATABLE.iter().any(|name| argument.is(name)) {
            let message = format!("`{}` is set twice", argument.name);
            errors.push(Error::new(argument.name.span(), message));
        }
    }
    errors.none_or(())
}

fn checked(arguments: Punctuated<Argument, Token![,]>, place: Place) -> syn::Result<Vec<Argument>> {
    let mut errors = Errors::default();
    for argument in &arguments {
        if let Err(error) = check(argument, place) {
            errors.push(error);
        }
    }
    let arguments: Vec<Argument> = arguments.into_iter().collect();
    errors.take(reject_repeats(&arguments));
    errors.none_or(arguments)
}

fn check(argument: &Argument, place: Place) -> syn::Result<()> {
    let name = argument.name.to_string();
    match ARGUMENTS.iter().find(|(known, _)| *known == name) {
        Some((_, allowed)) if allowed.overlaps(place) => Ok(()),
        Some((_, allowed)) => Err(Error::new(
            argument.name.span(),
            format!(
                "`{name}` is not allowed here: write it {}",
                position_text(*allowed)
            ),
        )),
        None => {
            // An argument allowed at this position is preferred over a more similar one of another
            // position.
            let here = ARGUMENTS
                .iter()
                .filter(|(_, allowed)| allowed.overlaps(place));
            let suggestion = nearest(&name, here.map(|(known, _)| *known))
                .or_else(|| nearest(&name, ARGUMENTS.iter().map(|(known, _)| *known)));
            let message = match suggestion {
                Some(known) => format!("unknown argument `{name}`: did you mean `{known}`?"),
                None => format!(
                    "unknown argument `{name}`: expected one of {}",
                    names_allowed_at(place)
                ),
            };
            Err(Error::new(argument.name.span(), message))
        }
    }
}

fn position_text(allowed: Place) -> String {
    let places = PLACES
        .iter()
        .filter(|(place, _)| place.overlaps(allowed))
        .map(|(_, text)| *text);
    places.collect::<Vec<_>>().join(", or ")
}

fn names_allowed_at(place: Place) -> String {
    let arguments = ARGUMENTS
        .iter()
        .filter(|(_, allowed)| allowed.overlaps(place))
        .map(|(argument, _)| *argument)
        // This argument is known only for its message.
        .filter(|argument| *argument != "unique_items");
    arguments.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
