//! `#[opkit::schema]` on an enum without data: generates a string schema with the keyword `enum`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, Error, parse_quote};

use super::variant::Enum;
use crate::derives::Derives;
use crate::docs;
use crate::errors::Errors;
use crate::names;

pub(super) fn expand(parsed: Enum) -> syn::Result<TokenStream> {
    let Enum {
        mut input,
        variants,
        case,
        own,
    } = parsed;
    let mut errors = Errors::default();
    let mut values: Vec<String> = Vec::new();
    let Data::Enum(data) = &mut input.data else {
        return Err(Error::new_spanned(&input.ident, "expected an enum"));
    };
    for (variant, written) in variants.iter().zip(&mut data.variants) {
        if variant.is_other {
            // serde tries this variant after the others, and so reads any string with it.
            written.attrs.push(parse_quote!(#[serde(untagged)]));
            continue;
        }
        let name = variant.ident.to_string();
        let value = names::variant(&name, case.as_deref().unwrap_or_default());
        let value = variant.rename.clone().unwrap_or(value);
        if values.contains(&value) {
            let message = format!("two variants have the JSON value {value:?}");
            errors.push(Error::new(variant.ident.span(), message));
        }
        written.attrs.push(parse_quote!(#[serde(rename = #value)]));
        values.push(value);
    }
    let values = errors.none_or(values)?;
    let has_other = variants.iter().any(|variant| variant.is_other);
    let more: &[&str] = match has_other {
        true => &["PartialEq", "Eq"],
        false => &["Copy", "PartialEq", "Eq"],
    };
    docs::keep_heading(&mut input.attrs);
    let derives = Derives::take(&mut input.attrs)?.tokens(more);
    let own = own.tokens();
    Ok(quote! {
        #derives
        #[serde(crate = "::opkit::__private::serde")]
        #[schemars(
            crate = "::opkit::__private::schemars",
            transform = ::opkit::__private::kinds::UnitEnum { values: &[#(#values),*], own: #own }
        )]
        #input
    })
}
