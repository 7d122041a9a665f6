//! Definition of a custom resource, from the arguments of `#[opkit::kind(...)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, LitStr, Path, Token};

use crate::arguments::{Argument, SCALE, Value};
use crate::column::{self, Column};
use crate::errors::Errors;
use crate::names;

/// Definition of a custom resource: names, scope, status, printer columns and `scale`.
pub(super) struct Definition {
    pub(super) kind: Ident,
    pub(super) group: String,
    version: String,
    pub(super) plural: String,
    singular: String,
    is_namespaced: bool,
    pub(super) status: Option<Path>,
    pub(super) short_names: Vec<String>,
    categories: Vec<String>,
    pub(super) derives: Vec<Path>,
    scale: Option<Scale>,
    selectable: Vec<String>,
    columns: Vec<Column>,
}

struct Scale {
    spec_replicas_path: String,
    status_replicas_path: String,
    label_selector_path: Option<String>,
}

/// Arguments of `#[opkit::kind(...)]` that were parsed so far. Required arguments may be missing.
#[derive(Default)]
struct ParsedArguments {
    kind: Option<LitStr>,
    group: Option<String>,
    version: Option<String>,
    plural: Option<String>,
    singular: Option<String>,
    is_namespaced: Option<bool>,
    status: Option<Path>,
    short_names: Vec<String>,
    categories: Vec<String>,
    derives: Vec<Path>,
    scale: Option<(Scale, Span)>,
    selectable: Vec<String>,
    columns: Vec<Column>,
}

impl Definition {
    pub(super) fn parse(spec: &Ident, arguments: &[Argument]) -> syn::Result<Self> {
        let (mut parsed, mut errors) = (ParsedArguments::default(), Errors::default());
        for argument in arguments {
            errors.take(parsed.take(argument));
        }
        let parsed = errors.none_or(parsed)?;
        let kind = kind(spec, parsed.kind)?;
        let missing = |what: &str| {
            Error::new(
                Span::call_site(),
                format!("missing {what}: {}", example(what)),
            )
        };
        let Some(is_namespaced) = parsed.is_namespaced else {
            let message = "missing scope: write `namespaced` or `cluster`; there is no default, because it cannot be changed later";
            return Err(Error::new(Span::call_site(), message));
        };
        if let (Some((_, span)), None) = (&parsed.scale, &parsed.status) {
            let message =
                "`scale` reads the current number of replicas from the status: add `status = ...`";
            return Err(Error::new(*span, message));
        }
        let singular = parsed
            .singular
            .unwrap_or_else(|| kind.to_string().to_lowercase());
        Ok(Self {
            group: parsed.group.ok_or_else(|| missing("group"))?,
            version: parsed.version.ok_or_else(|| missing("version"))?,
            plural: parsed.plural.unwrap_or_else(|| names::plural(&singular)),
            kind,
            singular,
            is_namespaced,
            status: parsed.status,
            short_names: parsed.short_names,
            categories: parsed.categories,
            derives: parsed.derives,
            scale: parsed.scale.map(|(scale, _)| scale),
            selectable: parsed.selectable,
            columns: parsed.columns,
        })
    }

    pub(super) fn has_scale(&self) -> bool {
        self.scale.is_some()
    }

    /// Generates the implementation of kube's `Resource`.
    pub(super) fn resource(&self) -> TokenStream {
        let Self {
            kind,
            group,
            version,
            plural,
            ..
        } = self;
        let kind_name = kind.to_string();
        let api_version = format!("{group}/{version}");
        let scope = match self.is_namespaced {
            true => quote!(NamespaceResourceScope),
            false => quote!(ClusterResourceScope),
        };
        let meta =
            quote!(::opkit::__private::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta);
        let text = quote!(::std::borrow::Cow<'_, str>);
        quote! {
            #[automatically_derived]
            impl ::opkit::__private::kube::Resource for #kind {
                type DynamicType = ();
                type Scope = ::opkit::__private::kube::core::#scope;

                fn kind(_: &()) -> #text {
                    #kind_name.into()
                }

                fn group(_: &()) -> #text {
                    #group.into()
                }

                fn version(_: &()) -> #text {
                    #version.into()
                }

                fn api_version(_: &()) -> #text {
                    #api_version.into()
                }

                fn plural(_: &()) -> #text {
                    #plural.into()
                }

                fn meta(&self) -> &#meta {
                    &self.metadata
                }

                fn meta_mut(&mut self) -> &mut #meta {
                    &mut self.metadata
                }
            }
        }
    }

    /// Generates the `KindTable` of the kind. The printer columns that are declared on fields come
    /// before the columns that are declared on the struct.
    pub(super) fn table<'a>(&'a self, of_fields: impl Iterator<Item = &'a Column>) -> TokenStream {
        let Self {
            group,
            version,
            plural,
            singular,
            is_namespaced,
            short_names,
            categories,
            selectable,
            ..
        } = self;
        let kind = self.kind.to_string();
        let columns = of_fields.chain(&self.columns).map(Column::tokens);
        let scale = match &self.scale {
            Some(scale) => {
                let scale = scale.tokens();
                quote!(::core::option::Option::Some(#scale))
            }
            None => quote!(::core::option::Option::None),
        };
        quote! {
            ::opkit::__private::kinds::KindTable {
                group: #group,
                version: #version,
                kind: #kind,
                plural: #plural,
                singular: #singular,
                is_namespaced: #is_namespaced,
                short_names: &[#(#short_names),*],
                categories: &[#(#categories),*],
                columns: &[#(#columns),*],
                selectable: &[#(#selectable),*],
                scale: #scale,
            }
        }
    }
}

impl ParsedArguments {
    fn take(&mut self, argument: &Argument) -> syn::Result<()> {
        match argument.name.to_string().as_str() {
            "group" => {
                self.group = Some(checked(
                    argument,
                    names::is_group,
                    "a domain that you own, such as \"example.com\"",
                )?)
            }
            "version" => {
                self.version = Some(checked(
                    argument,
                    names::is_dns_label,
                    "a version such as \"v1\" or \"v1beta1\"",
                )?)
            }
            "plural" => self.plural = Some(label(argument)?),
            "singular" => self.singular = Some(label(argument)?),
            "kind" => self.kind = Some(argument.string()?),
            "namespaced" | "cluster" => {
                argument.flag()?;
                if self
                    .is_namespaced
                    .replace(argument.is("namespaced"))
                    .is_some()
                {
                    let message = "a kind has only one scope: `namespaced` or `cluster`";
                    return Err(Error::new(argument.name.span(), message));
                }
            }
            "status" => self.status = Some(path(argument)?),
            "shortname" => self.short_names.push(label(argument)?),
            "category" => self.categories.push(label(argument)?),
            "derive" => {
                let Value::List(tokens) = &argument.value else {
                    return Err(argument.expected("derive(PartialEq)"));
                };
                let parser = Punctuated::<Path, Token![,]>::parse_terminated;
                let paths = syn::parse::Parser::parse2(parser, tokens.clone())?;
                self.derives.extend(paths);
            }
            "scale" => self.scale = Some((Scale::parse(argument)?, argument.name.span())),
            "selectable" => self.selectable.push(column::path(&argument.string()?)?),
            _ => self.columns.push(Column::of_struct(argument)?),
        }
        Ok(())
    }
}

impl Scale {
    fn parse(argument: &Argument) -> syn::Result<Self> {
        let (mut spec, mut status, mut selector) = (None, None, None);
        for argument in argument.list(SCALE)? {
            let (part, place) = match argument.is("spec_replicas_path") {
                true => (&mut spec, ".spec."),
                false if argument.is("status_replicas_path") => (&mut status, ".status."),
                false => (&mut selector, "."),
            };
            let path = argument.string()?;
            if !path.value().starts_with(place) {
                let message = format!("`{}` must start with `{place}`", argument.name);
                return Err(Error::new_spanned(path, message));
            }
            *part = Some(path.value());
        }
        match (spec, status) {
            (Some(spec_replicas_path), Some(status_replicas_path)) => Ok(Self {
                spec_replicas_path,
                status_replicas_path,
                label_selector_path: selector,
            }),
            _ => Err(argument.expected(
                "scale(spec_replicas_path = \".spec.replicas\", status_replicas_path = \".status.readyReplicas\")",
            )),
        }
    }

    fn tokens(&self) -> TokenStream {
        let (spec, status) = (&self.spec_replicas_path, &self.status_replicas_path);
        let selector = match &self.label_selector_path {
            Some(path) => quote!(::core::option::Option::Some(#path)),
            None => quote!(::core::option::Option::None),
        };
        quote!(::opkit::__private::kinds::Scale {
            spec_replicas_path: #spec,
            status_replicas_path: #status,
            label_selector_path: #selector,
        })
    }
}

/// Returns the name of the kind. If the user wrote none, the name is that of the spec struct
/// without the suffix `Spec`.
fn kind(spec: &Ident, written: Option<LitStr>) -> syn::Result<Ident> {
    let name = spec.to_string();
    let kind = match &written {
        Some(kind) => {
            let parsed = syn::parse_str::<Ident>(&kind.value());
            let parsed = parsed.map_err(|_| {
                Error::new_spanned(kind, "a kind must be an identifier, such as \"Robot\"")
            });
            Ident::new(&parsed?.to_string(), kind.span())
        }
        None => match name.strip_suffix("Spec") {
            Some(kind) if !kind.is_empty() => Ident::new(kind, spec.span()),
            _ => {
                let message = format!(
                    "the kind is named after its spec: rename the struct to `{name}Spec`, or write `kind = \"...\"`"
                );
                return Err(Error::new_spanned(spec, message));
            }
        },
    };
    if kind == *spec {
        let message = "the kind and its spec are different types and need different names";
        return Err(Error::new(kind.span(), message));
    }
    Ok(kind)
}

fn example(what: &str) -> &'static str {
    match what {
        "group" => "write `group = \"example.com\"`",
        _ => "write `version = \"v1\"`",
    }
}

fn label(argument: &Argument) -> syn::Result<String> {
    checked(
        argument,
        names::is_dns_label,
        "lower-case letters, digits and `-`",
    )
}

fn checked(argument: &Argument, is_valid: fn(&str) -> bool, expected: &str) -> syn::Result<String> {
    let text = argument.string()?;
    match text.value() {
        value if is_valid(&value) => Ok(value),
        value => {
            let message = format!(
                "{value:?} is not a valid {}: write {expected}",
                argument.name
            );
            Err(Error::new_spanned(text, message))
        }
    }
}

/// Parses an argument such as `status = RobotStatus`. The form of kube, `status = "RobotStatus"`,
/// is accepted too.
fn path(argument: &Argument) -> syn::Result<Path> {
    match argument.expr()? {
        Expr::Path(path) if path.qself.is_none() => Ok(path.path.clone()),
        expr => match argument.string() {
            Ok(text) => text.parse(),
            Err(_) => Err(Error::new_spanned(
                expr.to_token_stream(),
                "write `status = RobotStatus`",
            )),
        },
    }
}
