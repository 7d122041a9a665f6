//! Derive macro `TypedClient`: generates a marker type for the allowed verbs, and a type alias for
//! the client.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, LitStr, Meta, Token};

/// Names of the verbs, each with the marker trait that allows the verb.
const VERBS: [(&str, &str); 8] = [
    ("get", "Get"),
    ("list", "List"),
    ("watch", "Watch"),
    ("create", "Create"),
    ("update", "Update"),
    ("patch", "Patch"),
    ("delete", "Delete"),
    ("deletecollection", "DeleteCollection"),
];

/// Arguments of `#[client(...)]`.
#[derive(Default)]
struct Options {
    verbs: Option<Vec<Ident>>,
    skip_verbs: Vec<Ident>,
    no_status: bool,
    no_scale: bool,
    name: Option<LitStr>,
}

/// Arguments of `#[kube(...)]` on which the typed client depends.
#[derive(Default)]
struct Kube {
    kind: Option<LitStr>,
    status: bool,
    scale: bool,
}

/// Generates the typed client of the kind whose spec is `input`.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream, Error> {
    let (options, kube) = (options(input)?, kube(input));
    let Some(kind) = kube.kind else {
        let is_above = input.attrs.iter().any(|it| {
            let segments = &it.path().segments;
            segments.last().is_some_and(|last| last.ident == "kind")
        });
        let message = match is_above {
            true => {
                "write `#[derive(TypedClient)]` below `#[opkit::kind(...)]`, which sets its kind"
            }
            false => {
                "write `#[derive(TypedClient)]` below `#[opkit::kind(...)]`, or beside kube's CustomResource with `#[kube(kind = \"...\")]`"
            }
        };
        return Err(Error::new_spanned(&input.ident, message));
    };
    let kind = Ident::new(&kind.value(), kind.span());
    let client = match &options.name {
        Some(name) => Ident::new(&name.value(), name.span()),
        None => format_ident!("{kind}Client"),
    };
    let marker = format_ident!("{client}Verbs");
    let mut traits: Vec<Ident> = match &options.verbs {
        Some(verbs) => verbs.iter().filter_map(trait_of).collect(),
        None => VERBS.iter().map(|(_, it)| format_ident!("{it}")).collect(),
    };
    let skipped: Vec<Ident> = options.skip_verbs.iter().filter_map(trait_of).collect();
    traits.retain(|verb| !skipped.contains(verb));
    if kube.status && !options.no_status {
        traits.push(format_ident!("Status"));
    }
    if kube.scale && !options.no_scale {
        traits.push(format_ident!("Scale"));
    }
    let vis = &input.vis;
    let (client_doc, marker_doc) = (
        format!("Client for objects of the kind [`{kind}`]."),
        format!("Verbs of [`{client}`]."),
    );
    Ok(quote! {
        #[doc = #marker_doc]
        #[derive(::core::fmt::Debug, ::core::clone::Clone, ::core::marker::Copy)]
        #vis struct #marker;
        #(impl ::opkit::__private::verbs::#traits for #marker {})*
        #[doc = #client_doc]
        #vis type #client = ::opkit::__private::TypedClient<#kind, #marker>;
    })
}

fn trait_of(verb: &Ident) -> Option<Ident> {
    let (_, name) = VERBS.iter().find(|(known, _)| verb == known)?;
    Some(Ident::new(name, verb.span()))
}

fn options(input: &DeriveInput) -> Result<Options, Error> {
    let mut options = Options::default();
    for attribute in input.attrs.iter().filter(|it| it.path().is_ident("client")) {
        attribute.parse_nested_meta(|meta| {
            let is_skipped = meta.path.is_ident("skip_verbs");
            if is_skipped || meta.path.is_ident("verbs") {
                let content;
                syn::parenthesized!(content in meta.input);
                let verbs = Punctuated::<Ident, Token![,]>::parse_terminated(&content)?;
                check_verbs(&verbs)?;
                match is_skipped {
                    true => options.skip_verbs = verbs.into_iter().collect(),
                    false => options.verbs = Some(verbs.into_iter().collect()),
                }
                if options.verbs.is_some() && !options.skip_verbs.is_empty() {
                    let message = "write `verbs(...)` or `skip_verbs(...)`, not both";
                    return Err(Error::new(meta.path.span(), message));
                }
                return Ok(());
            }
            if meta.path.is_ident("no_status") {
                options.no_status = true;
                return Ok(());
            }
            if meta.path.is_ident("no_scale") {
                options.no_scale = true;
                return Ok(());
            }
            if meta.path.is_ident("name") {
                let name: LitStr = meta.value()?.parse()?;
                if syn::parse_str::<Ident>(&name.value()).is_err() {
                    let message = format!("{:?} is not a valid type name", name.value());
                    return Err(Error::new_spanned(name, message));
                }
                options.name = Some(name);
                return Ok(());
            }
            let message =
                "#[client(...)] takes `verbs(...)`, `skip_verbs(...)`, `no_status`, `no_scale` and `name = \"...\"`";
            Err(Error::new(meta.path.span(), message))
        })?;
    }
    Ok(options)
}

fn check_verbs(verbs: &Punctuated<Ident, Token![,]>) -> Result<(), Error> {
    match verbs.iter().find(|verb| trait_of(verb).is_none()) {
        None => Ok(()),
        Some(verb) => {
            let known: Vec<&str> = VERBS.iter().map(|(verb, _)| *verb).collect();
            let known = known.join(", ");
            let message = format!("`{verb}` is not a Kubernetes verb: expected one of {known}");
            Err(Error::new_spanned(verb, message))
        }
    }
}

/// Searches `#[kube(...)]` for `kind`, `status` and `scale`. Other arguments are skipped without
/// parsing, because kube validates them. In the tokens, an equals sign follows `kind` and `status`,
/// and a group follows `scale`.
fn kube(input: &DeriveInput) -> Kube {
    let mut found = Kube::default();
    for attribute in input.attrs.iter().filter(|it| it.path().is_ident("kube")) {
        let Meta::List(list) = &attribute.meta else {
            continue;
        };
        let tokens: Vec<TokenTree> = list.tokens.clone().into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            // An identifier starts an argument at the beginning and after a comma; elsewhere it is
            // a value.
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let begins = match before {
                None => true,
                Some(TokenTree::Punct(punct)) => punct.as_char() == ',',
                Some(_) => false,
            };
            let TokenTree::Ident(ident) = token else {
                continue;
            };
            if !begins {
                continue;
            }
            let value = tokens.get(at.saturating_add(2));
            if ident == "kind" {
                let value = value.map(|value| syn::parse2(TokenStream::from(value.clone())));
                found.kind = value.and_then(Result::ok);
            } else if ident == "status" {
                found.status = true;
            } else if ident == "scale" {
                found.scale = true;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
