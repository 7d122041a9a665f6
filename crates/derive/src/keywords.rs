//! Converts the arguments for a field, or for the elements of a field, to schema keywords.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, ExprLit, Lit, LitStr};

use crate::arguments::{Argument, RULE};
use crate::types::Class;

/// Schema keywords and CEL rules from the arguments of one attribute.
#[derive(Default)]
pub(crate) struct Keywords {
    /// Schema keywords and their values, in the order in which they were written.
    keywords: Vec<(&'static str, Keyword)>,
    rules: Vec<Rule>,
    pub(crate) min: Option<i64>,
    pub(crate) max: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
}

enum Keyword {
    Bool(bool),
    Integer(i64),
    Text(String),
    Texts(Vec<String>),
}

/// CEL validation rule.
pub(crate) struct Rule {
    rule: String,
    message: Option<String>,
    reason: Option<String>,
    field: Option<String>,
}

/// Arguments that limit the values of a field: name of the argument, required class of the field's
/// type, and schema keyword.
const LIMITS: [(&str, Class, &str); 8] = [
    ("min", Class::Integer, "minimum"),
    ("max", Class::Integer, "maximum"),
    ("min_length", Class::String, "minLength"),
    ("max_length", Class::String, "maxLength"),
    ("min_items", Class::List, "minItems"),
    ("max_items", Class::List, "maxItems"),
    ("min_properties", Class::Map, "minProperties"),
    ("max_properties", Class::Map, "maxProperties"),
];

/// Other arguments that are allowed only on a field with a type of this class.
const CLASSES: [(&str, Class); 6] = [
    ("pattern", Class::String),
    ("format", Class::String),
    ("list_map", Class::List),
    ("list_set", Class::List),
    ("list_atomic", Class::List),
    ("items", Class::List),
];

const REASONS: [&str; 4] = [
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
];

impl Keywords {
    /// Adds the schema keyword or CEL rule that an argument sets. Returns false if the argument
    /// sets neither.
    pub(crate) fn take(&mut self, argument: &Argument, class: Class) -> syn::Result<bool> {
        check_class(argument, class)?;
        if let Some((name, _, keyword)) = LIMITS.iter().find(|(name, ..)| argument.is(name)) {
            let limit = match class {
                Class::Integer => argument.integer()?,
                _ if *name == "min" || *name == "max" => argument.integer()?,
                _ => argument.count()?,
            };
            match *name {
                "min" => self.min = Some(limit),
                "max" => self.max = Some(limit),
                "min_length" => self.min_length = Some(limit),
                "max_length" => self.max_length = Some(limit),
                _ => {}
            }
            self.keywords.push((keyword, Keyword::Integer(limit)));
            return self.check_order(argument).map(|()| true);
        }
        match argument.name.to_string().as_str() {
            "pattern" => self.text("pattern", argument.string()?),
            "format" => self.text("format", argument.string()?),
            "nullable" => {
                argument.flag()?;
                self.flag("nullable");
            }
            "list_set" => {
                argument.flag()?;
                self.list_type("set");
            }
            "list_atomic" => {
                argument.flag()?;
                self.list_type("atomic");
            }
            "list_map" => {
                self.list_type("map");
                let keys = Keyword::Texts(keys(argument)?);
                self.keywords.push(("x-kubernetes-list-map-keys", keys));
            }
            "struct_type" => {
                let kind = argument.string()?;
                if !["atomic", "granular"].contains(&kind.value().as_str()) {
                    let message =
                        "write `struct_type = \"atomic\"` or `struct_type = \"granular\"`";
                    return Err(Error::new_spanned(kind, message));
                }
                self.text("x-kubernetes-map-type", kind);
            }
            "embedded_resource" => {
                argument.flag()?;
                let object = Keyword::Text("object".to_owned());
                self.keywords.push(("type", object));
                self.flag("x-kubernetes-embedded-resource");
                self.flag("x-kubernetes-preserve-unknown-fields");
            }
            "rule" => self.rules.push(Rule::parse(argument)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds a CEL rule that opkit generates.
    pub(crate) fn rule(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keywords.is_empty() && self.rules.is_empty()
    }

    fn flag(&mut self, keyword: &'static str) {
        self.keywords.push((keyword, Keyword::Bool(true)));
    }

    fn text(&mut self, keyword: &'static str, text: LitStr) {
        self.keywords.push((keyword, Keyword::Text(text.value())));
    }

    fn list_type(&mut self, list_type: &str) {
        let list_type = Keyword::Text(list_type.to_owned());
        self.keywords.push(("x-kubernetes-list-type", list_type));
    }

    /// Checks that no lower limit is above the corresponding upper limit.
    fn check_order(&self, argument: &Argument) -> syn::Result<()> {
        let limits = [
            ("min", self.min, "max", self.max),
            ("min_length", self.min_length, "max_length", self.max_length),
        ];
        for (low, min, high, max) in limits {
            if let (Some(min), Some(max)) = (min, max)
                && min > max
            {
                let message = format!("{low} = {min} is above {high} = {max}");
                return Err(Error::new(argument.name.span(), message));
            }
        }
        Ok(())
    }

    /// Generates an expression of type `&'static [(&'static str, Keyword)]` with the keywords.
    pub(crate) fn keyword_tokens(&self) -> TokenStream {
        let keywords = self.keywords.iter().map(|(name, keyword)| {
            let value = match keyword {
                Keyword::Bool(value) => quote!(Bool(#value)),
                Keyword::Integer(value) => quote!(Integer(#value)),
                Keyword::Text(value) => quote!(Text(#value)),
                Keyword::Texts(values) => quote!(Texts(&[#(#values),*])),
            };
            quote!((#name, ::opkit::__private::kinds::Keyword::#value))
        });
        quote!(&[#(#keywords),*])
    }

    /// Generates an expression of type `&'static [Rule]` with the CEL rules.
    pub(crate) fn rule_tokens(&self) -> TokenStream {
        let rules = self.rules.iter().map(Rule::tokens);
        quote!(&[#(#rules),*])
    }
}

impl Rule {
    pub(crate) fn new(rule: String, message: String) -> Self {
        Self {
            rule,
            message: Some(message),
            reason: None,
            field: None,
        }
    }

    /// Sets the path of the field that the API server reports when the rule is violated.
    pub(crate) fn at(mut self, field: String) -> Self {
        self.field = Some(field);
        self
    }

    pub(crate) fn parse(argument: &Argument) -> syn::Result<Self> {
        let shape = "rule(\"self.a <= self.b\", message = \"a is above b\")";
        let (rule, arguments) = argument.named_list(RULE, shape)?;
        let mut parsed = Self {
            rule: rule.value(),
            message: None,
            reason: None,
            field: None,
        };
        for argument in &arguments {
            match argument.name.to_string().as_str() {
                "message" => parsed.message = Some(argument.string()?.value()),
                "field" => parsed.field = Some(field_path(&argument.string()?)?),
                _ => parsed.reason = Some(reason(argument)?),
            }
        }
        Ok(parsed)
    }

    fn tokens(&self) -> TokenStream {
        let Self { rule, .. } = self;
        let option = |text: &Option<String>| match text {
            Some(text) => quote!(::core::option::Option::Some(#text)),
            None => quote!(::core::option::Option::None),
        };
        let (message, reason, field) = (
            option(&self.message),
            option(&self.reason),
            option(&self.field),
        );
        quote!(::opkit::__private::kinds::Rule {
            rule: #rule,
            message: #message,
            reason: #reason,
            field_path: #field,
        })
    }
}

/// Returns the field path in a literal, after checking that the path starts with a dot.
fn field_path(path: &LitStr) -> syn::Result<String> {
    match path.value() {
        path if path.starts_with('.') => Ok(path),
        name => Err(Error::new_spanned(
            path,
            format!("a field path must start with a dot: write `field = \".{name}\"`"),
        )),
    }
}

fn reason(argument: &Argument) -> syn::Result<String> {
    if let Expr::Path(path) = argument.expr()?
        && let Some(name) = path.path.get_ident().map(ToString::to_string)
        && REASONS.contains(&name.as_str())
    {
        return Ok(name);
    }
    let message = format!("`reason` must be one of {}", REASONS.join(", "));
    Err(Error::new_spanned(argument.expr()?, message))
}

/// Parses the keys of `list_map = "name"` or `list_map = ["name", "protocol"]`.
fn keys(argument: &Argument) -> syn::Result<Vec<String>> {
    let text = |expr: &Expr| match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text.value()),
        _ => None,
    };
    let expr = argument.expr()?;
    let keys = match expr {
        Expr::Array(array) => array.elems.iter().map(text).collect(),
        expr => text(expr).map(|key| vec![key]),
    };
    match keys {
        Some(keys) if !keys.is_empty() => Ok(keys),
        _ => Err(argument.expected("list_map = \"name\"")),
    }
}

/// Checks that an argument is allowed on a field with a type of this class. The argument is not
/// checked if the type is user-defined, because the class is then unknown.
fn check_class(argument: &Argument, class: Class) -> syn::Result<()> {
    let limits = LIMITS.iter().map(|(name, class, _)| (*name, *class));
    let mut needs = limits.chain(CLASSES);
    let Some((name, needed)) = needs.find(|(name, _)| argument.is(name)) else {
        return Ok(());
    };
    if class == Class::Other || class == needed {
        return Ok(());
    }
    let bound = name.split_once('_').map_or(name, |(bound, _)| bound);
    let other = LIMITS.iter().find(|(other, limited, _)| {
        *limited == class && (*other == bound || other.starts_with(&format!("{bound}_")))
    });
    let hint = match other {
        Some((other, ..)) => format!(": did you mean `{other}`?"),
        None => String::new(),
    };
    let message = format!(
        "`{name}` applies to {}, but this field is {}{hint}",
        needed.noun(),
        class.noun()
    );
    Err(Error::new(argument.name.span(), message))
}
