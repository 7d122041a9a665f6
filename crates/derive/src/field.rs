//! One field of a struct: its JSON name, whether it is required, its default and its limits.

mod check;
pub(crate) mod info;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Error, Type, parse_quote};

use self::check::{check_required, plain_type};
use crate::arguments::{self, Argument, ELEMENT, FIELD, SPEC_FIELD};
use crate::cel::ScopeField;
use crate::column::Column;
use crate::default;
use crate::docs;
use crate::keywords::{Keywords, Rule};
use crate::names;
use crate::types::{self, Class};

pub(crate) use self::check::{check_map_keys, check_type, reject_foreign};

/// Role of a struct in a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Spec of a kind.
    Spec,
    /// Status of a kind, in which all fields are optional.
    Status,
    /// Struct that is used within a spec or status.
    Part,
}

/// Parsed field of a struct.
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
    /// Whether the field can be absent in the JSON of a valid object.
    is_absent: bool,
    /// Whether the apply configuration has the apply configuration of the field's type.
    pub(crate) has_apply: bool,
    /// Doc comments.
    docs: Vec<Attribute>,
}

impl Field {
    /// Parses the `#[opkit(...)]` attributes of a field, and replaces them with attributes for
    /// serde and schemars.
    pub(crate) fn parse(field: &mut syn::Field, of: &Ident, role: Role) -> syn::Result<Self> {
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new_spanned(field, "a field needs a name"));
        };
        reject_foreign(&field.attrs)?;
        let place = match role {
            Role::Spec => FIELD.and(SPEC_FIELD),
            Role::Status | Role::Part => FIELD,
        };
        let arguments = arguments::take(&mut field.attrs, place)?;
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
            is_absent: false,
            has_apply: false,
            docs: Vec::new(),
        };
        let allows_float = arguments.iter().any(|argument| argument.is("allow_float"));
        check_type(&field.ty, allows_float)?;
        let (mut default, mut is_required) = (None, false);
        for argument in &arguments {
            if parsed.keywords.take(argument, class)? {
                if argument.is("nullable") && inner.is_none() {
                    return Err(plain_type(argument, &field.ty));
                }
                continue;
            }
            match argument.name.to_string().as_str() {
                "rename" => parsed.json = argument.string()?.value(),
                "required" => {
                    argument.flag()?;
                    check_required(argument, class, inner, role)?;
                    is_required = true;
                }
                "default" => default = Some(argument),
                "items" => parsed.items = elements(argument, element)?,
                "values" => parsed.values = elements(argument, element)?,
                "allow_float" => argument.flag()?,
                "apply" => {
                    argument.flag()?;
                    parsed.has_apply = true;
                }
                "immutable" => {
                    argument.flag()?;
                    parsed.is_immutable = true;
                }
                _ => parsed.column = Some(Column::of_field(argument, &parsed.json)?),
            }
        }
        if let Some(column) = &mut parsed.column {
            column.path = format!(".spec.{}", parsed.json);
        }
        let item = types::element(inner.unwrap_or(&field.ty));
        check_map_keys(&parsed.keywords, item)?;
        if let Some(argument) = default {
            parsed.default = Some(parsed.default(argument, class, role)?);
        }
        if parsed.is_immutable {
            let message = format!("{} is immutable", parsed.json);
            let rule = Rule::new("self == oldSelf".to_owned(), message);
            parsed.keywords.rule(rule);
        }
        let is_collection = matches!(class, Class::List | Class::Map);
        let can_be_absent = parsed.is_optional || (is_collection && !is_required);
        parsed.is_absent = can_be_absent && parsed.default.is_none();
        parsed.is_absent |= role == Role::Status;
        let docs = field.attrs.iter().filter(|it| it.path().is_ident("doc"));
        parsed.docs = docs.cloned().collect();
        docs::keep_heading(&mut field.attrs);
        let serde = parsed.serde(of, class, is_required, role);
        field.attrs.push(serde);
        if parsed.keywords.replaces_schema {
            field.attrs.push(parse_quote!(
                #[schemars(with = "::opkit::__private::serde_json::Value")]
            ));
        } else if let Some(inner) = inner {
            // Uses the schema of the inner type: that of an `Option` would be nullable.
            let inner = inner.to_token_stream().to_string();
            field.attrs.push(parse_quote!(#[schemars(with = #inner)]));
        }
        Ok(parsed)
    }

    pub(crate) fn ident(&self) -> &Ident {
        &self.ident
    }

    pub(crate) fn ty(&self) -> &Type {
        &self.ty
    }

    pub(crate) fn docs(&self) -> &[Attribute] {
        &self.docs
    }

    /// Returns the field as CEL rules of the struct see it.
    pub(crate) fn in_scope(&self) -> ScopeField {
        ScopeField {
            json: self.json.clone(),
            cel: names::cel(&self.json),
            is_optional: self.is_absent,
        }
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

    /// Returns the name of the generated function that returns the default of the field.
    fn default_name(&self) -> Ident {
        let name = self.ident.to_string();
        format_ident!("__opkit_default_{}", name.trim_start_matches("r#"))
    }

    /// Generates the function that returns the default of the field, if the field has a default.
    pub(crate) fn default_function(&self) -> Option<TokenStream> {
        let (default, name, ty) = (self.default.as_ref()?, self.default_name(), &self.ty);
        Some(quote! {
            fn #name() -> #ty {
                #default
            }
        })
    }

    /// Generates the initializer of the field in the `Default` implementation of the struct.
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

    /// Generates the `Property` of the field in the `SchemaTable` of the struct. Returns `None` if
    /// the attributes of the field add nothing to the schema.
    pub(crate) fn table_row(&self) -> Option<TokenStream> {
        if self.keywords.is_empty() && self.items.is_empty() && self.values.is_empty() {
            return None;
        }
        let name = &self.json;
        let [own, items, values] =
            [&self.keywords, &self.items, &self.values].map(Keywords::tokens);
        Some(quote!(::opkit::__private::kinds::Property {
            name: #name,
            own: #own,
            items: #items,
            values: #values,
        }))
    }

    /// Returns the CEL rule for the struct that prevents adding or removing this field, if the
    /// field is immutable and optional.
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

    /// Returns the default in `argument` as an expression of the field's type.
    fn default(&self, argument: &Argument, class: Class, role: Role) -> syn::Result<TokenStream> {
        if self.is_optional {
            let inner = types::in_option(&self.ty).map(|ty| ty.to_token_stream().to_string());
            let inner = inner.unwrap_or_default().replace(' ', "");
            let message = format!(
                "a field with a default always has a value: write `{inner}`, not `Option<{inner}>`"
            );
            return Err(Error::new(argument.name.span(), message));
        }
        if role == Role::Status {
            let message = "a status has no defaults: the operator writes every field";
            return Err(Error::new(argument.name.span(), message));
        }
        let expr = argument.expr()?;
        default::check(expr, class, &self.keywords)?;
        Ok(default::converted(expr, &self.ty, class))
    }
}

/// Parses the arguments of `items(...)` or `values(...)`.
fn elements(argument: &Argument, class: Class) -> syn::Result<Keywords> {
    let mut keywords = Keywords::default();
    for argument in argument.list(ELEMENT)? {
        keywords.take(&argument, class)?;
    }
    Ok(keywords)
}
