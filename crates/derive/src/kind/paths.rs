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
use crate::keywords::Rule;
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
    let rules = definition.object_rules().iter().filter_map(Rule::paths);
    let rules: Vec<TokenStream> = rules
        .flat_map(|(rule, paths)| paths.into_iter().map(move |path| (rule, path)))
        .filter_map(|(rule, path)| errors.take(check_rule(rule, &path, spec, definition)))
        .collect();
    errors.none_or(quote!(#(#checks)* #(#rules)*))
}

/// Checks a path of fields in a rule of the whole object.
fn check_rule(
    rule: &LitStr,
    path: &[String],
    spec: &Struct,
    definition: &Definition,
) -> syn::Result<TokenStream> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["spec" | "status", ..] => {
            let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
            check_fields("object_rule", rule, &path, spec, definition)
        }
        ["apiVersion" | "kind" | "metadata"] | ["metadata", "name" | "generateName", ..] => {
            Ok(TokenStream::new())
        }
        ["metadata", field, ..] => {
            let message = format!(
                "object_rule: rules see only `metadata.name` and `metadata.generateName`, not `{field}`"
            );
            Err(Error::new_spanned(rule, message))
        }
        path => {
            let field = path.first().copied().unwrap_or_default();
            let message = format!(
                "object_rule: an object has no field `{field}`; it has apiVersion, kind, metadata, spec, status"
            );
            Err(Error::new_spanned(rule, message))
        }
    }
}

fn check(
    what: &str,
    path: &LitStr,
    spec: &Struct,
    definition: &Definition,
) -> syn::Result<TokenStream> {
    let fields = jsonpath::leading_fields(&path.value());
    check_fields(what, path, &fields, spec, definition)
}

/// Checks the fields of a path from the root of the object.
fn check_fields(
    what: &str,
    path: &LitStr,
    fields: &[String],
    spec: &Struct,
    definition: &Definition,
) -> syn::Result<TokenStream> {
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
