//! Separates the arguments of `#[opkit::version(...)]` from the arguments of other attributes in
//! the same list.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, parse_quote};

use crate::arguments::Argument;

/// Removes the arguments with these names from a list of arguments. Returns them, and the list
/// without them.
pub(crate) fn take(
    tokens: TokenStream,
    names: &[&str],
) -> syn::Result<(Vec<Argument>, TokenStream)> {
    let mut taken = Vec::new();
    let mut rest: Vec<TokenStream> = Vec::new();
    for segment in split(tokens) {
        let name = match segment.clone().into_iter().next() {
            Some(TokenTree::Ident(name)) => name.to_string(),
            _ => String::new(),
        };
        match names.contains(&name.as_str()) {
            true => taken.push(syn::parse2(segment)?),
            false => rest.push(segment),
        }
    }
    Ok((taken, quote!(#(#rest),*)))
}

/// Removes the arguments with these names from all `#[opkit(...)]` attributes.
pub(super) fn take_from(
    attributes: &mut Vec<Attribute>,
    names: &[&str],
) -> syn::Result<Vec<Argument>> {
    let (mut taken, mut kept) = (Vec::new(), Vec::new());
    for attribute in std::mem::take(attributes) {
        let list = match attribute.meta.require_list() {
            Ok(list) if attribute.path().is_ident("opkit") => list,
            _ => {
                kept.push(attribute);
                continue;
            }
        };
        let (own, rest) = take(list.tokens.clone(), names)?;
        taken.extend(own);
        if !rest.is_empty() {
            kept.push(parse_quote!(#[opkit(#rest)]));
        }
    }
    *attributes = kept;
    crate::arguments::reject_repeats(&taken)?;
    Ok(taken)
}

/// Splits tokens at the commas outside of parentheses.
fn split(tokens: TokenStream) -> Vec<TokenStream> {
    let mut segments = vec![TokenStream::new()];
    for token in tokens {
        match (&token, segments.last_mut()) {
            (TokenTree::Punct(punct), _) if punct.as_char() == ',' => {
                segments.push(TokenStream::new());
            }
            (_, Some(last)) => token.to_tokens(last),
            (_, None) => {}
        }
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}
