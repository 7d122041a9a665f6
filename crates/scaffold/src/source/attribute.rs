//! Arguments of an attribute, with their positions.

use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use syn::Meta;

/// Argument of an attribute such as `version = "v1"`, `namespaced` or `versions(v1alpha1::Robot)`.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    /// The first word; empty if the argument does not start with one.
    pub(crate) name: String,
    /// The value after `=`, or the content of the parentheses.
    pub(crate) value: Vec<TokenTree>,
    /// The bytes of the whole argument.
    pub(crate) range: Range<usize>,
}

impl Argument {
    /// Returns the value if it is a string.
    pub(crate) fn string(&self) -> Option<String> {
        match self.value.as_slice() {
            [TokenTree::Literal(literal)] => {
                let literal: syn::LitStr = syn::parse_str(&literal.to_string()).ok()?;
                Some(literal.value())
            }
            _ => None,
        }
    }

    /// Returns the value as text without spaces.
    pub(crate) fn text(&self) -> String {
        let tokens: TokenStream = self.value.iter().cloned().collect();
        tokens.to_string().split_whitespace().collect()
    }
}

/// Returns the arguments of an attribute `#[path(...)]`.
pub(crate) fn arguments(attribute: &syn::Attribute) -> Vec<Argument> {
    match &attribute.meta {
        Meta::List(list) => split(list.tokens.clone()),
        _ => Vec::new(),
    }
}

/// Reports whether the last segment of the attribute's path is `name`.
pub(crate) fn is_named(attribute: &syn::Attribute, name: &str) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|segment| segment.ident == name)
}

/// Splits tokens at their commas.
pub(crate) fn split(tokens: TokenStream) -> Vec<Argument> {
    let mut found = Vec::new();
    let mut current: Vec<TokenTree> = Vec::new();
    let comma = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ',');
    for token in tokens {
        match comma(&token) {
            true => found.extend(argument(std::mem::take(&mut current))),
            false => current.push(token),
        }
    }
    found.extend(argument(current));
    found
}

fn argument(tokens: Vec<TokenTree>) -> Option<Argument> {
    let start = tokens.first()?.span().byte_range().start;
    let end = tokens.last()?.span().byte_range().end;
    let name = match tokens.first() {
        Some(TokenTree::Ident(name)) => name.to_string(),
        _ => String::new(),
    };
    let value = match tokens.get(1) {
        Some(TokenTree::Punct(equals)) if equals.as_char() == '=' => {
            tokens.get(2..).unwrap_or_default().to_vec()
        }
        Some(TokenTree::Group(group)) => group.stream().into_iter().collect(),
        _ => Vec::new(),
    };
    Some(Argument {
        name,
        value,
        range: start..end,
    })
}
