//! `#[opkit::schema]` on a struct with one unnamed field: a type with limits, which all fields of
//! the type have.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Fields, parse_quote};

use crate::arguments::{self, ELEMENT, NEWTYPE};
use crate::derives::Derives;
use crate::docs;
use crate::field::{check_map_keys, check_type, info, reject_foreign};
use crate::keywords::Keywords;
use crate::types::{self, Class};

pub(super) fn expand(mut input: DeriveInput) -> syn::Result<TokenStream> {
    reject_foreign(&input.attrs)?;
    if !input.generics.params.is_empty() {
        let message = "a declared type cannot have generic parameters: it has a single schema";
        return Err(Error::new_spanned(&input.generics, message));
    }
    let arguments = arguments::take(&mut input.attrs, NEWTYPE)?;
    let Data::Struct(data) = &mut input.data else {
        return Err(Error::new_spanned(&input.ident, "expected a struct"));
    };
    let field = match &mut data.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first_mut(),
        _ => None,
    };
    let Some(field) = field else {
        let message = "expected a struct with named fields, or with one unnamed field";
        return Err(Error::new_spanned(&input.ident, message));
    };
    reject_foreign(&field.attrs)?;
    if let Some(inner) = types::in_option(&field.ty) {
        let inner = inner.to_token_stream().to_string().replace(' ', "");
        let message = format!("write `{inner}` here, and `Option` on the fields of this type");
        return Err(Error::new_spanned(&field.ty, message));
    }
    let allows_float = arguments.iter().any(|argument| argument.is("allow_float"));
    check_type(&field.ty, allows_float)?;
    let class = types::class(&field.ty);
    let element = types::element(&field.ty).map_or(Class::Other, types::class);
    let (mut own, mut items, mut values) = (
        Keywords::default(),
        Keywords::default(),
        Keywords::default(),
    );
    for argument in &arguments {
        if own.take(argument, class)? {
            continue;
        }
        let elements = match argument.is("items") {
            true => &mut items,
            false if argument.is("values") => &mut values,
            false => {
                argument.flag()?;
                continue;
            }
        };
        for argument in argument.list(ELEMENT)? {
            elements.take(&argument, element)?;
        }
    }
    if own.replaces_schema {
        field.attrs.push(parse_quote!(
            #[schemars(with = "::opkit::__private::serde_json::Value")]
        ));
    }
    let item = types::element(&field.ty);
    check_map_keys(&own, item)?;
    let key_checks = info::key_checks(&own, &field.ty);
    docs::keep_heading(&mut input.attrs);
    let derives = Derives::take(&mut input.attrs)?.tokens(&[]);
    let [own, items, values] = [&own, &items, &values].map(Keywords::tokens);
    Ok(quote! {
        #derives
        #[serde(crate = "::opkit::__private::serde", transparent)]
        #[schemars(
            crate = "::opkit::__private::schemars",
            transform = ::opkit::__private::kinds::Property {
                name: "",
                own: #own,
                items: #items,
                values: #values,
            }
        )]
        #input
        #key_checks
    })
}
