//! `#[opkit::schema]`, and the code that it shares with `#[opkit::kind(...)]` and
//! `#[opkit::status]`: generates attributes for serde and schemars, and a `SchemaTable` for schema
//! keywords that schemars does not support.

mod newtype;
mod one_of;
mod union;
mod unit_enum;
mod variant;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields};

use crate::apply;
use crate::arguments::{self, Argument, SCHEMA, STRUCT};
use crate::cel::Scope;
use crate::column::Column;
use crate::derives::Derives;
use crate::docs;
use crate::errors::Errors;
use crate::field::{Field, Role, info, reject_foreign};
use crate::keywords::{Keywords, Rule};
use crate::types::Class;

/// Parsed struct, and its fields with the attributes for serde and schemars.
pub(crate) struct Struct {
    input: DeriveInput,
    role: Role,
    pub(crate) derives: Derives,
    fields: Vec<Field>,
    /// Schema keywords from `#[opkit(...)]` on the struct.
    own: Keywords,
}

/// Expands `#[opkit::schema]`.
pub(crate) fn expand(attribute: TokenStream, mut input: DeriveInput) -> syn::Result<TokenStream> {
    let arguments = own_arguments(attribute)?;
    let union = arguments.iter().find(|argument| argument.is("union"));
    let apply = arguments.iter().find(|argument| argument.is("apply"));
    if let (Some(union), false) = (union, matches!(input.data, Data::Enum(_))) {
        let message = "`union` applies to an enum: write a variant for each alternative";
        return Err(Error::new(union.name.span(), message));
    }
    match &input.data {
        Data::Enum(_) => {
            if let Some(apply) = apply {
                let message = "`apply` applies to a struct: an enum is applied as a whole";
                return Err(Error::new(apply.name.span(), message));
            }
            variant::expand(input, union)
        }
        Data::Struct(data) if matches!(data.fields, Fields::Unnamed(_)) => newtype::expand(input),
        _ => {
            let arguments = arguments::take(&mut input.attrs, STRUCT)?;
            let mut parsed = Struct::parse(input, Role::Part)?;
            parsed.take(&arguments)?;
            let apply = apply.map(|_| apply::configuration(&parsed));
            let tokens = parsed.tokens();
            Ok(quote!(#tokens #apply))
        }
    }
}

/// Parses the arguments of `#[opkit::schema(...)]` or `#[opkit::status(...)]`.
pub(crate) fn own_arguments(attribute: TokenStream) -> syn::Result<Vec<Argument>> {
    let own = SCHEMA
        .and(STRUCT)
        .and(arguments::ENUM)
        .and(arguments::NEWTYPE);
    let parsed = arguments::parse(attribute, own)?;
    let is_own = |argument: &&Argument| argument.is("union") || argument.is("apply");
    if let Some(argument) = parsed.iter().find(|argument| !is_own(argument)) {
        let name = &argument.name;
        let message = format!("write `#[opkit({name}...)]` on its own line");
        return Err(Error::new(name.span(), message));
    }
    Ok(parsed)
}

impl Struct {
    /// Parses a struct with named fields. The caller has already removed the `#[opkit(...)]`
    /// attributes on the struct itself.
    pub(crate) fn parse(mut input: DeriveInput, role: Role) -> syn::Result<Self> {
        reject_foreign(&input.attrs)?;
        if !input.generics.params.is_empty() {
            let message = "a declared type cannot have generic parameters: it has a single schema";
            return Err(Error::new_spanned(&input.generics, message));
        }
        let ident = input.ident.clone();
        let fields = match &mut input.data {
            Data::Struct(data) => match &mut data.fields {
                Fields::Named(fields) => fields,
                _ => {
                    return Err(Error::new_spanned(
                        &ident,
                        "expected a struct with named fields",
                    ));
                }
            },
            _ => return Err(Error::new_spanned(&ident, "expected a struct")),
        };
        let mut errors = Errors::default();
        let parsed: Vec<Field> = fields
            .named
            .iter_mut()
            .filter_map(|field| errors.take(Field::parse(field, &ident, role)))
            .collect();
        for (at, field) in parsed.iter().enumerate() {
            let mut before = parsed.iter().take(at);
            if before.any(|before| before.json == field.json) {
                let message = format!("two fields have the JSON name {:?}", field.json);
                errors.push(Error::new_spanned(field.ident(), message));
            }
        }
        let fields = errors.none_or(parsed)?;
        let mut own = Keywords::default();
        for rule in fields.iter().filter_map(Field::presence_rule) {
            own.rule(rule);
        }
        let derives = Derives::take(&mut input.attrs)?;
        Ok(Self {
            input,
            role,
            derives,
            fields,
            own,
        })
    }

    /// Adds the schema keywords and CEL rules that the arguments on the struct set.
    pub(crate) fn take(&mut self, arguments: &[Argument]) -> syn::Result<()> {
        let mut errors = Errors::default();
        for argument in arguments {
            let taken = match one_of::rule(argument, self) {
                Ok(Some(rule)) => {
                    self.own.rule(rule);
                    continue;
                }
                Ok(None) => self.own.take(argument, Class::Other),
                Err(error) => Err(error),
            };
            errors.take(taken);
        }
        let scope = self.scope();
        for rule in self.own.written_rules() {
            errors.take(Rule::check_fields(rule, &scope));
        }
        errors.none_or(())
    }

    /// Returns the fields that CEL rules of the struct can use.
    pub(crate) fn scope(&self) -> Scope {
        Scope {
            name: self.input.ident.to_string(),
            fields: self.fields.iter().map(Field::in_scope).collect(),
        }
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub(crate) fn ident(&self) -> &Ident {
        &self.input.ident
    }

    pub(crate) fn input(&self) -> &DeriveInput {
        &self.input
    }

    /// Adds an attribute to the struct, for a derive that the user wrote.
    pub(crate) fn annotate(&mut self, attribute: syn::Attribute) {
        self.input.attrs.push(attribute);
    }

    pub(crate) fn has_field(&self, json: &str) -> bool {
        self.fields.iter().any(|field| field.json == json)
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.fields.iter().filter_map(|field| field.column.as_ref())
    }

    /// Generates the struct with its derives, its `SchemaTable` and the functions for its defaults.
    pub(crate) fn tokens(mut self) -> TokenStream {
        // The derived `Default` would not use the declared defaults.
        let needs_default = self.role == Role::Status || self.derives.has("Default");
        self.derives.remove("Default");
        let derives = self.derives.tokens(&[]);
        docs::keep_heading(&mut self.input.attrs);
        let Self {
            input, fields, own, ..
        } = &self;
        let ident = &input.ident;
        let defaults = fields.iter().filter_map(Field::default_function);
        let rows = fields.iter().filter_map(Field::table_row);
        let (own, has_defaults) = (own.tokens(), self.role != Role::Status);
        let infos = info::fields(ident, fields);
        let key_checks = fields.iter().map(Field::key_checks);
        let rule_checks = info::rule_checks(self.own.written_rules(), fields);
        let default = needs_default.then(|| {
            let fields = fields.iter().map(Field::in_default);
            quote! {
                #[automatically_derived]
                impl ::core::default::Default for #ident {
                    fn default() -> Self {
                        Self { #(#fields),* }
                    }
                }
            }
        });
        let schemars_transform = quote!(#ident::__opkit_schema());
        quote! {
            #derives
            #[serde(crate = "::opkit::__private::serde")]
            #[schemars(crate = "::opkit::__private::schemars", transform = #schemars_transform)]
            #input

            #[automatically_derived]
            impl #ident {
                #(#defaults)*

                fn __opkit_schema() -> ::opkit::__private::kinds::SchemaTable {
                    ::opkit::__private::kinds::SchemaTable {
                        properties: &[#(#rows),*],
                        own: #own,
                        has_defaults: #has_defaults,
                    }
                }
            }

            #default

            #infos
            #(#key_checks)*
            #rule_checks
        }
    }
}
