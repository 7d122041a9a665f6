//! The table of messages, and the text it is read from.
//!
//! A block per message: its form, its name, and the kinds that it is, as `group/version/kind`
//! (`*/kind` is in every group version). Then a line per field: number, JSON name, type.
//!
//! ```text
//! message core.v1.Volume
//! 1 name string
//! 2 (inline) core.v1.VolumeSource
//! ```
//!
//! - `message` is an object of its fields, `list` is its only field, `choice` is the one of its
//!   fields with the highest number that is set.
//! - `name?` is left out of JSON when it is empty, unless its type is a pointer; `(inline)` puts
//!   the fields of a message among those of the message around it.
//! - `*T` is a pointer, `[]T` a list, `map[string]T` a map.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::error::ProtobufError;

const TEXT: &str = include_str!("../../data/v1.36/protobuf.txt");

/// Every message that the built-in kinds reach.
#[derive(Debug)]
pub(super) struct Table {
    messages: Vec<Message>,
    /// By `group/version/kind`.
    kinds: HashMap<&'static str, usize>,
}

/// One message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// By number.
    fields: Vec<(u32, Field)>,
}

/// What the JSON of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Message,
    List,
    Choice,
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    /// The JSON name.
    pub(super) name: &'static str,
    pub(super) cardinality: Cardinality,
    pub(super) type_: Type,
    /// JSON has the field only if it holds something.
    pub(super) omit_empty: bool,
}

/// How many values a field has, and where they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cardinality {
    One,
    List,
    Map,
    Inline,
}

/// The type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Bytes,
    Double,
    Int32,
    Int64,
    String,
    Duration,
    IntOrString,
    Json,
    MicroTime,
    Quantity,
    Time,
    /// A message, by its place in the table.
    Message(usize),
}

impl Table {
    /// The one table, read at its first use.
    pub(super) fn shared() -> Result<&'static Self, ProtobufError> {
        static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();
        TABLE
            .get_or_init(|| Self::parse(TEXT))
            .as_ref()
            .map_err(|line| ProtobufError::Table { line: line.clone() })
    }

    /// The message of a kind.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let key = format!("{api_version}/{kind}");
        let index = self.kinds.get(key.as_str());
        let index = index.or_else(|| self.kinds.get(format!("*/{kind}").as_str()));
        self.message(*index?)
    }

    /// The message at a place that a [`Type`] names.
    pub(super) fn message(&self, index: usize) -> Option<&Message> {
        self.messages.get(index)
    }

    /// The message of a name.
    #[cfg(test)]
    pub(super) fn named(&self, name: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.name == name)
    }

    /// Reads the text. The error is the line that makes no sense.
    fn parse(text: &'static str) -> Result<Self, String> {
        let lines = || {
            text.lines()
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
        };
        let is_header = |line: &str| line.starts_with(|first: char| first.is_ascii_lowercase());
        let mut indices = HashMap::new();
        for (index, line) in lines().filter(|line| is_header(line)).enumerate() {
            let name = line.split(' ').nth(1).ok_or(line)?;
            indices.insert(name, index);
        }
        let mut table = Self {
            messages: Vec::with_capacity(indices.len()),
            kinds: HashMap::new(),
        };
        for line in lines() {
            if is_header(line) {
                table.header(line).ok_or(line)?;
            } else {
                let field = field(line, &indices).ok_or(line)?;
                table.messages.last_mut().ok_or(line)?.fields.push(field);
            }
        }
        Ok(table)
    }

    fn header(&mut self, line: &'static str) -> Option<()> {
        let mut words = line.split(' ');
        let form = match words.next()? {
            "message" => Form::Message,
            "list" => Form::List,
            "choice" => Form::Choice,
            _ => return None,
        };
        let name = words.next()?;
        self.kinds
            .extend(words.map(|kind| (kind, self.messages.len())));
        self.messages.push(Message {
            name,
            form,
            fields: Vec::new(),
        });
        Some(())
    }
}

impl Message {
    /// The field of a number.
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        let at = self
            .fields
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        self.fields.get(at).map(|(_, field)| field)
    }
}

fn field(line: &'static str, indices: &HashMap<&str, usize>) -> Option<(u32, Field)> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let name = words.next()?;
    let declared = words.next()?;
    let (cardinality, element) = if let Some(element) = declared.strip_prefix("[]") {
        (Cardinality::List, element)
    } else if let Some(element) = declared.strip_prefix("map[string]") {
        (Cardinality::Map, element)
    } else if name == "(inline)" {
        (Cardinality::Inline, declared)
    } else {
        (Cardinality::One, declared)
    };
    let pointer = element.starts_with('*');
    let type_ = match element.trim_start_matches('*') {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "string" => Type::String,
        "duration" => Type::Duration,
        "intorstring" => Type::IntOrString,
        "json" => Type::Json,
        "microtime" => Type::MicroTime,
        "quantity" => Type::Quantity,
        "time" => Type::Time,
        message => Type::Message(*indices.get(message)?),
    };
    let (name, omit_empty) = match name.strip_suffix('?') {
        Some(name) => (name, !pointer),
        None => (name, false),
    };
    Some((
        number,
        Field {
            name,
            cardinality,
            type_,
            omit_empty,
        },
    ))
}

#[cfg(test)]
mod tests;
