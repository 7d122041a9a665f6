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
//! - `name?` is left out of JSON when it is empty, unless its type is a pointer; a struct without
//!   the mark is `{}` then. `(inline)` puts the fields of a message among those of the message
//!   around it.
//! - `*T` is a pointer, `[]T` a list, `map[string]T` a map.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use crate::error::ProtobufError;

const TEXT: &str = include_str!("../../data/v1.36/protobuf.txt");

/// The highest number that a field may have, as a table of all numbers is kept.
const NUMBER_MAX: usize = 1_000;

/// How many messages there are where inline messages are in each other, the outermost counted.
pub(super) const INLINE_MAX: usize = 3;

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
    /// Whether it is a kind, whose `apiVersion` and `kind` are in the envelope.
    pub(super) is_kind: bool,
    /// Whether fields of other messages stand among its own.
    pub(super) has_inline: bool,
    /// By number: numbers are small, and this is read for every field on the wire.
    fields: Vec<Option<Field>>,
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
    /// The number on the wire.
    pub(super) number: u32,
    /// The JSON name.
    pub(super) name: &'static str,
    pub(super) cardinality: Cardinality,
    pub(super) type_: Type,
    /// JSON has the field only if it holds something.
    pub(super) omit_empty: bool,
    /// Go has a pointer: protobuf has the field only if it is set.
    pub(super) is_pointer: bool,
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

impl Type {
    /// Whether its values may be packed, several in one.
    pub(super) fn is_varint(self) -> bool {
        matches!(self, Self::Bool | Self::Int32 | Self::Int64)
    }
}

/// The type of a message: what its fields are. It is a pair of pointers.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::MessageType;
///
/// assert!(MessageType::of("apps/v1", "Deployment").is_some());
/// assert!(MessageType::of("apps/v1", "DeploymentList").is_some());
/// assert!(MessageType::of("example.com/v1", "Robot").is_none());
/// ```
#[derive(Clone, Copy)]
pub struct MessageType {
    pub(super) table: &'static Table,
    pub(super) message: &'static Message,
}

impl MessageType {
    /// The message of a built-in kind, or of a list of it. None of a kind that is not built in:
    /// custom resources have no protobuf.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let table = Table::shared().ok()?;
        let message = table.kind(api_version, kind)?;
        Some(Self { table, message })
    }

    /// What Kubernetes calls the message, without the path of its module: `core.v1.Pod`.
    pub fn name(self) -> &'static str {
        self.message.name
    }
}

impl fmt::Debug for MessageType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("MessageType").field(&self.name()).finish()
    }
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

    /// Every kind: `apiVersion`, `kind` and its message.
    #[cfg(test)]
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, &Message)> {
        self.kinds.iter().filter_map(|(key, index)| {
            let (api_version, kind) = key.rsplit_once('/')?;
            Some((api_version, kind, self.message(*index)?))
        })
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
                let message = table.messages.last_mut().ok_or(line)?;
                message.has_inline |= field.cardinality == Cardinality::Inline;
                let fields = &mut message.fields;
                let at = usize::try_from(field.number).map_err(|_| line)?;
                if fields.len() > at || at > NUMBER_MAX {
                    return Err(line.to_owned());
                }
                fields.resize_with(at, || None);
                fields.push(Some(field));
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
        let kinds = self.kinds.len();
        self.kinds
            .extend(words.map(|kind| (kind, self.messages.len())));
        self.messages.push(Message {
            name,
            form,
            is_kind: self.kinds.len() > kinds,
            has_inline: false,
            fields: Vec::new(),
        });
        Some(())
    }
}

impl Message {
    /// The field of a number.
    #[inline]
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.fields.get(number as usize)?.as_ref()
    }

    /// The fields in the order of their numbers.
    pub(super) fn fields(&self) -> impl DoubleEndedIterator<Item = &Field> {
        self.fields.iter().flatten()
    }
}

fn field(line: &'static str, indices: &HashMap<&str, usize>) -> Option<Field> {
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
    Some(Field {
        number,
        name,
        cardinality,
        type_,
        omit_empty,
        is_pointer: pointer,
    })
}

#[cfg(test)]
mod tests;
