//! `#[opkit::schema]` on an enum with data: an object of which exactly one alternative is set.
//!
//! With `union = "type"`, the field `type` names the alternative: `{type: Battery, battery: {..}}`.
//! Without it, the only field is the alternative: `{battery: {..}}`. schemars and serde have no
//! such representations that Kubernetes accepts, so this module implements their traits.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Type};

use super::one_of;
use super::variant::{Enum, Variant, description};
use crate::arguments::Argument;
use crate::derives::Derives;
use crate::errors::Errors;
use crate::keywords::{Keywords, Rule};
use crate::names;

/// Enum with data.
struct Union {
    input: DeriveInput,
    /// Name of the field that names the alternative.
    tag: Option<String>,
    members: Vec<Member>,
    /// Variant for alternatives that the schema does not list.
    other: Option<Ident>,
    own: Keywords,
}

/// Alternative of a union.
struct Member {
    ident: Ident,
    /// Value of the tag.
    value: String,
    /// Name of the field with the data. A variant without data has no field in a union with a tag.
    field: Option<String>,
    data: Option<Type>,
    description: Option<String>,
}

pub(super) fn expand(parsed: Enum, tag: Option<&Argument>) -> syn::Result<TokenStream> {
    let tag = match tag {
        Some(argument) => {
            let tag = argument.string()?;
            if tag.value().is_empty() {
                return Err(Error::new_spanned(tag, "write `union = \"type\"`"));
            }
            Some(tag)
        }
        None => None,
    };
    let (mut members, mut errors) = (Vec::<Member>::new(), Errors::default());
    for variant in parsed.variants.iter().filter(|variant| !variant.is_other) {
        let member = Member::of(variant, parsed.case.as_deref(), tag.is_some());
        if members.iter().any(|before| before.value == member.value) {
            let message = format!("two variants have the JSON value {:?}", member.value);
            errors.push(Error::new(variant.ident.span(), message));
        }
        if let (Some(tag), Some(field)) = (&tag, &member.field)
            && tag.value() == *field
        {
            let message = format!("the field of `{}` has the name of the union", variant.ident);
            errors.push(Error::new_spanned(tag, message));
        }
        members.push(member);
    }
    let members = errors.none_or(members)?;
    let other = parsed.variants.into_iter().find(|variant| variant.is_other);
    let mut union = Union {
        input: parsed.input,
        tag: tag.map(|tag| tag.value()),
        members,
        other: other.map(|variant| variant.ident),
        own: parsed.own,
    };
    union.add_rules();
    let derives = Derives::take(&mut union.input.attrs)?.plain_tokens();
    let (input, schema) = (&union.input, union.schema());
    let (serialize, deserialize) = (union.serialize(), union.deserialize());
    Ok(quote! {
        #derives
        #input
        #schema
        #serialize
        #deserialize
    })
}

impl Member {
    fn of(variant: &Variant, case: Option<&str>, has_tag: bool) -> Self {
        let name = variant.ident.to_string();
        let value = names::variant(&name, case.unwrap_or_default());
        let field = names::variant(&name, "camelCase");
        let field = match (&variant.rename, has_tag) {
            (Some(rename), false) => rename.clone(),
            (Some(rename), true) => names::variant(rename, "camelCase"),
            (None, _) => field,
        };
        Self {
            ident: variant.ident.clone(),
            value: variant.rename.clone().unwrap_or(value),
            field: (variant.data.is_some() || !has_tag).then_some(field),
            data: variant.data.clone(),
            description: variant.description.clone(),
        }
    }
}

fn option(text: Option<&String>) -> TokenStream {
    match text {
        Some(text) => quote!(::core::option::Option::Some(#text)),
        None => quote!(::core::option::Option::None),
    }
}

impl Union {
    /// Adds the CEL rules that exactly one alternative is set.
    fn add_rules(&mut self) {
        let fields = self
            .members
            .iter()
            .filter_map(|it| Some((&it.value, it.field.as_ref()?)));
        let rules: Vec<Rule> = match &self.tag {
            Some(tag) => {
                let rule = |(value, field): (&String, &String)| {
                    let (tag_name, name) = (names::cel(tag), names::cel(field));
                    let rule = format!("(self.{tag_name} == '{value}') == has(self.{name})");
                    let message = format!("{field} must be set if {tag} is {value}, and only then");
                    Rule::new(rule, message).at(format!(".{field}"))
                };
                fields.map(rule).collect()
            }
            None => {
                let fields: Vec<String> = fields.map(|(_, field)| field.clone()).collect();
                vec![one_of::rule_of(
                    &fields,
                    "== 1",
                    "exactly one of the fields in [{}] must be set",
                )]
            }
        };
        rules.into_iter().for_each(|rule| self.own.rule(rule));
    }

    fn schema(&self) -> TokenStream {
        let ident = &self.input.ident;
        let name = ident.to_string();
        let members = self.members.iter().map(|member| {
            let (value, field) = (&member.value, option(member.field.as_ref()));
            let description = option(member.description.as_ref());
            let schema = match &member.data {
                Some(data) => quote!(::core::option::Option::Some(
                    ::opkit::__private::schemars::SchemaGenerator::subschema_for::<#data>
                )),
                None => quote!(::core::option::Option::None),
            };
            quote!(::opkit::__private::kinds::Member {
                value: #value,
                field: #field,
                description: #description,
                schema: #schema,
            })
        });
        let tag = option(self.tag.as_ref());
        let text = description(&self.input.attrs);
        let (text, own) = (option(text.as_ref()), self.own.tokens());
        quote! {
            #[automatically_derived]
            impl ::opkit::__private::schemars::JsonSchema for #ident {
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    ::std::borrow::Cow::Borrowed(#name)
                }

                fn schema_id() -> ::std::borrow::Cow<'static, str> {
                    ::std::borrow::Cow::Borrowed(::core::concat!(::core::module_path!(), "::", #name))
                }

                fn json_schema(
                    generator: &mut ::opkit::__private::schemars::SchemaGenerator,
                ) -> ::opkit::__private::schemars::Schema {
                    const UNION: ::opkit::__private::kinds::Union =
                        ::opkit::__private::kinds::Union {
                            tag: #tag,
                            description: #text,
                            members: &[#(#members),*],
                            own: #own,
                        };
                    UNION.schema(generator)
                }
            }
        }
    }

    fn serialize(&self) -> TokenStream {
        let ident = &self.input.ident;
        let arms = self.members.iter().map(|member| {
            let (name, value) = (&member.ident, &member.value);
            let tag = self.tag.as_ref().map(|tag| {
                quote!(object.serialize_entry(#tag, #value)?;)
            });
            let length = usize::from(self.tag.is_some()) + usize::from(member.field.is_some());
            let (pattern, field) = match (&member.field, &member.data) {
                (Some(field), Some(_)) => (
                    quote!(Self::#name(value)),
                    quote!(object.serialize_entry(#field, value)?;),
                ),
                (Some(field), None) => (
                    quote!(Self::#name),
                    quote!(object.serialize_entry(#field, &::opkit::__private::kinds::Empty {})?;),
                ),
                (None, _) => (quote!(Self::#name), quote!()),
            };
            quote! {
                #pattern => {
                    let mut object = serializer.serialize_map(::core::option::Option::Some(#length))?;
                    #tag
                    #field
                    object.end()
                }
            }
        });
        let other = self.other.as_ref().map(|other| {
            quote!(Self::#other(value) => ::opkit::__private::serde::Serialize::serialize(value, serializer),)
        });
        quote! {
            #[automatically_derived]
            impl ::opkit::__private::serde::Serialize for #ident {
                fn serialize<S: ::opkit::__private::serde::Serializer>(
                    &self,
                    serializer: S,
                ) -> ::core::result::Result<S::Ok, S::Error> {
                    use ::opkit::__private::serde::ser::SerializeMap as _;
                    match self {
                        #(#arms)*
                        #other
                    }
                }
            }
        }
    }

    fn deserialize(&self) -> TokenStream {
        let ident = &self.input.ident;
        let with_field = self.members.iter().enumerate().filter_map(|(at, member)| {
            let field = member.field.as_ref()?;
            let name = format_ident!("member_{at}");
            let ty = match &member.data {
                Some(data) => quote!(#data),
                None => quote!(::opkit::__private::kinds::Empty),
            };
            Some(quote! {
                #[serde(rename = #field, default)]
                #name: ::core::option::Option<#ty>,
            })
        });
        let tag_field = self.tag.as_ref().map(|tag| {
            quote! {
                #[serde(rename = #tag)]
                tag: ::std::string::String,
            }
        });
        let read = match &self.other {
            // The other variant holds the whole object.
            Some(_) => quote! {
                let whole = <::opkit::__private::serde_json::Value as
                    ::opkit::__private::serde::Deserialize>::deserialize(deserializer)?;
                let object: Object = ::opkit::__private::serde::Deserialize::deserialize(&whole)
                    .map_err(|error| <D::Error as ::opkit::__private::serde::de::Error>::custom(error))?;
            },
            None => quote! {
                let object: Object = ::opkit::__private::serde::Deserialize::deserialize(deserializer)?;
            },
        };
        let choose = match &self.tag {
            Some(_) => self.choose_by_tag(),
            None => self.choose_by_field(),
        };
        quote! {
            #[automatically_derived]
            impl<'de> ::opkit::__private::serde::Deserialize<'de> for #ident {
                fn deserialize<D: ::opkit::__private::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    #[derive(::opkit::__private::serde::Deserialize)]
                    #[serde(crate = "::opkit::__private::serde")]
                    struct Object {
                        #tag_field
                        #(#with_field)*
                    }
                    #read
                    #choose
                }
            }
        }
    }

    fn choose_by_tag(&self) -> TokenStream {
        let values = self.members.iter().map(|member| &member.value);
        let arms = self.members.iter().enumerate().map(|(at, member)| {
            let (value, name) = (&member.value, &member.ident);
            match &member.field {
                Some(field) => {
                    let member = format_ident!("member_{at}");
                    quote! {
                        #value => match object.#member {
                            ::core::option::Option::Some(value) => {
                                ::core::result::Result::Ok(Self::#name(value))
                            }
                            ::core::option::Option::None => ::core::result::Result::Err(
                                <D::Error as ::opkit::__private::serde::de::Error>::missing_field(#field),
                            ),
                        },
                    }
                }
                None => quote!(#value => ::core::result::Result::Ok(Self::#name),),
            }
        });
        let unknown = match &self.other {
            Some(other) => quote!(_ => ::core::result::Result::Ok(Self::#other(whole)),),
            None => quote! {
                tag => ::core::result::Result::Err(
                    <D::Error as ::opkit::__private::serde::de::Error>::unknown_variant(
                        tag,
                        &[#(#values),*],
                    ),
                ),
            },
        };
        quote! {
            match object.tag.as_str() {
                #(#arms)*
                #unknown
            }
        }
    }

    fn choose_by_field(&self) -> TokenStream {
        let fields: Vec<&str> = self
            .members
            .iter()
            .filter_map(|member| member.field.as_deref())
            .collect();
        let message = format!("exactly one of {} must be set", fields.join(", "));
        let members: Vec<Ident> = (0..self.members.len())
            .map(|at| format_ident!("member_{at}"))
            .collect();
        let choices = self.members.iter().zip(&members).map(|(member, field)| {
            let name = &member.ident;
            let variant = match &member.data {
                Some(_) => quote!(Self::#name(value)),
                None => quote!({ let ::opkit::__private::kinds::Empty {} = value; Self::#name }),
            };
            quote! {
                if let ::core::option::Option::Some(value) = object.#field {
                    return ::core::result::Result::Ok(#variant);
                }
            }
        });
        let none = match &self.other {
            Some(other) => quote! {
                if set == 0 {
                    return ::core::result::Result::Ok(Self::#other(whole));
                }
            },
            None => quote!(),
        };
        quote! {
            let set = [#(object.#members.is_some()),*].into_iter().filter(|is_set| *is_set).count();
            #none
            if set == 1 {
                #(#choices)*
            }
            ::core::result::Result::Err(
                <D::Error as ::opkit::__private::serde::de::Error>::custom(#message),
            )
        }
    }
}
