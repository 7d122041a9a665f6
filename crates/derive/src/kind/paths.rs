//! Checks of the paths in the definition of a kind: printer columns, `scale` and selectable fields.
//!
//! The macro itself checks the fields of the spec. The fields of the status and of nested types are
//! checked when the generated constants are evaluated, because the macro does not see these types.

use opkit_syntax::jsonpath;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, LitStr};

use super::definition::Definition;
use crate::errors::Errors;
use crate::field::info::path_check;
use crate::schema::Struct;

/// Checks all paths, and generates the checks that need other types.
pub(super) fn checks(spec: &Struct, definition: &Definition) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let columns = definition.columns.iter().filter_map(|column| {
        let (title, path) = column.written_path()?;
        Some((format!("printcolumn {title:?}"), path))
    });
    let scale = definition.scale.iter().flat_map(|scale| scale.paths());
    let scale = scale.map(|(argument, path)| (argument.to_owned(), path));
    let selectable = definition.selectable.iter();
    let selectable = selectable.map(|path| ("selectable".to_owned(), path));
    let checks: Vec<TokenStream> = columns
        .chain(scale)
        .chain(selectable)
        .filter_map(|(what, path)| errors.take(check(&what, path, spec, definition)))
        .collect();
    errors.none_or(quote!(#(#checks)*))
}

fn check(
    what: &str,
    path: &LitStr,
    spec: &Struct,
    definition: &Definition,
) -> syn::Result<TokenStream> {
    let fields = jsonpath::leading_fields(&path.value());
    let Some((root, fields)) = fields.split_first() else {
        return Ok(TokenStream::new());
    };
    match (root.as_str(), &definition.status) {
        ("metadata", _) => Ok(TokenStream::new()),
        (_, _) if fields.is_empty() => Ok(TokenStream::new()),
        ("status", Some(status)) => Ok(path_check(path, what, status, fields)),
        ("status", None) => {
            let message = format!("{what}: the kind has no status: add `status = ...`");
            Err(Error::new_spanned(path, message))
        }
        (_, _) => {
            spec.scope().check_json(what, path, fields)?;
            Ok(path_check(path, what, spec.ident(), fields))
        }
    }
}
