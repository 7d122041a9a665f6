//! One field of a struct: its name on the wire, whether it must be given, its default and its
//! limits.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Error, Type, parse_quote};

use crate::column::Column;
use crate::default;
use crate::keywords::{Keywords, Rule};
use crate::names;
use crate::types::{self, Class};
use crate::words::{self, ELEMENT, FIELD, SPEC_FIELD, Word};

/// The role of a struct in a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The spec of a kind.
    Spec,
    /// The status of a kind: everything in it is optional.
    Status,
    /// A part of one.
    Part,
}

/// A field.
pub(crate) struct Field {
    ident: Ident,
    ty: Type,
    pub(crate) json: String,
    is_optional: bool,
    default: Option<TokenStream>,
    keywords: Keywords,
    items: Keywords,
    values: Keywords,
    pub(crate) column: Option<Column>,
    is_immutable: bool,
}

impl Field {
    /// Reads the words of a field, and puts serde's and schemars' attributes in their place.
    pub(crate) fn parse(field: &mut syn::Field, of: &Ident, role: Role) -> syn::Result<Self> {
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new_spanned(field, "a field needs a name"));
        };
        refuse_foreign(&field.attrs)?;
        check_type(&field.ty)?;
        let place = match role {
            Role::Spec => FIELD.and(SPEC_FIELD),
            Role::Status | Role::Part => FIELD,
        };
        let words = words::take(&mut field.attrs, place)?;
        let inner = types::in_option(&field.ty);
        let class = types::class(inner.unwrap_or(&field.ty));
        let element = types::element(inner.unwrap_or(&field.ty));
        let element = element.map_or(Class::Other, types::class);
        let mut parsed = Self {
            json: names::camel_case(&ident.to_string()),
            ident,
            ty: field.ty.clone(),
            is_optional: inner.is_some(),
            default: None,
            keywords: Keywords::default(),
            items: Keywords::default(),
            values: Keywords::default(),
            column: None,
            is_immutable: false,
        };
        let (mut default, mut is_required) = (None, false);
        for word in &words {
            if parsed.keywords.take(word, class)? {
                if word.is("nullable") && inner.is_none() {
                    return Err(plain_type(word, &field.ty));
                }
                continue;
            }
            match word.name.to_string().as_str() {
                "rename" => parsed.json = word.string()?.value(),
                "required" => {
                    word.flag()?;
                    check_required(word, class, inner, role)?;
                    is_required = true;
                }
                "default" => default = Some(word),
                "items" => parsed.items = elements(word, element)?,
                "values" => {
                    if !matches!(class, Class::Map | Class::Other) {
                        let noun = class.noun();
                        let message = format!("`values` is for a map, and this is {noun}");
                        return Err(Error::new(word.name.span(), message));
                    }
                    parsed.values = elements(word, element)?;
                }
                "immutable" => {
                    word.flag()?;
                    parsed.is_immutable = true;
                }
                _ => parsed.column = Some(Column::of_field(word, &parsed.json)?),
            }
        }
        if let Some(column) = &mut parsed.column {
            column.path = format!(".spec.{}", parsed.json);
        }
        if let Some(word) = default {
            parsed.default = Some(parsed.default(word, class, role)?);
        }
        if parsed.is_immutable {
            let message = format!("{} is immutable", parsed.json);
            let rule = Rule::new("self == oldSelf".to_owned(), message);
            parsed.keywords.rule(rule);
        }
        let serde = parsed.serde(of, class, is_required, role);
        field.attrs.push(serde);
        if let Some(inner) = inner {
            // The schema of the type itself: an `Option` would be nullable.
            let inner = inner.to_token_stream().to_string();
            field.attrs.push(parse_quote!(#[schemars(with = #inner)]));
        }
        Ok(parsed)
    }

    pub(crate) fn ident(&self) -> &Ident {
        &self.ident
    }

    fn serde(&self, of: &Ident, class: Class, is_required: bool, role: Role) -> Attribute {
        let json = &self.json;
        let is_collection = matches!(class, Class::List | Class::Map);
        if self.is_optional {
            return parse_quote!(#[serde(
                rename = #json,
                default,
                skip_serializing_if = "::core::option::Option::is_none"
            )]);
        }
        if self.default.is_some() {
            let path = format!("{of}::{}", self.default_name());
            return parse_quote!(#[serde(rename = #json, default = #path)]);
        }
        if is_collection && !is_required {
            return parse_quote!(#[serde(
                rename = #json,
                default,
                skip_serializing_if = "::opkit::__private::kinds::is_empty"
            )]);
        }
        match role {
            Role::Status => parse_quote!(#[serde(rename = #json, default)]),
            Role::Spec | Role::Part => parse_quote!(#[serde(rename = #json)]),
        }
    }

    /// The name of the function that returns the default.
    fn default_name(&self) -> Ident {
        let name = self.ident.to_string();
        format_ident!("__opkit_default_{}", name.trim_start_matches("r#"))
    }

    /// The function that returns the default, if there is one.
    pub(crate) fn default_function(&self) -> Option<TokenStream> {
        let (default, name, ty) = (self.default.as_ref()?, self.default_name(), &self.ty);
        Some(quote! {
            fn #name() -> #ty {
                #default
            }
        })
    }

    /// The field in the `Default` of its struct.
    pub(crate) fn in_default(&self) -> TokenStream {
        let ident = &self.ident;
        match &self.default {
            Some(_) => {
                let name = self.default_name();
                quote!(#ident: Self::#name())
            }
            None => quote!(#ident: ::core::default::Default::default()),
        }
    }

    /// The row of the field in the table of its struct, if it has something to add to its schema.
    pub(crate) fn table_row(&self) -> Option<TokenStream> {
        if self.keywords.is_empty() && self.items.is_empty() && self.values.is_empty() {
            return None;
        }
        let name = &self.json;
        let parts = [&self.keywords, &self.items, &self.values].map(|part| {
            let (keywords, rules) = (part.keyword_tokens(), part.rule_tokens());
            quote!(::opkit::__private::kinds::Part { keywords: #keywords, rules: #rules })
        });
        let [own, items, values] = parts;
        Some(quote!(::opkit::__private::kinds::Property {
            name: #name,
            own: #own,
            items: #items,
            values: #values,
        }))
    }

    /// The rule of the struct that keeps an immutable field from being added or removed.
    pub(crate) fn presence_rule(&self) -> Option<Rule> {
        let is_optional =
            self.is_optional || matches!(types::class(&self.ty), Class::List | Class::Map);
        if !self.is_immutable || !is_optional {
            return None;
        }
        let name = names::cel(&self.json);
        let rule = format!("has(self.{name}) == has(oldSelf.{name})");
        let message = format!("{} is immutable", self.json);
        Some(Rule::new(rule, message).at(format!(".{}", self.json)))
    }

    /// The default as an expression of the field's type.
    fn default(&self, word: &Word, class: Class, role: Role) -> syn::Result<TokenStream> {
        if self.is_optional {
            let inner = types::in_option(&self.ty).map(|ty| ty.to_token_stream().to_string());
            let inner = inner.unwrap_or_default().replace(' ', "");
            let message = format!(
                "a field with a default always has a value: write `{inner}`, not `Option<{inner}>`"
            );
            return Err(Error::new(word.name.span(), message));
        }
        if role == Role::Status {
            let message = "a status has no defaults: whoever writes it writes every field";
            return Err(Error::new(word.name.span(), message));
        }
        let expr = word.expr()?;
        default::check(expr, &self.keywords)?;
        Ok(default::converted(expr, &self.ty, class))
    }
}

/// The words of `items(...)` or `values(...)`.
fn elements(word: &Word, class: Class) -> syn::Result<Keywords> {
    let mut keywords = Keywords::default();
    for word in word.list(ELEMENT)? {
        keywords.take(&word, class)?;
    }
    Ok(keywords)
}

fn plain_type(word: &Word, ty: &Type) -> Error {
    let ty = ty.to_token_stream().to_string().replace(' ', "");
    let message = format!("`nullable` is for an `Option`: write `Option<{ty}>`");
    Error::new(word.name.span(), message)
}

fn check_required(word: &Word, class: Class, inner: Option<&Type>, role: Role) -> syn::Result<()> {
    let message = match inner {
        Some(_) => "an `Option` is optional: write the plain type",
        None if role == Role::Status => "nothing in a status is required",
        None if !matches!(class, Class::List | Class::Map) => {
            "a plain type without a default is required already: leave the word out"
        }
        None => return Ok(()),
    };
    Err(Error::new(word.name.span(), message))
}

fn check_type(ty: &Type) -> syn::Result<()> {
    if let Some(float) = types::float_in(ty) {
        let message = "floats are refused: they are rounded on the way through JSON, so that an object differs \
            from what was applied; use an integer of a smaller unit, or `Quantity`";
        return Err(Error::new_spanned(float, message));
    }
    match types::name(types::in_option(ty).unwrap_or(ty)).as_deref() {
        Some("i128" | "u128") => Err(Error::new_spanned(
            ty,
            "Kubernetes has no integers beyond 64 bits: use `i64`",
        )),
        _ => Ok(()),
    }
}

/// Refuses the attributes that opkit writes itself.
pub(crate) fn refuse_foreign(attributes: &[Attribute]) -> syn::Result<()> {
    for attribute in attributes {
        for (name, instead) in [
            (
                "serde",
                "`#[opkit(rename = ...)]` and `#[opkit(default = ...)]`",
            ),
            ("schemars", "the words of `#[opkit(...)]`"),
            ("kube", "the words of `#[opkit::kind(...)]`"),
        ] {
            if attribute.path().is_ident(name) {
                let message = format!(
                    "opkit writes `#[{name}(...)]` itself: use {instead}, or derive everything by hand with kube's CustomResource"
                );
                return Err(Error::new_spanned(attribute, message));
            }
        }
    }
    Ok(())
}
