//! `#[opkit::schema]` on an enum with unit variants: generates a string schema with the keyword
//! `enum`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, parse_quote};

use crate::arguments::{self, ENUM, VARIANT};
use crate::derives::Derives;
use crate::errors::Errors;
use crate::field::reject_foreign;
use crate::names;

pub(super) fn expand(mut input: DeriveInput) -> syn::Result<TokenStream> {
    reject_foreign(&input.attrs)?;
    let mut case = None;
    for argument in arguments::take(&mut input.attrs, ENUM)? {
        let name = argument.string()?;
        if !names::CASES.contains(&name.value().as_str()) {
            let message = format!("`rename_all` must be one of {}", names::CASES.join(", "));
            return Err(Error::new_spanned(name, message));
        }
        case = Some(name.value());
    }
    let Data::Enum(data) = &mut input.data else {
        return Err(Error::new_spanned(&input.ident, "expected an enum"));
    };
    let mut errors = Errors::default();
    let mut values: Vec<String> = Vec::new();
    for variant in &mut data.variants {
        if let Some(value) = errors.take(value_of(variant, case.as_deref())) {
            if values.contains(&value) {
                let message = format!("two variants have the JSON value {value:?}");
                errors.push(Error::new_spanned(&variant.ident, message));
            }
            variant.attrs.push(parse_quote!(#[serde(rename = #value)]));
            values.push(value);
        }
    }
    let values = errors.none_or(values)?;
    if values.is_empty() {
        let message = "an enum without variants has no values";
        return Err(Error::new_spanned(&input.ident, message));
    }
    let derives = Derives::take(&mut input.attrs)?;
    let derives = derives.tokens(&["Copy", "PartialEq", "Eq"]);
    Ok(quote! {
        #derives
        #[serde(crate = "::opkit::__private::serde")]
        #[schemars(
            crate = "::opkit::__private::schemars",
            transform = ::opkit::__private::kinds::UnitEnum(&[#(#values),*])
        )]
        #input
    })
}

fn value_of(variant: &mut syn::Variant, case: Option<&str>) -> syn::Result<String> {
    reject_foreign(&variant.attrs)?;
    if !matches!(variant.fields, Fields::Unit) {
        let message = format!(
            "`{}` has fields: `#[opkit::schema]` supports only enums with unit variants, which are strings in Kubernetes; \
             write a struct with an optional field for each alternative",
            variant.ident
        );
        return Err(Error::new_spanned(&variant.fields, message));
    }
    let mut value = names::variant(&variant.ident.to_string(), case.unwrap_or_default());
    for argument in arguments::take(&mut variant.attrs, VARIANT)? {
        value = argument.string()?.value();
    }
    Ok(value)
}
