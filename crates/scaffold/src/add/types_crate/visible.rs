//! Checks that the rest of the project can use the items that move.

use std::collections::BTreeMap;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Fields, ImplItem, Item, Visibility};

use super::paths;
use super::select::{Modules, Selection};
use crate::Result;
use crate::manifest::TYPES_SOURCE;
use crate::tree::Tree;

/// File and line.
type Place = (String, usize);

/// First uses of identifiers in the code that stays.
#[derive(Debug, Default)]
struct Uses {
    /// Identifiers in paths, which may be names of items.
    items: BTreeMap<String, Place>,
    /// All identifiers, which may be names of fields and methods.
    members: BTreeMap<String, Place>,
}

/// Name that is not public.
#[derive(Clone, Debug)]
struct Private {
    name: String,
    span: Span,
    is_member: bool,
}

/// Fails if a name that is not public would be in another crate than the code that uses it.
pub(super) fn check(modules: &Modules, selection: &Selection, tree: &Tree) -> Result<()> {
    let uses = Uses::of(modules, selection, tree);
    for module in modules.iter() {
        for (at, item) in module.source.file.items.iter().enumerate() {
            if !selection.has(module, at) {
                continue;
            }
            for private in private(item) {
                let uses = match private.is_member {
                    true => &uses.members,
                    false => &uses.items,
                };
                if let Some((path, line)) = uses.get(&private.name) {
                    let reason = format!(
                        "`{}` is private, moves to the crate with the kinds, and is used in {path}:{line}: make it `pub`, or rename one of them",
                        private.name
                    );
                    return Err(module.source.refuse(private.span, reason));
                }
            }
        }
    }
    Ok(())
}

impl Uses {
    fn of(modules: &Modules, selection: &Selection, tree: &Tree) -> Self {
        let mut uses = Self::default();
        for module in modules.iter() {
            for (at, item) in module.source.file.items.iter().enumerate() {
                // The imports of a file that is split are not uses.
                let is_split = selection.files.contains_key(&module.source.path);
                let is_import = matches!(item, Item::Use(_)) && is_split;
                if !selection.has(module, at) && !is_import {
                    uses.add(&module.source.path, item.to_token_stream());
                }
            }
        }
        let is_read =
            |path: &str| modules.of_file(path).is_some() || path.starts_with(TYPES_SOURCE);
        for (path, text) in tree.files() {
            if path.ends_with(".rs")
                && !is_read(path)
                && let Ok(tokens) = text.parse::<TokenStream>()
            {
                uses.add(path, tokens);
            }
        }
        uses
    }

    fn add(&mut self, path: &str, tokens: TokenStream) {
        for found in paths::of(tokens.clone()) {
            let line = found.span.start().line;
            for segment in found.segments {
                let place = || (path.to_owned(), line);
                self.items.entry(segment).or_insert_with(place);
            }
        }
        collect(path, tokens, &mut self.members);
    }
}

fn collect(path: &str, tokens: TokenStream, found: &mut BTreeMap<String, Place>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                let place = || (path.to_owned(), line);
                found.entry(ident.to_string()).or_insert_with(place);
            }
            TokenTree::Group(group) => collect(path, group.stream(), found),
            _ => {}
        }
    }
}

/// Returns the names in an item that are not public.
fn private(item: &Item) -> Vec<Private> {
    let own = |visibility: &Visibility, ident: &syn::Ident| private_name(visibility, ident, false);
    let member =
        |visibility: &Visibility, ident: &syn::Ident| private_name(visibility, ident, true);
    let found: Vec<Option<Private>> = match item {
        Item::Const(it) => vec![own(&it.vis, &it.ident)],
        Item::Enum(it) => vec![own(&it.vis, &it.ident)],
        Item::Fn(it) => vec![own(&it.vis, &it.sig.ident)],
        Item::Mod(it) => vec![own(&it.vis, &it.ident)],
        Item::Static(it) => vec![own(&it.vis, &it.ident)],
        Item::Trait(it) => vec![own(&it.vis, &it.ident)],
        Item::Type(it) => vec![own(&it.vis, &it.ident)],
        Item::Struct(it) => {
            let field = |field: &syn::Field| match &field.ident {
                Some(ident) => member(&field.vis, ident),
                // A field without a name is used with the name of the struct.
                None => own(&field.vis, &it.ident),
            };
            let fields = match &it.fields {
                Fields::Unit => Vec::new(),
                fields => fields.iter().map(field).collect(),
            };
            [vec![own(&it.vis, &it.ident)], fields].concat()
        }
        Item::Impl(it) if it.trait_.is_none() => {
            let items = it.items.iter().map(|item| match item {
                ImplItem::Const(it) => member(&it.vis, &it.ident),
                ImplItem::Fn(it) => member(&it.vis, &it.sig.ident),
                _ => None,
            });
            items.collect()
        }
        // A macro is visible in its crate, unless it is exported.
        Item::Macro(it) => {
            let ident = it.ident.as_ref();
            vec![ident.and_then(|it| own(&Visibility::Inherited, it))]
        }
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

fn private_name(visibility: &Visibility, ident: &syn::Ident, is_member: bool) -> Option<Private> {
    let is_public = matches!(visibility, Visibility::Public(_));
    (!is_public).then(|| Private {
        name: ident.to_string(),
        span: ident.span(),
        is_member,
    })
}
