//! Checks of a field's type and of its arguments.

use quote::ToTokens;
use syn::{Attribute, Error, Type};

use super::Role;
use crate::arguments::Argument;
use crate::keywords::Keywords;
use crate::types::{self, Class};

/// Checks that the items of a list with keys can have fields.
pub(crate) fn check_map_keys(keywords: &Keywords, item: Option<&Type>) -> syn::Result<()> {
    let class = item.map_or(Class::Other, types::class);
    match keywords.map_keys.first() {
        Some(key) if class != Class::Other => {
            let message = format!(
                "`list_map` applies to a list of structs, but each item is {}: did you mean `list_set`?",
                class.noun()
            );
            Err(Error::new_spanned(key, message))
        }
        _ => Ok(()),
    }
}

pub(super) fn plain_type(argument: &Argument, ty: &Type) -> Error {
    let ty = ty.to_token_stream().to_string().replace(' ', "");
    let message = format!("`nullable` applies to an `Option`: write `Option<{ty}>`");
    Error::new(argument.name.span(), message)
}

pub(super) fn check_required(
    argument: &Argument,
    class: Class,
    inner: Option<&Type>,
    role: Role,
) -> syn::Result<()> {
    let message = match inner {
        Some(_) => "an `Option` is optional: write its type without `Option`",
        None if role == Role::Status => "fields of a status cannot be required",
        None if !matches!(class, Class::List | Class::Map) => {
            "a field without `Option` and default is already required: remove `required`"
        }
        None => return Ok(()),
    };
    Err(Error::new(argument.name.span(), message))
}

/// Checks that Kubernetes has a type for the Rust type of a field.
pub(crate) fn check_type(ty: &Type, allows_float: bool) -> syn::Result<()> {
    if let Some(float) = types::float_in(ty).filter(|_| !allows_float) {
        let message = "floats are not supported: they are rounded in JSON, so that an object differs \
            from the applied one; use an integer of a smaller unit, `Quantity`, or allow them with \
            `allow_float`";
        return Err(Error::new_spanned(float, message));
    }
    match types::name(types::in_option(ty).unwrap_or(ty)).as_deref() {
        Some("i128" | "u128") => Err(Error::new_spanned(
            ty,
            "Kubernetes has no integers larger than 64 bits: use `i64`",
        )),
        _ => Ok(()),
    }
}

/// Rejects attributes that a user must not write, because opkit generates them itself.
pub(crate) fn reject_foreign(attributes: &[Attribute]) -> syn::Result<()> {
    for attribute in attributes {
        for (name, instead) in [
            (
                "serde",
                "`#[opkit(rename = ...)]` and `#[opkit(default = ...)]`",
            ),
            ("schemars", "the arguments of `#[opkit(...)]`"),
            ("kube", "the arguments of `#[opkit::kind(...)]`"),
        ] {
            if attribute.path().is_ident(name) {
                let message = format!(
                    "opkit generates `#[{name}(...)]`: use {instead}, or write all derives by hand with kube's CustomResource"
                );
                return Err(Error::new_spanned(attribute, message));
            }
        }
    }
    Ok(())
}
