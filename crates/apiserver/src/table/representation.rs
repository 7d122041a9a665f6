//! What is shown of an object.

/// How much of each object a row of a Table carries: the `includeObject` parameter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Representation {
    /// The object or list itself.
    Object,
    Table {
        include: IncludeObject,
    },
    PartialObjectMetadata,
    PartialObjectMetadataList,
}

impl IncludeObject {
    /// The value of the query parameter; None if it is not one of those allowed.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        match value {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

impl Representation {
    /// The same with another `includeObject`, which only a Table has.
    pub(crate) fn including(self, include: IncludeObject) -> Self {
        match self {
            Self::Table { .. } => Self::Table { include },
            other => other,
        }
    }
}
