//! From the words of a field, or of its elements, to the keywords of its schema.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, ExprLit, Lit, LitStr};

use crate::types::Class;
use crate::words::{RULE, Word};

/// The parts of a schema that the words of one attribute set.
#[derive(Default)]
pub(crate) struct Keywords {
    /// Keyword and value, in the order in which they were written.
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

/// A CEL rule.
pub(crate) struct Rule {
    rule: String,
    message: Option<String>,
    reason: Option<String>,
    field: Option<String>,
}

/// The words that limit values: the class that each limits, and the keyword of the schema.
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

/// The other words that need a class.
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
    /// Takes in a word; whether it is one of those that this module knows.
    pub(crate) fn take(&mut self, word: &Word, class: Class) -> syn::Result<bool> {
        check_class(word, class)?;
        if let Some((name, _, keyword)) = LIMITS.iter().find(|(name, ..)| word.is(name)) {
            let limit = match class {
                Class::Integer => word.integer()?,
                _ if *name == "min" || *name == "max" => word.integer()?,
                _ => word.count()?,
            };
            match *name {
                "min" => self.min = Some(limit),
                "max" => self.max = Some(limit),
                "min_length" => self.min_length = Some(limit),
                "max_length" => self.max_length = Some(limit),
                _ => {}
            }
            self.keywords.push((keyword, Keyword::Integer(limit)));
            return self.check_order(word).map(|()| true);
        }
        match word.name.to_string().as_str() {
            "pattern" => self.text("pattern", word.string()?),
            "format" => self.text("format", word.string()?),
            "nullable" => {
                word.flag()?;
                self.flag("nullable");
            }
            "list_set" => {
                word.flag()?;
                self.list_type("set");
            }
            "list_atomic" => {
                word.flag()?;
                self.list_type("atomic");
            }
            "list_map" => {
                self.list_type("map");
                let keys = Keyword::Texts(keys(word)?);
                self.keywords.push(("x-kubernetes-list-map-keys", keys));
            }
            "struct_type" => {
                let kind = word.string()?;
                if !["atomic", "granular"].contains(&kind.value().as_str()) {
                    let message = "write `struct_type = \"atomic\"` or `\"granular\"`";
                    return Err(Error::new_spanned(kind, message));
                }
                self.text("x-kubernetes-map-type", kind);
            }
            "embedded_resource" => {
                word.flag()?;
                let object = Keyword::Text("object".to_owned());
                self.keywords.push(("type", object));
                self.flag("x-kubernetes-embedded-resource");
                self.flag("x-kubernetes-preserve-unknown-fields");
            }
            "rule" => self.rules.push(Rule::parse(word)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds a rule of opkit's own.
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

    /// Checks that no lower limit is above its upper one.
    fn check_order(&self, word: &Word) -> syn::Result<()> {
        let limits = [
            ("min", self.min, "max", self.max),
            ("min_length", self.min_length, "max_length", self.max_length),
        ];
        for (low, min, high, max) in limits {
            if let (Some(min), Some(max)) = (min, max)
                && min > max
            {
                let message = format!("{low} = {min} is above {high} = {max}");
                return Err(Error::new(word.name.span(), message));
            }
        }
        Ok(())
    }

    /// The keywords as a `&'static [(&'static str, Keyword)]`.
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

    /// The rules as a `&'static [Rule]`.
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

    /// The rule, whose violation is reported at a field below.
    pub(crate) fn at(mut self, field: String) -> Self {
        self.field = Some(field);
        self
    }

    pub(crate) fn parse(word: &Word) -> syn::Result<Self> {
        let shape = "rule(\"self.a <= self.b\", message = \"a is above b\")";
        let (rule, words) = word.named_list(RULE, shape)?;
        let mut parsed = Self {
            rule: rule.value(),
            message: None,
            reason: None,
            field: None,
        };
        for word in &words {
            match word.name.to_string().as_str() {
                "message" => parsed.message = Some(word.string()?.value()),
                "field" => parsed.field = Some(field_path(&word.string()?)?),
                _ => parsed.reason = Some(reason(word)?),
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

/// The path of a field as rules name it: with a dot at its start.
fn field_path(path: &LitStr) -> syn::Result<String> {
    match path.value() {
        path if path.starts_with('.') => Ok(path),
        name => Err(Error::new_spanned(
            path,
            format!("a field path starts with a dot: `field = \".{name}\"`"),
        )),
    }
}

fn reason(word: &Word) -> syn::Result<String> {
    if let Expr::Path(path) = word.expr()?
        && let Some(name) = path.path.get_ident().map(ToString::to_string)
        && REASONS.contains(&name.as_str())
    {
        return Ok(name);
    }
    let message = format!("`reason` is one of {}", REASONS.join(", "));
    Err(Error::new_spanned(word.expr()?, message))
}

/// The keys of `list_map = "name"` or `list_map = ["name", "protocol"]`.
fn keys(word: &Word) -> syn::Result<Vec<String>> {
    let text = |expr: &Expr| match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text.value()),
        _ => None,
    };
    let expr = word.expr()?;
    let keys = match expr {
        Expr::Array(array) => array.elems.iter().map(text).collect(),
        expr => text(expr).map(|key| vec![key]),
    };
    match keys {
        Some(keys) if !keys.is_empty() => Ok(keys),
        _ => Err(word.expected("list_map = \"name\"")),
    }
}

/// Checks that the word fits the type of its field; of a type that is not known, only its schema
/// knows.
fn check_class(word: &Word, class: Class) -> syn::Result<()> {
    let limits = LIMITS.iter().map(|(name, class, _)| (*name, *class));
    let mut needs = limits.chain(CLASSES);
    let Some((name, needed)) = needs.find(|(name, _)| word.is(name)) else {
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
        "`{name}` is for {}, and this is {}{hint}",
        needed.noun(),
        class.noun()
    );
    Err(Error::new(word.name.span(), message))
}
