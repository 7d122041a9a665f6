//! Conversions between a struct of a version and the struct of the hub.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::Version;
use super::declared::{Declared, DeclaredField, Fate, value};
use crate::names;
use crate::types::{self, Class};

/// Generates the implementation of `Version` for a struct.
pub(super) fn expand(version: &Version, ident: &Ident, declared: &Declared) -> TokenStream {
    let hub = version.hub();
    // The compiler reports missing fields at the type of the hub.
    let span = syn::spanned::Spanned::span(&version.of);
    let to_hub = to_hub(declared, span);
    let from_hub = from_hub(declared, span);
    let notes = notes(declared);
    quote! {
        #[automatically_derived]
        impl ::opkit::__private::kinds::versions::Version for #ident {
            type Hub = #hub;

            #[allow(unused_imports, unused_mut, clippy::useless_conversion)]
            fn to_hub(self) -> Self::Hub {
                use ::opkit::__private::kinds::versions::{PlainMut as _, Unchanged as _};
                type OpkitHub = #hub;
                #to_hub
            }

            #[allow(unused_imports, clippy::useless_conversion)]
            fn from_hub(hub: Self::Hub) -> Self {
                use ::opkit::__private::kinds::versions::{Plain as _, UnchangedTarget as _};
                type OpkitHub = #hub;
                #from_hub
            }

            fn notes() -> ::opkit::__private::kinds::versions::Notes {
                #[allow(unused_imports)]
                use ::opkit::__private::kinds::versions::UnchangedTarget as _;
                #notes
            }
        }
    }
}

fn to_hub(declared: &Declared, span: Span) -> TokenStream {
    let own: Vec<_> = declared.fields.iter().map(|field| &field.ident).collect();
    let variables: Vec<_> = declared
        .fields
        .iter()
        .map(|field| field.located(variable("own", &field.ident)))
        .collect();
    let (mut before, mut fields, mut after) = (Vec::new(), Vec::new(), Vec::new());
    // Fields of the hub into which others have moved, and which are created first.
    let mut roots: BTreeSet<String> = BTreeSet::new();
    for (field, variable) in declared.fields.iter().zip(&variables) {
        match &field.fate {
            Fate::At(path) => {
                let value = field.converted_to_hub(&quote!(#variable));
                match path.as_slice() {
                    [hub] => fields.push(quote_spanned!(field.span()=> #hub: #value)),
                    [root, ..] => {
                        if roots.insert(root.to_string()) {
                            fields.extend(root_field(declared, root));
                        }
                        let set = assignment(path, &value, field.span());
                        // An `Option` that is empty must not create the objects around it.
                        after.push(match types::in_option(&field.ty) {
                            Some(_) => quote!(if #variable.is_some() { #set }),
                            None => set,
                        });
                    }
                    [] => {}
                }
            }
            Fate::Split { hub, to_hub, .. } => {
                let parts: Vec<_> = hub
                    .iter()
                    .map(|ident| self::variable("part", ident))
                    .collect();
                let span = field.span();
                before.push(quote_spanned!(span=> let (#(#parts),*) = #to_hub(#variable);));
                fields.extend(
                    hub.iter()
                        .zip(&parts)
                        .map(|(hub, part)| quote!(#hub: #part)),
                );
            }
            Fate::Removed(_) => before.push(quote!(let _ = #variable;)),
        }
    }
    for added in &declared.added {
        let value = added_value(added.value.as_ref());
        match added.path.as_slice() {
            [hub] if !roots.contains(&hub.to_string()) => fields.push(quote!(#hub: #value)),
            // The value of such a field is the one that the others moved into.
            [_] => {}
            path => {
                if let Some(root) = path.first()
                    && roots.insert(root.to_string())
                {
                    fields.extend(root_field(declared, root));
                }
                if added.value.is_some() {
                    after.push(assignment(path, &value, Span::call_site()));
                }
            }
        }
    }
    let literal = quote_spanned!(span=> OpkitHub { #(#fields),* });
    quote! {
        let Self { #(#own: #variables),* } = self;
        #(#before)*
        let mut hub = #literal;
        #(#after)*
        hub
    }
}

fn from_hub(declared: &Declared, span: Span) -> TokenStream {
    // The names of the hub's fields, each once.
    let mut names: Vec<&Ident> = Vec::new();
    let mut add = |ident| {
        if !names.contains(&ident) {
            names.push(ident);
        }
    };
    let mut inside: BTreeSet<Vec<String>> = BTreeSet::new();
    let (mut opened, mut fields) = (Vec::new(), Vec::new());
    for field in &declared.fields {
        let ident = &field.ident;
        let value = match &field.fate {
            Fate::At(path) => {
                path.first().into_iter().for_each(&mut add);
                open(path, &mut inside, &mut opened);
                let place = match path.as_slice() {
                    [name] => field.located(variable("hub", name)).to_token_stream(),
                    path => place(path),
                };
                field.converted_from_hub(&place)
            }
            Fate::Split { hub, from_hub, .. } => {
                hub.iter().for_each(&mut add);
                let parts = hub.iter().map(|ident| variable("hub", ident));
                quote_spanned!(field.span()=> #from_hub(#(#parts),*))
            }
            Fate::Removed(Some(expr)) => value(expr),
            Fate::Removed(None) if field.has_default => {
                let name = ident.to_string();
                let name = format_ident!("__opkit_default_{}", name.trim_start_matches("r#"));
                quote!(Self::#name())
            }
            Fate::Removed(None) => {
                quote_spanned!(field.span()=> ::core::default::Default::default())
            }
        };
        fields.push(quote!(#ident: #value));
    }
    for added in &declared.added {
        added.path.first().into_iter().for_each(&mut add);
    }
    let variables: Vec<_> = names.iter().map(|ident| variable("hub", ident)).collect();
    let pattern = quote_spanned!(span=> OpkitHub { #(#names: #variables),* });
    quote! {
        let #pattern = hub;
        // Fields that only the hub has are not used.
        let _ = (#(&#variables,)*);
        #(#opened)*
        Self { #(#fields),* }
    }
}

/// Returns the field of the hub into which others move: the value in `added(...)`, or the default.
fn root_field(declared: &Declared, root: &Ident) -> Option<TokenStream> {
    let is_root = |path: &[Ident]| matches!(path, [only] if only == root);
    let is_carried = declared
        .fields
        .iter()
        .any(|field| matches!(&field.fate, Fate::At(path) if is_root(path)));
    if is_carried {
        return None;
    }
    let mut added = declared.added.iter();
    let value = added.find(|added| is_root(&added.path));
    let value = added_value(value.and_then(|added| added.value.as_ref()));
    Some(quote!(#root: #value))
}

fn added_value(expr: Option<&syn::Expr>) -> TokenStream {
    match expr {
        Some(expr) => value(expr),
        None => quote!(::core::default::Default::default()),
    }
}

/// Returns the statement that sets a field inside of other fields of the hub.
fn assignment(path: &[Ident], value: &TokenStream, span: Span) -> TokenStream {
    let Some((last, outer)) = path.split_last() else {
        return TokenStream::new();
    };
    let mut at = quote!(hub);
    for name in outer {
        at = quote!((*::opkit::__private::kinds::versions::Inside(&mut #at.#name).inside_mut()));
    }
    quote_spanned!(span=> #at.#last = #value;)
}

/// Adds statements that take the objects on the way to a field of the hub, each once.
fn open(path: &[Ident], inside: &mut BTreeSet<Vec<String>>, opened: &mut Vec<TokenStream>) {
    for length in 1..path.len() {
        let Some(outer) = path.get(..length) else {
            return;
        };
        let key: Vec<String> = outer.iter().map(ToString::to_string).collect();
        if !inside.insert(key) {
            continue;
        }
        let from = place(outer);
        let variable = opened_variable(outer);
        opened.push(quote! {
            let #variable = ::opkit::__private::kinds::versions::Inside(#from).inside();
        });
    }
}

/// Returns the expression for a field of the hub, whose outer objects are already opened.
fn place(path: &[Ident]) -> TokenStream {
    match path {
        [name] => variable("hub", name).to_token_stream(),
        [outer @ .., name] => {
            let outer = opened_variable(outer);
            quote!(#outer.#name)
        }
        [] => TokenStream::new(),
    }
}

fn opened_variable(path: &[Ident]) -> Ident {
    let names: Vec<String> = path.iter().map(plain).collect();
    format_ident!("opened_{}", names.join("_"))
}

fn variable(of: &str, ident: &Ident) -> Ident {
    format_ident!("{of}_{}", plain(ident))
}

fn plain(ident: &Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}

impl DeclaredField {
    /// Returns the variable with the location of the field, where the compiler reports errors.
    fn located(&self, mut variable: Ident) -> Ident {
        variable.set_span(self.span().resolved_at(Span::call_site()));
        variable
    }

    fn converted_to_hub(&self, value: &TokenStream) -> TokenStream {
        match &self.changed {
            Some((to_hub, _)) => quote_spanned!(self.span()=> #to_hub(#value)),
            None => carried(&self.ty, value, Direction::ToHub),
        }
    }

    fn converted_from_hub(&self, value: &TokenStream) -> TokenStream {
        match &self.changed {
            Some((_, from_hub)) => quote_spanned!(self.span()=> #from_hub(#value)),
            None => carried(&self.ty, value, Direction::FromHub),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Direction {
    ToHub,
    FromHub,
}

/// Converts a value of the type `ty` of the version to the hub, or a value of the hub to `ty`.
/// Lists, maps and `Option`s are converted by their elements.
pub(super) fn carried(ty: &Type, value: &TokenStream, direction: Direction) -> TokenStream {
    let Some((container, element)) = element(ty) else {
        return match (types::class(ty), direction) {
            (Class::Other, Direction::ToHub) => quote_spanned! {syn::spanned::Spanned::span(ty)=>
                ::opkit::__private::kinds::versions::Carried(#value).to_hub()
            },
            (Class::Other, Direction::FromHub) => quote_spanned! {syn::spanned::Spanned::span(ty)=>
                ::opkit::__private::kinds::versions::Target::<#ty>::NEW.convert(#value)
            },
            _ => value.clone(),
        };
    };
    if element_class(element) != Class::Other {
        return value.clone();
    }
    let inner = carried(element, &quote!(value), direction);
    match container {
        "Option" => quote!(#value.map(|value| #inner)),
        "Box" => quote!({ let value = *#value; ::std::boxed::Box::new(#inner) }),
        "Map" => quote! {
            ::core::iter::IntoIterator::into_iter(#value).map(|(key, value)| (key, #inner)).collect()
        },
        _ => quote! {
            ::core::iter::IntoIterator::into_iter(#value).map(|value| #inner).collect()
        },
    }
}

/// Returns the container of a type and the type of its elements.
fn element(ty: &Type) -> Option<(&'static str, &Type)> {
    if let Some(inner) = types::in_option(ty) {
        return Some(("Option", inner));
    }
    if types::name(ty).as_deref() == Some("Box") {
        return Some(("Box", types::arguments(ty).into_iter().next()?));
    }
    let element = types::element(ty)?;
    Some(match types::class(ty) {
        Class::Map => ("Map", element),
        _ => ("List", element),
    })
}

/// Returns the class of the innermost elements of a type.
fn element_class(ty: &Type) -> Class {
    match element(ty) {
        Some((_, element)) => element_class(element),
        None => types::class(ty),
    }
}

fn notes(declared: &Declared) -> TokenStream {
    let fields = declared.fields.iter().map(note);
    let added = declared.added.iter().map(|added| json_path(&added.path));
    quote! {
        const FIELDS: &[::opkit::__private::kinds::versions::FieldNote] = &[#(#fields),*];
        ::opkit::__private::kinds::versions::Notes {
            fields: FIELDS,
            added: &[#(#added),*],
            ..::opkit::__private::kinds::versions::Notes::NONE
        }
    }
}

fn note(field: &DeclaredField) -> TokenStream {
    let DeclaredField {
        json,
        text,
        ident,
        is_lossy,
        ..
    } = field;
    let hub: Vec<String> = match &field.fate {
        // A field that is carried over has the same JSON name, which may be a declared one.
        Fate::At(path) if matches!(path.as_slice(), [only] if only == ident) => vec![json.clone()],
        Fate::At(path) => vec![json_path(path)],
        Fate::Split { hub, .. } => hub
            .iter()
            .map(|it| names::camel_case(&it.to_string()))
            .collect(),
        Fate::Removed(_) => Vec::new(),
    };
    let (mut containers, mut ty) = (Vec::new(), &field.ty);
    while let Some((container, element)) = element(ty) {
        match container {
            "List" => containers.push(quote!(::opkit::__private::kinds::versions::Container::List)),
            "Map" => containers.push(quote!(::opkit::__private::kinds::versions::Container::Map)),
            _ => {}
        }
        ty = element;
    }
    let nested = match (types::class(ty), &field.changed) {
        (Class::Other, None) => quote!(::opkit::__private::kinds::versions::Target::<#ty>::notes),
        _ => quote!(|| ::opkit::__private::kinds::versions::Notes::NONE),
    };
    let line = quote_spanned!(ident.span()=> ::core::line!());
    let file = quote_spanned!(ident.span()=> ::core::file!());
    quote! {
        ::opkit::__private::kinds::versions::FieldNote {
            name: #json,
            hub: &[#(#hub),*],
            declared: #text,
            is_lossy: #is_lossy,
            file: #file,
            line: #line,
            containers: &[#(#containers),*],
            nested: #nested,
        }
    }
}

fn json_path(path: &[Ident]) -> String {
    let names = path.iter().map(|name| names::camel_case(&name.to_string()));
    names.collect::<Vec<_>>().join(".")
}
