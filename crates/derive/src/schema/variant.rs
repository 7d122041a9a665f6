//! Variants of an enum with `#[opkit::schema]`, and the choice between an enum of strings and a
//! union.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{Data, DeriveInput, Error, Fields, Type};

use super::{union, unit_enum};
use crate::arguments::{self, Argument, ENUM, VARIANT};
use crate::errors::Errors;
use crate::field::{check_type, reject_foreign};
use crate::keywords::Keywords;
use crate::names;
use crate::types::Class;

/// Variant of an enum.
pub(super) struct Variant {
    pub(super) ident: Ident,
    /// Type of the data, if the variant has data.
    pub(super) data: Option<Type>,
    /// Name that `rename` sets.
    pub(super) rename: Option<String>,
    /// Whether the variant stands for all values that the schema does not list.
    pub(super) is_other: bool,
    /// Text of the doc comments.
    pub(super) description: Option<String>,
}

/// Enum with its parsed attributes.
pub(super) struct Enum {
    pub(super) input: DeriveInput,
    pub(super) variants: Vec<Variant>,
    /// Value of `rename_all`.
    pub(super) case: Option<String>,
    pub(super) own: Keywords,
}

/// Expands `#[opkit::schema]` on an enum. `union` is the argument that names the discriminator.
pub(super) fn expand(mut input: DeriveInput, union: Option<&Argument>) -> syn::Result<TokenStream> {
    reject_foreign(&input.attrs)?;
    if !input.generics.params.is_empty() {
        let message = "a declared type cannot have generic parameters: it has a single schema";
        return Err(Error::new_spanned(&input.generics, message));
    }
    let (mut case, mut own) = (None, Keywords::default());
    for argument in arguments::take(&mut input.attrs, ENUM)? {
        if own.take(&argument, Class::Other)? {
            continue;
        }
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
    let variants: Vec<Variant> = data
        .variants
        .iter_mut()
        .filter_map(|variant| errors.take(Variant::parse(variant)))
        .collect();
    let variants = errors.none_or(variants)?;
    if variants.iter().all(|variant| variant.is_other) {
        let message = "an enum without variants has no values";
        return Err(Error::new_spanned(&input.ident, message));
    }
    let mut others = variants.iter().filter(|variant| variant.is_other);
    if let (Some(_), Some(second)) = (others.next(), others.next()) {
        let message = "only one variant can have `other`";
        return Err(Error::new(second.ident.span(), message));
    }
    let is_union = variants
        .iter()
        .any(|variant| variant.data.is_some() && !variant.is_other);
    let parsed = Enum {
        input,
        variants,
        case,
        own,
    };
    match (is_union, union) {
        (true, union) => union::expand(parsed, union),
        (false, None) => unit_enum::expand(parsed),
        (false, Some(union)) => {
            let message = "no variant has data, so the enum is a string: remove `union`";
            Err(Error::new(union.name.span(), message))
        }
    }
}

impl Variant {
    fn parse(variant: &mut syn::Variant) -> syn::Result<Self> {
        reject_foreign(&variant.attrs)?;
        let (mut rename, mut is_other) = (None, false);
        for argument in arguments::take(&mut variant.attrs, VARIANT)? {
            match argument.is("other") {
                true => {
                    argument.flag()?;
                    is_other = true;
                }
                false => rename = Some(argument.string()?.value()),
            }
        }
        let ident = &variant.ident;
        let data = match &variant.fields {
            Fields::Unit => None,
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                fields.unnamed.first().map(|field| field.ty.clone())
            }
            fields => {
                let message = format!(
                    "`{ident}` has several fields: move them to a struct with `#[opkit::schema]`, and write `{ident}(...)`"
                );
                return Err(Error::new_spanned(fields, message));
            }
        };
        if let Some(data) = &data {
            check_type(data, false)?;
        }
        if is_other && data.is_none() {
            let message =
                format!("a variant with `other` holds the value: write `{ident}(String)`");
            return Err(Error::new(ident.span(), message));
        }
        Ok(Self {
            ident: ident.clone(),
            data,
            rename,
            is_other,
            description: description(&variant.attrs),
        })
    }
}

/// Returns the text of doc comments, with the lines of a paragraph joined as schemars does.
pub(super) fn description(attributes: &[syn::Attribute]) -> Option<String> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|it| it.path().is_ident("doc")) {
        if let syn::Meta::NameValue(value) = &attribute.meta
            && let Ok(text) = syn::parse2::<syn::LitStr>(value.value.to_token_stream())
        {
            lines.push(text.value().trim().to_owned());
        }
    }
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}
