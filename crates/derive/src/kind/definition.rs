//! Definition of a custom resource, from the arguments of `#[opkit::kind(...)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, LitStr, Path, Token};

use super::scale::Scale;
use crate::arguments::{Argument, Value};
use crate::column::{self, Column};
use crate::errors::Errors;
use crate::keywords::Rule;
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
    pub(super) scale: Option<Scale>,
    pub(super) selectable: Vec<LitStr>,
    pub(super) columns: Vec<Column>,
    more: More,
    /// Position of `apply`, if the kind has an apply configuration.
    pub(super) apply: Option<Span>,
}

/// Optional parts of the definition.
#[derive(Default)]
struct More {
    labels: Vec<(String, String)>,
    annotations: Vec<(String, String)>,
    is_unserved: bool,
    /// Whether an object without a spec has the default spec.
    is_spec_optional: bool,
    /// Description of the object, if it is not that of the spec.
    description: Option<String>,
    is_deprecated: bool,
    /// Warning that API servers send to clients of a deprecated version.
    deprecation_warning: Option<String>,
    /// CEL rules of the whole object.
    object_rules: Vec<Rule>,
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
    selectable: Vec<LitStr>,
    columns: Vec<Column>,
    more: More,
    apply: Option<Span>,
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
            more: parsed.more,
            apply: parsed.apply,
        })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
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
            ..
        } = self;
        let selectable = self.selectable.iter().map(LitStr::value);
        let kind = self.kind.to_string();
        let more = self.more.tokens();
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
                #more
            }
        }
    }
}

impl Definition {
    /// Reports whether an object without a spec has the default spec.
    pub(super) fn is_spec_optional(&self) -> bool {
        self.more.is_spec_optional
    }

    /// Returns the description of the object, if it is not that of the spec.
    pub(super) fn description(&self) -> Option<&str> {
        self.more.description.as_deref()
    }

    /// Returns the CEL rules of the whole object.
    pub(super) fn object_rules(&self) -> &[Rule] {
        &self.more.object_rules
    }
}

impl More {
    /// Generates the fields of the `KindTable` for the optional parts.
    fn tokens(&self) -> TokenStream {
        let pairs = |pairs: &[(String, String)]| {
            let pairs = pairs.iter().map(|(key, value)| quote!((#key, #value)));
            quote!(&[#(#pairs),*])
        };
        let (labels, annotations) = (pairs(&self.labels), pairs(&self.annotations));
        let Self { is_deprecated, .. } = self;
        let is_served = !self.is_unserved;
        let is_spec_required = !self.is_spec_optional;
        let description = match &self.description {
            Some(text) => quote!(::core::option::Option::Some(#text)),
            None => quote!(::core::option::Option::None),
        };
        let warning = match &self.deprecation_warning {
            Some(warning) => quote!(::core::option::Option::Some(#warning)),
            None => quote!(::core::option::Option::None),
        };
        let rules = self.object_rules.iter().map(Rule::tokens);
        quote! {
            labels: #labels,
            annotations: #annotations,
            is_served: #is_served,
            is_spec_required: #is_spec_required,
            description: #description,
            is_deprecated: #is_deprecated,
            deprecation_warning: #warning,
            rules: &[#(#rules),*],
        }
    }

    /// Parses one of the optional arguments. Returns false if the argument is not one of them.
    fn take(&mut self, argument: &Argument) -> syn::Result<bool> {
        match argument.name.to_string().as_str() {
            "label" => {
                let (key, value) = argument.pair()?;
                if !names::is_label_value(&value.value()) {
                    let message = format!(
                        "{:?} is not a valid label value: write at most 63 letters, digits, `-`, `_` and `.`",
                        value.value()
                    );
                    return Err(Error::new_spanned(value, message));
                }
                self.labels.push((qualified(&key)?, value.value()));
            }
            "annotation" => {
                let (key, value) = argument.pair()?;
                self.annotations.push((qualified(&key)?, value.value()));
            }
            "unserved" => {
                argument.flag()?;
                self.is_unserved = true;
            }
            "optional_spec" => {
                argument.flag()?;
                self.is_spec_optional = true;
            }
            "description" => self.description = Some(argument.string()?.value()),
            "deprecated" => {
                self.is_deprecated = true;
                if let Value::None = argument.value {
                    return Ok(true);
                }
                let warning = argument.string()?;
                let text = warning.value();
                if text.is_empty() || text.len() > 256 || text.chars().any(char::is_control) {
                    let message = "a deprecation warning is one line of 1 to 256 bytes";
                    return Err(Error::new_spanned(warning, message));
                }
                self.deprecation_warning = Some(text);
            }
            "object_rule" => self.object_rules.push(Rule::parse(argument)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Returns the key of a label or annotation, after checking it.
fn qualified(key: &LitStr) -> syn::Result<String> {
    match key.value() {
        text if names::is_qualified_name(&text) => Ok(text),
        text => {
            let message = format!(
                "{text:?} is not a valid key: write a name, or a domain and a name, such as \"example.com/name\""
            );
            Err(Error::new_spanned(key, message))
        }
    }
}

impl ParsedArguments {
    fn take(&mut self, argument: &Argument) -> syn::Result<()> {
        if self.more.take(argument)? {
            return Ok(());
        }
        match argument.name.to_string().as_str() {
            "apply" => {
                argument.flag()?;
                self.apply = Some(argument.name.span());
            }
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
            "selectable" => self.selectable.push(selectable(&argument.string()?)?),
            _ => self.columns.push(Column::of_struct(argument)?),
        }
        Ok(())
    }
}

/// Returns the path of a selectable field, after checking it.
fn selectable(path: &LitStr) -> syn::Result<LitStr> {
    column::path(path)?;
    let is_metadata = path.value().starts_with(".metadata");
    if is_metadata || !opkit_syntax::jsonpath::is_simple(&path.value()) {
        let message = "a selectable field is below `.spec` or `.status`, and its path consists of field names only";
        return Err(Error::new_spanned(path, message));
    }
    Ok(path.clone())
}

/// Returns the name of the kind. If the user wrote none, the name is that of the spec struct
/// without the suffix `Spec`.
pub(super) fn kind(spec: &Ident, written: Option<LitStr>) -> syn::Result<Ident> {
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
