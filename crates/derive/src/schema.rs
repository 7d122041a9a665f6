//! `#[opkit::schema]`, and what it has in common with a kind's spec and status: serde, schemars and
//! a table of what schemars does not know.

mod unit_enum;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields};

use crate::column::Column;
use crate::derives::Derives;
use crate::errors::Errors;
use crate::field::{Field, Role, refuse_foreign};
use crate::keywords::Keywords;
use crate::types::Class;
use crate::words::Word;

/// A struct that was read, and its fields with the attributes of serde and schemars.
pub(crate) struct Struct {
    input: DeriveInput,
    role: Role,
    pub(crate) derives: Derives,
    fields: Vec<Field>,
    /// What `#[opkit(...)]` on the struct adds.
    own: Keywords,
}

/// Expands `#[opkit::schema]`.
pub(crate) fn expand(attribute: TokenStream, mut input: DeriveInput) -> syn::Result<TokenStream> {
    if !attribute.is_empty() {
        let words = crate::words::parse(attribute, crate::words::STRUCT.and(crate::words::ENUM))?;
        if let Some(word) = words.first() {
            let name = &word.name;
            let message = format!("write `#[opkit({name}...)]` on a line of its own");
            return Err(Error::new(name.span(), message));
        }
    }
    match &input.data {
        Data::Enum(_) => unit_enum::expand(input),
        _ => {
            let words = crate::words::take(&mut input.attrs, crate::words::STRUCT)?;
            let mut parsed = Struct::parse(input, Role::Part)?;
            parsed.take(&words)?;
            Ok(parsed.tokens())
        }
    }
}

impl Struct {
    /// Reads a struct with named fields, whose `#[opkit(...)]` are taken out already.
    pub(crate) fn parse(mut input: DeriveInput, role: Role) -> syn::Result<Self> {
        refuse_foreign(&input.attrs)?;
        if !input.generics.params.is_empty() {
            let message = "a declared type has no generic parameters: its schema is one";
            return Err(Error::new_spanned(&input.generics, message));
        }
        let ident = input.ident.clone();
        let fields = match &mut input.data {
            Data::Struct(data) => match &mut data.fields {
                Fields::Named(fields) => fields,
                _ => {
                    return Err(Error::new_spanned(
                        &ident,
                        "a struct with named fields is needed",
                    ));
                }
            },
            _ => return Err(Error::new_spanned(&ident, "a struct is needed here")),
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
                let message = format!("two fields are {:?} on the wire", field.json);
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

    /// Takes in the words on the struct that are about its schema.
    pub(crate) fn take(&mut self, words: &[Word]) -> syn::Result<()> {
        for word in words {
            self.own.take(word, Class::Other)?;
        }
        Ok(())
    }

    pub(crate) fn ident(&self) -> &Ident {
        &self.input.ident
    }

    pub(crate) fn input(&self) -> &DeriveInput {
        &self.input
    }

    /// Adds an attribute for a derive that the user wrote.
    pub(crate) fn annotate(&mut self, attribute: syn::Attribute) {
        self.input.attrs.push(attribute);
    }

    pub(crate) fn has_field(&self, json: &str) -> bool {
        self.fields.iter().any(|field| field.json == json)
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.fields.iter().filter_map(|field| field.column.as_ref())
    }

    /// The struct with its derives, its table, and its defaults.
    pub(crate) fn tokens(mut self) -> TokenStream {
        // The derived `Default` would not know of the defaults that are declared.
        let needs_default = self.role == Role::Status || self.derives.has("Default");
        self.derives.remove("Default");
        let derives = self.derives.tokens(&[]);
        let Self {
            input, fields, own, ..
        } = &self;
        let ident = &input.ident;
        let defaults = fields.iter().filter_map(Field::default_function);
        let rows = fields.iter().filter_map(Field::table_row);
        let (rules, has_defaults) = (own.rule_tokens(), self.role != Role::Status);
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
                        rules: #rules,
                        has_defaults: #has_defaults,
                    }
                }
            }

            #default
        }
    }
}
