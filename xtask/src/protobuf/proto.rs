//! Reader of a `generated.proto`: proto2 as Kubernetes' generator writes it, one declaration per
//! line.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// Declarations of one file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) package: String,
    pub(crate) messages: BTreeMap<String, Vec<Field>>,
}

/// Field of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) name: String,
    /// Type: a scalar, or a message with its package such as `core.v1.Pod`.
    pub(crate) type_: String,
    pub(crate) cardinality: Cardinality,
}

/// Number of values that a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cardinality {
    One,
    List,
    Map,
}

/// Parses the text of a file.
pub(crate) fn parse(text: &str) -> Result<File> {
    let mut file = File {
        package: String::new(),
        messages: BTreeMap::new(),
    };
    let mut message: Option<(String, Vec<Field>)> = None;
    let mut in_comment = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default().trim();
        if line.starts_with("/*") || in_comment {
            in_comment = !line.ends_with("*/");
            continue;
        }
        let at = || {
            format!(
                "line {} of the proto file of {}: {line}",
                index + 1,
                file.package
            )
        };
        match (&mut message, line) {
            (_, "") => {}
            (None, _) => {
                if let Some(package) = line.strip_prefix("package ") {
                    file.package = package.trim_end_matches(';').to_owned();
                } else if let Some(name) = line.strip_prefix("message ") {
                    message = Some((name.trim_end_matches([' ', '{']).to_owned(), Vec::new()));
                }
            }
            (Some(_), "}") => file.messages.extend(message.take()),
            (Some((_, fields)), _) => fields.push(field(line, &file.package).with_context(at)?),
        }
    }
    Ok(file)
}

/// Parses `repeated Container containers = 2;` or `map<string, bytes> data = 2;`.
fn field(line: &str, package: &str) -> Result<Field> {
    let (declared, number) = line
        .trim_end_matches(';')
        .split_once('=')
        .context("a field has no number")?;
    let (type_, name) = declared
        .trim()
        .rsplit_once(' ')
        .context("a field has no name")?;
    let (cardinality, type_) = if let Some(type_) = type_.strip_prefix("optional ") {
        (Cardinality::One, type_)
    } else if let Some(type_) = type_.strip_prefix("required ") {
        (Cardinality::One, type_)
    } else if let Some(type_) = type_.strip_prefix("repeated ") {
        (Cardinality::List, type_)
    } else if let Some(type_) = type_.strip_prefix("map<string,") {
        (Cardinality::Map, type_.trim_end_matches('>'))
    } else {
        bail!("a field is neither optional, required, repeated nor a map of strings");
    };
    let type_ = type_.trim();
    let is_message = type_.starts_with(|first: char| first.is_ascii_uppercase());
    Ok(Field {
        number: number
            .trim()
            .parse()
            .context("the number of a field is not valid")?,
        name: name.to_owned(),
        type_: match type_ {
            _ if is_message => super::short(&format!("{package}.{type_}")),
            _ if type_.contains('.') => super::short(type_),
            scalar => scalar.to_owned(),
        },
        cardinality,
    })
}
