//! Printer columns of `kubectl get`.

use opkit_syntax::jsonpath;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, LitStr};

use crate::arguments::{Argument, COLUMN, Value};

/// Printer column.
pub(crate) struct Column {
    name: String,
    pub(crate) path: String,
    /// Type of the column. `None` means the type in the schema of the field at the path.
    type_: Option<String>,
    description: Option<String>,
    format: Option<String>,
    priority: i32,
    /// Literal of the path, if the user wrote it.
    literal: Option<LitStr>,
}

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
/// Formats of columns that API servers accept.
const FORMATS: [&str; 9] = [
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "date",
    "date-time",
    "password",
    "binary",
];
const SHAPE: &str = "printcolumn(\"Ready\", condition = \"Ready\")";

impl Column {
    fn new(name: &str, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            path: path.to_owned(),
            type_: None,
            description: None,
            format: None,
            priority: 0,
            literal: None,
        }
    }

    /// Parses `printcolumn("Ready", condition = "Ready")`, `printcolumn("Node", path =
    /// ".status.node")` or `printcolumn(age)` on a struct.
    pub(crate) fn of_struct(argument: &Argument) -> syn::Result<Self> {
        if let Ok(arguments) = argument.list(COLUMN)
            && let Some(first) = arguments.first()
            && first.is("age")
        {
            first.flag()?;
            let mut column = Self::new("Age", ".metadata.creationTimestamp");
            for argument in arguments.iter().skip(1) {
                column.set(argument)?;
            }
            return Ok(column);
        }
        let (name, arguments) = argument.named_list(COLUMN, SHAPE)?;
        let mut column = Self::new(&name.value(), "");
        for argument in &arguments {
            column.set(argument)?;
        }
        match column.path.is_empty() {
            false => Ok(column),
            true => {
                let name = name.value();
                let message = format!(
                    "the column has no path: write `printcolumn({name:?}, path = \".status...\")` or `condition = \"Ready\"`"
                );
                Err(Error::new(argument.name.span(), message))
            }
        }
    }

    /// Parses `printcolumn = "Image"` or `printcolumn("Image", priority = 1)` on a field.
    pub(crate) fn of_field(argument: &Argument, json: &str) -> syn::Result<Self> {
        let path = format!(".spec.{json}");
        if let Value::Expr(_) = argument.value {
            return Ok(Self::new(&argument.string()?.value(), &path));
        }
        let (name, arguments) = argument.named_list(COLUMN, "printcolumn = \"Image\"")?;
        let mut column = Self::new(&name.value(), &path);
        for argument in &arguments {
            if argument.is("path") || argument.is("condition") || argument.is("age") {
                let message = format!(
                    "`{}` is not allowed here: a column on a field shows that field; write the column on the struct",
                    argument.name
                );
                return Err(Error::new(argument.name.span(), message));
            }
            column.set(argument)?;
        }
        Ok(column)
    }

    fn set(&mut self, argument: &Argument) -> syn::Result<()> {
        match argument.name.to_string().as_str() {
            "path" => {
                let literal = argument.string()?;
                self.path = path(&literal)?;
                self.literal = Some(literal);
            }
            "format" => {
                let format = argument.string()?;
                if !FORMATS.contains(&format.value().as_str()) {
                    let message =
                        format!("`format` of a column must be one of {}", FORMATS.join(", "));
                    return Err(Error::new_spanned(format, message));
                }
                self.format = Some(format.value());
            }
            "condition" => {
                let condition = argument.string()?.value();
                self.path = format!(".status.conditions[?(@.type=='{condition}')].status");
                self.type_ = Some("string".to_owned());
            }
            "priority" => {
                let priority = i32::try_from(argument.count()?);
                self.priority = priority.map_err(|_| argument.expected("priority = 1"))?;
            }
            "type_" => {
                let type_ = argument.string()?;
                if !TYPES.contains(&type_.value().as_str()) {
                    let message = format!("`type_` must be one of {}", TYPES.join(", "));
                    return Err(Error::new_spanned(type_, message));
                }
                self.type_ = Some(type_.value());
            }
            "description" => self.description = Some(argument.string()?.value()),
            _ => return Err(argument.expected(SHAPE)),
        }
        Ok(())
    }

    /// Returns the title of the column and the literal of its path, if the user wrote a path.
    pub(crate) fn written_path(&self) -> Option<(&str, &LitStr)> {
        Some((&self.name, self.literal.as_ref()?))
    }

    pub(crate) fn tokens(&self) -> TokenStream {
        let Self {
            name,
            path,
            priority,
            ..
        } = self;
        let option = |text: &Option<String>| match text {
            Some(text) => quote!(::core::option::Option::Some(#text)),
            None => quote!(::core::option::Option::None),
        };
        let (type_, description) = (option(&self.type_), option(&self.description));
        let format = option(&self.format);
        quote!(::opkit::__private::kinds::Column {
            name: #name,
            path: #path,
            type_: #type_,
            description: #description,
            format: #format,
            priority: #priority,
        })
    }
}

/// Returns the JSON path in a literal, after checking its syntax and that it starts with `.spec`,
/// `.status` or `.metadata`.
pub(crate) fn path(path: &LitStr) -> syn::Result<String> {
    let text = path.value();
    if let Some(error) = jsonpath::error(&text) {
        let message = format!("JSONPath, column {}: {}", error.column, error.message);
        return Err(Error::new_spanned(path, message));
    }
    let roots = ["spec", "status", "metadata"];
    let fields = jsonpath::leading_fields(&text);
    match fields
        .first()
        .is_some_and(|root| roots.contains(&root.as_str()))
    {
        true => Ok(text),
        false => Err(Error::new_spanned(
            path,
            format!("a path must start with `.spec`, `.status` or `.metadata`: {text:?} does not"),
        )),
    }
}
