//! Doc comments, which become descriptions.

use quote::ToTokens;
use syn::{Attribute, LitStr, Meta, parse_quote};

#[cfg(test)]
mod tests;

/// Keeps a heading at the start of a doc comment in the description. schemars would move it to the
/// title.
pub(crate) fn keep_heading(attributes: &mut Vec<Attribute>) {
    let text = text(attributes);
    if text.starts_with('#') {
        attributes.push(parse_quote!(#[schemars(title = "", description = #text)]));
    }
}

/// Returns the text of the doc comments.
fn text(attributes: &[Attribute]) -> String {
    let docs = attributes.iter().filter(|it| it.path().is_ident("doc"));
    let lines = docs.filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(value) => {
            let line = syn::parse2::<LitStr>(value.value.to_token_stream()).ok()?;
            let line = line.value();
            Some(line.strip_prefix(' ').unwrap_or(&line).to_owned())
        }
        _ => None,
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").trim().to_owned()
}
