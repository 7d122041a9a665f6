//! The table of protobuf messages, and the format of the text from which the table is parsed.
//!
//! The text has a block per message. The first line of a block has the form of the message, its
//! name, and its kinds as `group/version/kind` (`*/kind` is in every group and version). Each
//! further line is a field: number, JSON name, type.
//!
//! ```text
//! message core.v1.Volume
//! 1 name string
//! 2 (inline) core.v1.VolumeSource
//! ```
//!
//! - A `message` is an object of its fields in JSON, a `list` is the value of its only field, and a
//!   `choice` is the value of the field with the highest number that is set.
//! - A field `name?` is omitted from JSON if it is empty, unless its type is a pointer. An empty
//!   struct without the `?` is `{}`.
//! - The fields of an `(inline)` message belong in JSON to the message that contains it.
//! - `*T` is a pointer, `[]T` a list, `map[string]T` a map.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use crate::error::ProtobufError;

const TEXT: &str = include_str!("../../data/v1.36/protobuf.txt");

/// Maximum field number. Fields are stored in a vector indexed by field number, which must stay
/// small.
const NUMBER_MAX: usize = 1_000;

/// Maximum nesting depth of inline messages, including the outermost message.
pub(super) const INLINE_MAX: usize = 3;

/// All protobuf messages that the built-in kinds use.
#[derive(Debug)]
pub(super) struct Table {
    messages: Vec<Message>,
    /// Index into `messages` for each `group/version/kind`.
    kinds: HashMap<&'static str, usize>,
}

/// One protobuf message, as listed in the table.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// Whether the message is that of a kind, whose `apiVersion` and `kind` are in the envelope.
    pub(super) is_kind: bool,
    /// Whether a field of the message is an inline message, whose fields belong in JSON to this
    /// message.
    pub(super) has_inline: bool,
    /// Fields, indexed by their numbers. The numbers are small, and decoding looks up every field.
    fields: Vec<Option<Field>>,
}

/// JSON form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Message,
    List,
    Choice,
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    /// Number of the field on the wire.
    pub(super) number: u32,
    /// JSON name of the field.
    pub(super) name: &'static str,
    pub(super) cardinality: Cardinality,
    pub(super) type_: Type,
    /// Whether JSON omits the field if it is empty.
    pub(super) omit_empty: bool,
    /// Whether the field is a pointer in Go. Protobuf then contains the field only if it is set.
    pub(super) is_pointer: bool,
}

/// How many values a field has, and how JSON arranges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cardinality {
    One,
    List,
    Map,
    Inline,
}

/// Type of one value of a field.
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
    /// A message; the number is the index of the message in the table.
    Message(usize),
}

impl Type {
    /// Reports whether values of this type are varints. Protobuf may pack several varints into one
    /// value.
    pub(super) fn is_varint(self) -> bool {
        matches!(self, Self::Bool | Self::Int32 | Self::Int64)
    }
}

/// Type of a protobuf message: its name and its fields. Cheap to copy: it contains two references.
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
    /// Returns the message type of a built-in kind or of its list kind. Returns `None` for other
    /// kinds: custom resources have no protobuf encoding.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let table = Table::shared().ok()?;
        let message = table.kind(api_version, kind)?;
        Some(Self { table, message })
    }

    /// Returns Kubernetes' name of the message without the Go module path, such as `core.v1.Pod`.
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
    /// Returns the shared table, which is parsed at its first use.
    pub(super) fn shared() -> Result<&'static Self, ProtobufError> {
        static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();
        TABLE
            .get_or_init(|| Self::parse(TEXT))
            .as_ref()
            .map_err(|line| ProtobufError::Table { line: line.clone() })
    }

    /// Returns the message of a built-in kind.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let key = format!("{api_version}/{kind}");
        let index = self.kinds.get(key.as_str());
        let index = index.or_else(|| self.kinds.get(format!("*/{kind}").as_str()));
        self.message(*index?)
    }

    /// Returns the message with this index, which is the index in a [`Type::Message`].
    pub(super) fn message(&self, index: usize) -> Option<&Message> {
        self.messages.get(index)
    }

    /// Returns the message with this name.
    #[cfg(test)]
    pub(super) fn named(&self, name: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.name == name)
    }

    /// Returns the `apiVersion`, the `kind` and the message of every built-in kind.
    #[cfg(test)]
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, &Message)> {
        self.kinds.iter().filter_map(|(key, index)| {
            let (api_version, kind) = key.rsplit_once('/')?;
            Some((api_version, kind, self.message(*index)?))
        })
    }

    /// Parses the text of the table. The error is the first line that is not valid.
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
    /// Returns the field with this number, or `None` if the message has no such field.
    #[inline]
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.fields.get(number as usize)?.as_ref()
    }

    /// Returns the fields in the order of their numbers.
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
