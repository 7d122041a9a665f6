//! CEL rules in `rule(...)`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, LitStr};

use crate::arguments::{Argument, RULE};
use crate::cel;

const REASONS: [&str; 4] = [
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
];

/// CEL validation rule.
pub(crate) struct Rule {
    rule: String,
    message: Option<String>,
    message_expression: Option<LitStr>,
    reason: Option<String>,
    field: Option<String>,
    has_optional_old_self: bool,
    /// Literals that the user wrote: the rule, and the field path.
    written: Option<(LitStr, Option<LitStr>)>,
}

impl Rule {
    /// Creates a rule that opkit generates.
    pub(crate) fn new(rule: String, message: String) -> Self {
        Self {
            rule,
            message: Some(message),
            message_expression: None,
            reason: None,
            field: None,
            has_optional_old_self: false,
            written: None,
        }
    }

    /// Sets the path of the field that the API server reports when the rule is violated.
    pub(crate) fn at(mut self, field: String) -> Self {
        self.field = Some(field);
        self
    }

    /// Parses `rule("CEL", ...)`, and checks the syntax of its expressions.
    pub(crate) fn parse(argument: &Argument) -> syn::Result<Self> {
        let name = &argument.name;
        let shape = format!("{name}(\"self.a <= self.b\", message = \"a is above b\")");
        let (rule, arguments) = argument.named_list(RULE, &shape)?;
        let parsed_rule = cel::parse(&rule)?;
        let mut parsed = Self {
            rule: rule.value(),
            message: None,
            message_expression: None,
            reason: None,
            field: None,
            has_optional_old_self: false,
            written: None,
        };
        let mut field = None;
        for argument in &arguments {
            match argument.name.to_string().as_str() {
                "message" => parsed.message = Some(message(&argument.string()?)?),
                "message_expression" => {
                    let expression = argument.string()?;
                    cel::parse(&expression)?;
                    parsed.message_expression = Some(expression);
                }
                "reason" => parsed.reason = Some(reason(argument)?),
                "optional_old_self" => {
                    argument.flag()?;
                    if !cel::uses_old_self(&parsed_rule) {
                        let message = "`optional_old_self` needs a rule that uses `oldSelf`";
                        return Err(Error::new(argument.name.span(), message));
                    }
                    parsed.has_optional_old_self = true;
                }
                _ => {
                    let path = argument.string()?;
                    parsed.field = Some(field_path(&path)?);
                    field = Some(path);
                }
            }
        }
        if rule.value().contains('\n') && parsed.message.is_none() {
            let message = "a rule of several lines needs `message = \"...\"`";
            return Err(Error::new_spanned(rule, message));
        }
        parsed.written = Some((rule, field));
        Ok(parsed)
    }

    /// Reports whether the user wrote the rule.
    pub(crate) fn is_written(&self) -> bool {
        self.written.is_some()
    }

    /// Checks the fields of `self` that the rule uses, and the field that it reports. A rule that
    /// opkit generates is not checked.
    pub(crate) fn check_fields(&self, scope: &cel::Scope) -> syn::Result<()> {
        let Some((rule, field)) = &self.written else {
            return Ok(());
        };
        scope.check(rule, self.has_optional_old_self)?;
        if let Some(expression) = &self.message_expression {
            // The API server falls back to the message if the expression fails.
            scope.check_names(expression)?;
        }
        match field {
            Some(field) => scope.check_path(field),
            None => Ok(()),
        }
    }

    /// Returns the literal of the rule, and the paths of fields below `self` that the rule uses.
    /// There are none for a rule that opkit generates.
    pub(crate) fn paths(&self) -> Option<(&LitStr, Vec<Vec<String>>)> {
        let (rule, _) = self.written.as_ref()?;
        let parsed = cel::parse(rule).ok()?;
        // The fields of an optional `oldSelf` are behind a method.
        Some((rule, cel::paths(&parsed)))
    }

    pub(crate) fn tokens(&self) -> TokenStream {
        let Self { rule, .. } = self;
        let option = |text: Option<&String>| match text {
            Some(text) => quote!(::core::option::Option::Some(#text)),
            None => quote!(::core::option::Option::None),
        };
        let message_expression = self.message_expression.as_ref().map(LitStr::value);
        let message_expression = option(message_expression.as_ref());
        let (message, reason, field) = (
            option(self.message.as_ref()),
            option(self.reason.as_ref()),
            option(self.field.as_ref()),
        );
        let has_optional_old_self = self.has_optional_old_self;
        quote!(::opkit::__private::kinds::Rule {
            rule: #rule,
            message: #message,
            message_expression: #message_expression,
            reason: #reason,
            field_path: #field,
            optional_old_self: #has_optional_old_self,
        })
    }
}

fn message(text: &LitStr) -> syn::Result<String> {
    let message = text.value();
    if message.trim().is_empty() || message.contains(['\n', '\r']) {
        let message = "a message is one line of text";
        return Err(Error::new_spanned(text, message));
    }
    Ok(message)
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
