//! Printer columns: what `kubectl get` shows.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, LitStr};

use crate::words::{COLUMN, Value, Word};

/// A printer column.
pub(crate) struct Column {
    name: String,
    pub(crate) path: String,
    /// If it is not written, it comes from the schema of what the path leads to.
    type_: Option<String>,
    description: Option<String>,
    priority: i32,
}

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const SHAPE: &str = "printcolumn(\"Ready\", condition = \"Ready\")";

impl Column {
    fn new(name: &str, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            path: path.to_owned(),
            type_: None,
            description: None,
            priority: 0,
        }
    }

    /// `printcolumn("Ready", condition = "Ready")`, `printcolumn("Node", path = ".status.node")` or
    /// `printcolumn(age)` on a struct.
    pub(crate) fn of_struct(word: &Word) -> syn::Result<Self> {
        if let Ok(words) = word.list(COLUMN)
            && let Some(first) = words.first()
            && first.is("age")
        {
            first.flag()?;
            let mut column = Self::new("Age", ".metadata.creationTimestamp");
            for word in words.iter().skip(1) {
                column.set(word)?;
            }
            return Ok(column);
        }
        let (name, words) = word.named_list(COLUMN, SHAPE)?;
        let mut column = Self::new(&name.value(), "");
        for word in &words {
            column.set(word)?;
        }
        match column.path.is_empty() {
            false => Ok(column),
            true => {
                let name = name.value();
                let message = format!(
                    "what does the column show? write `printcolumn({name:?}, path = \".status...\")` or `condition = \"Ready\"`"
                );
                Err(Error::new(word.name.span(), message))
            }
        }
    }

    /// `printcolumn = "Image"` or `printcolumn("Image", priority = 1)` on a field.
    pub(crate) fn of_field(word: &Word, json: &str) -> syn::Result<Self> {
        let path = format!(".spec.{json}");
        if let Value::Expr(_) = word.value {
            return Ok(Self::new(&word.string()?.value(), &path));
        }
        let (name, words) = word.named_list(COLUMN, "printcolumn = \"Image\"")?;
        let mut column = Self::new(&name.value(), &path);
        for word in &words {
            if word.is("path") || word.is("condition") || word.is("age") {
                let message = format!(
                    "`{}` is misplaced: a column of a field shows the field; write it on the struct",
                    word.name
                );
                return Err(Error::new(word.name.span(), message));
            }
            column.set(word)?;
        }
        Ok(column)
    }

    fn set(&mut self, word: &Word) -> syn::Result<()> {
        match word.name.to_string().as_str() {
            "path" => self.path = path(&word.string()?)?,
            "condition" => {
                let condition = word.string()?.value();
                self.path = format!(".status.conditions[?(@.type=='{condition}')].status");
                self.type_ = Some("string".to_owned());
            }
            "priority" => {
                let priority = i32::try_from(word.count()?);
                self.priority = priority.map_err(|_| word.expected("priority = 1"))?;
            }
            "type_" => {
                let type_ = word.string()?;
                if !TYPES.contains(&type_.value().as_str()) {
                    let message = format!("`type_` is one of {}", TYPES.join(", "));
                    return Err(Error::new_spanned(type_, message));
                }
                self.type_ = Some(type_.value());
            }
            "description" => self.description = Some(word.string()?.value()),
            _ => return Err(word.expected(SHAPE)),
        }
        Ok(())
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
        quote!(::opkit::__private::kinds::Column {
            name: #name,
            path: #path,
            type_: #type_,
            description: #description,
            priority: #priority,
        })
    }
}

/// A JSON path within an object.
pub(crate) fn path(path: &LitStr) -> syn::Result<String> {
    match path.value() {
        text if [".spec", ".status", ".metadata"]
            .iter()
            .any(|start| text.starts_with(start)) =>
        {
            Ok(text)
        }
        text => Err(Error::new_spanned(
            path,
            format!("a path starts with `.spec`, `.status` or `.metadata`: {text:?} does not"),
        )),
    }
}
