//! Converts the arguments for a field, a type, or the elements of a field to schema keywords.

mod class;
mod limits;
mod rule;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, ExprLit, Lit, LitStr};

use crate::arguments::{Argument, DOCS};
use crate::literal;
use crate::types::Class;

pub(crate) use class::check_literal;
pub(crate) use limits::Limits;
pub(crate) use rule::Rule;

/// Schema keywords and CEL rules from the arguments of one attribute.
#[derive(Default)]
pub(crate) struct Keywords {
    /// Schema keywords and their values, in the order in which they were written.
    keywords: Vec<(&'static str, Keyword)>,
    rules: Vec<Rule>,
    pub(crate) limits: Limits,
    /// JSON texts of the values in `enum(...)`.
    pub(crate) allowed: Vec<String>,
    /// Keys of `list_map = ...`.
    pub(crate) map_keys: Vec<LitStr>,
    /// Whether the schema of the type is replaced, as by `schemaless` and `type_ = "string"`.
    pub(crate) replaces_schema: bool,
}

enum Keyword {
    Bool(bool),
    Integer(i64),
    /// JSON text.
    Json(String),
    Text(String),
    Texts(Vec<String>),
}

/// Types of JSON schema.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

impl Keywords {
    /// Adds the schema keyword or CEL rule that an argument sets. Returns false if the argument
    /// sets neither.
    pub(crate) fn take(&mut self, argument: &Argument, class: Class) -> syn::Result<bool> {
        class::check(argument, class)?;
        if self.take_limit(argument, class)? || self.take_flag(argument)? {
            return Ok(true);
        }
        match argument.name.to_string().as_str() {
            "pattern" => {
                let pattern = argument.string()?;
                if let Some(error) = opkit_syntax::regexp::error(&pattern.value()) {
                    let message = format!("pattern is not valid in Go's syntax: {error}");
                    return Err(Error::new_spanned(pattern, message));
                }
                self.text("pattern", &pattern);
            }
            "format" => self.text("format", &argument.string()?),
            "title" => self.text("title", &argument.string()?),
            "description" => self.text("description", &argument.string()?),
            "enum" => self.take_enum(argument, class)?,
            "example" => {
                let example = literal::json(argument.expr()?)?;
                let example = example.ok_or_else(|| argument.expected("example = \"...\""))?;
                self.keywords.push(("example", Keyword::Json(example)));
            }
            "external_docs" => self.take_external_docs(argument)?,
            "type_" => {
                let type_ = argument.string()?;
                if !TYPES.contains(&type_.value().as_str()) {
                    let message = format!("`type_` must be one of {}", TYPES.join(", "));
                    return Err(Error::new_spanned(type_, message));
                }
                self.text("type", &type_);
                self.replaces_schema = true;
            }
            "list_map" => {
                self.keyword_text("x-kubernetes-list-type", "map");
                self.map_keys = map_keys(argument)?;
                let keys = self.map_keys.iter().map(LitStr::value).collect();
                let keys = Keyword::Texts(keys);
                self.keywords.push(("x-kubernetes-list-map-keys", keys));
            }
            "struct_type" | "map_type" => {
                let name = &argument.name;
                let kind = argument.string()?;
                if !["atomic", "granular"].contains(&kind.value().as_str()) {
                    let message = format!("write `{name} = \"atomic\"` or `{name} = \"granular\"`");
                    return Err(Error::new_spanned(kind, message));
                }
                self.text("x-kubernetes-map-type", &kind);
            }
            "rule" => self.rules.push(Rule::parse(argument)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the keywords of an argument without a value. Returns false if the argument is not one
    /// of these.
    fn take_flag(&mut self, argument: &Argument) -> syn::Result<bool> {
        let name = argument.name.to_string();
        match name.as_str() {
            "nullable" => self.flag("nullable"),
            "list_set" => self.keyword_text("x-kubernetes-list-type", "set"),
            "list_atomic" => self.keyword_text("x-kubernetes-list-type", "atomic"),
            "embedded_resource" => {
                self.keyword_text("type", "object");
                self.flag("x-kubernetes-embedded-resource");
                self.flag("x-kubernetes-preserve-unknown-fields");
            }
            "preserve_unknown_fields" => self.flag("x-kubernetes-preserve-unknown-fields"),
            "int_or_string" => {
                self.flag("x-kubernetes-int-or-string");
                self.replaces_schema = true;
            }
            "schemaless" => self.replaces_schema = true,
            "unique_items" => {
                let message = "API servers refuse `uniqueItems`: write `list_set`";
                return Err(Error::new(argument.name.span(), message));
            }
            _ => return Ok(false),
        }
        argument.flag().map(|()| true)
    }

    fn take_enum(&mut self, argument: &Argument, class: Class) -> syn::Result<()> {
        for value in argument.literals()? {
            let Some(json) = literal::json(&value)? else {
                let message = "write numbers or strings: the values of an enum are literals";
                return Err(Error::new_spanned(value, message));
            };
            class::check_literal("this value", &value, class)?;
            if self.allowed.contains(&json) {
                let message = format!("{json} is listed twice");
                return Err(Error::new_spanned(value, message));
            }
            self.allowed.push(json);
        }
        let values = format!("[{}]", self.allowed.join(","));
        self.keywords.push(("enum", Keyword::Json(values)));
        Ok(())
    }

    fn take_external_docs(&mut self, argument: &Argument) -> syn::Result<()> {
        let (mut url, mut description) = (None, None);
        for argument in argument.list(DOCS)? {
            let text = literal::quoted(&argument.string()?.value());
            match argument.is("url") {
                true => url = Some(text),
                false => description = Some(text),
            }
        }
        let Some(url) = url else {
            return Err(argument.expected("external_docs(url = \"https://...\")"));
        };
        let description = description.map(|text| format!(",\"description\":{text}"));
        let description = description.unwrap_or_default();
        let docs = Keyword::Json(format!("{{\"url\":{url}{description}}}"));
        self.keywords.push(("externalDocs", docs));
        Ok(())
    }

    /// Adds a CEL rule that opkit generates.
    pub(crate) fn rule(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Returns the CEL rules that the user wrote.
    pub(crate) fn written_rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.is_written())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keywords.is_empty() && self.rules.is_empty()
    }

    fn flag(&mut self, keyword: &'static str) {
        self.keywords.push((keyword, Keyword::Bool(true)));
    }

    fn text(&mut self, keyword: &'static str, text: &LitStr) {
        self.keyword_text(keyword, &text.value());
    }

    fn keyword_text(&mut self, keyword: &'static str, text: &str) {
        self.keywords
            .push((keyword, Keyword::Text(text.to_owned())));
    }

    /// Generates an expression of type `Part` with the keywords and the CEL rules.
    pub(crate) fn tokens(&self) -> TokenStream {
        let keywords = self.keywords.iter().map(|(name, keyword)| {
            let value = match keyword {
                Keyword::Bool(value) => quote!(Bool(#value)),
                Keyword::Integer(value) => quote!(Integer(#value)),
                Keyword::Json(value) => quote!(Json(#value)),
                Keyword::Text(value) => quote!(Text(#value)),
                Keyword::Texts(values) => quote!(Texts(&[#(#values),*])),
            };
            quote!((#name, ::opkit::__private::kinds::Keyword::#value))
        });
        let rules = self.rules.iter().map(Rule::tokens);
        quote!(::opkit::__private::kinds::Part {
            keywords: &[#(#keywords),*],
            rules: &[#(#rules),*],
        })
    }
}

/// Parses the keys of `list_map = "name"` or `list_map = ["name", "protocol"]`.
fn map_keys(argument: &Argument) -> syn::Result<Vec<LitStr>> {
    let text = |expr: &Expr| match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text.clone()),
        _ => None,
    };
    let keys: Option<Vec<LitStr>> = match argument.expr()? {
        Expr::Array(array) => array.elems.iter().map(text).collect(),
        expr => text(expr).map(|key| vec![key]),
    };
    let keys = match keys {
        Some(keys) if !keys.is_empty() => keys,
        _ => return Err(argument.expected("list_map = \"name\"")),
    };
    for (at, key) in keys.iter().enumerate() {
        if keys
            .iter()
            .take(at)
            .any(|before| before.value() == key.value())
        {
            let message = format!("the key {:?} is listed twice", key.value());
            return Err(Error::new_spanned(key, message));
        }
    }
    Ok(keys)
}
