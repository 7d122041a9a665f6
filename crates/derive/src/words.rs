//! The words of `#[opkit::kind(...)]`, `#[opkit::schema]`, `#[opkit::status]` and `#[opkit(...)]`:
//! one table with the places where each is allowed, and the parser of a list of them.

use proc_macro2::{Delimiter, Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, ExprLit, ExprUnary, Ident, Lit, LitInt, LitStr, Token, UnOp};

use crate::errors::Errors;
use crate::nearest::nearest;

/// A place where words are written. The values are bits, so that a word can have several.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u16);

/// `#[opkit::kind(...)]`, and `#[opkit(...)]` on the struct below it.
pub(crate) const KIND: Place = Place(1);
/// `#[opkit(...)]` on any struct.
pub(crate) const STRUCT: Place = Place(1 << 1);
/// `#[opkit(...)]` on an enum.
pub(crate) const ENUM: Place = Place(1 << 2);
/// A field of a kind's spec.
pub(crate) const SPEC_FIELD: Place = Place(1 << 3);
/// A field of any struct.
pub(crate) const FIELD: Place = Place(1 << 4);
/// A variant of an enum.
pub(crate) const VARIANT: Place = Place(1 << 5);
/// Within `items(...)` or `values(...)` of a field.
pub(crate) const ELEMENT: Place = Place(1 << 6);
/// Within `printcolumn(...)`.
pub(crate) const COLUMN: Place = Place(1 << 7);
/// Within `scale(...)`.
pub(crate) const SCALE: Place = Place(1 << 8);
/// Within `rule(...)`.
pub(crate) const RULE: Place = Place(1 << 9);

/// Returns the name of a place, for messages.
const PLACES: [(Place, &str); 10] = [
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
];

impl Place {
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Every word, and where it may be written. A new word needs a row here and its meaning in the
/// module of its place.
const WORDS: &[(&str, Place)] = &[
    // What the kind is.
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
    ("spec_replicas_path", SCALE),
    ("status_replicas_path", SCALE),
    ("label_selector_path", SCALE),
    ("path", COLUMN),
    ("condition", COLUMN),
    ("age", COLUMN),
    ("priority", COLUMN),
    ("type_", COLUMN),
    ("description", COLUMN),
    // What its fields are.
    ("rename", FIELD.and(VARIANT)),
    ("rename_all", ENUM),
    ("required", FIELD),
    ("nullable", FIELD),
    ("default", FIELD),
    ("min", FIELD.and(ELEMENT)),
    ("max", FIELD.and(ELEMENT)),
    ("min_length", FIELD.and(ELEMENT)),
    ("max_length", FIELD.and(ELEMENT)),
    ("pattern", FIELD.and(ELEMENT)),
    ("format", FIELD.and(ELEMENT)),
    ("min_items", FIELD.and(ELEMENT)),
    ("max_items", FIELD.and(ELEMENT)),
    ("list_map", FIELD),
    ("list_set", FIELD),
    ("list_atomic", FIELD),
    ("items", FIELD),
    ("min_properties", FIELD.and(ELEMENT)),
    ("max_properties", FIELD.and(ELEMENT)),
    ("values", FIELD),
    ("struct_type", FIELD),
    ("embedded_resource", FIELD),
    ("immutable", FIELD),
    ("rule", STRUCT.and(FIELD).and(ELEMENT)),
    ("message", RULE),
    ("reason", RULE),
    ("field", RULE),
];

/// A word, with what was written behind it.
pub(crate) struct Word {
    pub(crate) name: Ident,
    pub(crate) value: Value,
}

/// The value that a word takes.
pub(crate) enum Value {
    /// Nothing.
    None,
    /// `= expression`.
    Expr(Box<Expr>),
    /// `(...)`.
    List(TokenStream),
}

impl Parse for Word {
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

impl Word {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// The error for a word that is written in another way than its meaning needs.
    pub(crate) fn expected(&self, shape: &str) -> Error {
        Error::new(self.name.span(), format!("write `{shape}`"))
    }

    /// Checks that nothing is written behind the word.
    pub(crate) fn flag(&self) -> syn::Result<()> {
        match self.value {
            Value::None => Ok(()),
            _ => Err(self.expected(&self.name.to_string())),
        }
    }

    /// The string behind the word.
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

    /// The integer behind the word.
    pub(crate) fn integer(&self) -> syn::Result<i64> {
        let Value::Expr(value) = &self.value else {
            return Err(self.expected(&format!("{} = 1", self.name)));
        };
        match integer_of(value)? {
            Some((value, _)) => Ok(value),
            None => Err(self.expected(&format!("{} = 1", self.name))),
        }
    }

    /// The integer behind the word, which may not be negative.
    pub(crate) fn count(&self) -> syn::Result<i64> {
        match self.integer()? {
            count if count >= 0 => Ok(count),
            _ => Err(Error::new(
                self.name.span(),
                format!("`{}` may not be negative", self.name),
            )),
        }
    }

    /// The expression behind the word.
    pub(crate) fn expr(&self) -> syn::Result<&Expr> {
        match &self.value {
            Value::Expr(value) => Ok(value),
            _ => Err(self.expected(&format!("{} = ...", self.name))),
        }
    }

    /// The words in the parentheses behind this one, all of `place`.
    pub(crate) fn list(&self, place: Place) -> syn::Result<Vec<Self>> {
        match &self.value {
            Value::List(tokens) => parse(tokens.clone(), place),
            _ => Err(self.expected(&format!("{}(...)", self.name))),
        }
    }

    /// A string and then words of `place` in the parentheses behind this one.
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
            let words = Punctuated::<Self, Token![,]>::parse_terminated(input)?;
            Ok((text, words))
        };
        let (text, words) = parser.parse2(tokens.clone())?;
        Ok((text, checked(words, place)?))
    }
}

/// The integer that an expression is, if it is a literal, with the place of the literal.
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
            "Kubernetes has no integers beyond 64 bits with a sign",
        )),
    }
}

/// The words of a list, each of which must be allowed in `place`.
pub(crate) fn parse(tokens: TokenStream, place: Place) -> syn::Result<Vec<Word>> {
    let words = Punctuated::<Word, Token![,]>::parse_terminated.parse2(tokens)?;
    checked(words, place)
}

/// The words of all `#[opkit(...)]`, which are taken out of `attributes`.
pub(crate) fn take(attributes: &mut Vec<Attribute>, place: Place) -> syn::Result<Vec<Word>> {
    let mut words = Vec::new();
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
            Ok(found) => words.extend(found),
            Err(error) => errors.push(error),
        }
        false
    });
    errors.take(refuse_repeats(&words));
    errors.none_or(words)
}

/// The words that may be written several times.
const REPEATABLE: [&str; 6] = [
    "shortname",
    "category",
    "derive",
    "selectable",
    "printcolumn",
    "rule",
];

/// Checks that no word is written twice that has one meaning.
pub(crate) fn refuse_repeats(words: &[Word]) -> syn::Result<()> {
    let mut errors = Errors::default();
    for (at, word) in words.iter().enumerate() {
        let is_repeated = words.iter().take(at).any(|before| before.name == word.name);
        if is_repeated && !REPEATABLE.iter().any(|name| word.is(name)) {
            let message = format!("`{}` is written twice", word.name);
            errors.push(Error::new(word.name.span(), message));
        }
    }
    errors.none_or(())
}

fn checked(words: Punctuated<Word, Token![,]>, place: Place) -> syn::Result<Vec<Word>> {
    let mut errors = Errors::default();
    for word in &words {
        if let Err(error) = check(word, place) {
            errors.push(error);
        }
    }
    let words: Vec<Word> = words.into_iter().collect();
    errors.take(refuse_repeats(&words));
    errors.none_or(words)
}

fn check(word: &Word, place: Place) -> syn::Result<()> {
    let name = word.name.to_string();
    match WORDS.iter().find(|(known, _)| *known == name) {
        Some((_, allowed)) if allowed.overlaps(place) => Ok(()),
        Some((_, allowed)) => Err(Error::new(
            word.name.span(),
            format!("`{name}` is misplaced: it belongs {}", where_is(*allowed)),
        )),
        None => {
            // A word of this place comes before a word that only looks more alike.
            let here = WORDS.iter().filter(|(_, allowed)| allowed.overlaps(place));
            let suggestion = nearest(&name, here.map(|(known, _)| *known))
                .or_else(|| nearest(&name, WORDS.iter().map(|(known, _)| *known)));
            let message = match suggestion {
                Some(known) => format!("unknown word `{name}`: did you mean `{known}`?"),
                None => format!("unknown word `{name}`: known here are {}", known_in(place)),
            };
            Err(Error::new(word.name.span(), message))
        }
    }
}

fn where_is(allowed: Place) -> String {
    let places = PLACES
        .iter()
        .filter(|(place, _)| place.overlaps(allowed))
        .map(|(_, text)| *text);
    places.collect::<Vec<_>>().join(", or ")
}

fn known_in(place: Place) -> String {
    let words = WORDS
        .iter()
        .filter(|(_, allowed)| allowed.overlaps(place))
        .map(|(word, _)| *word);
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
