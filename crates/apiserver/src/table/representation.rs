//! Which form of an answer the client accepts.
//!
//! Clients list alternatives in order of preference and always end with plain JSON, so quality values are
//! not read: the first alternative that this server can make wins.

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

/// The client accepts nothing that this server can make.
#[derive(Debug, thiserror::Error)]
#[error("only the following media types are accepted: application/json")]
pub(crate) struct NotAcceptable;

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
    /// The form that an `Accept` header asks for. A Table carries metadata until
    /// [`Representation::including`] says otherwise, since that is a query parameter.
    pub(crate) fn negotiate(accept: &str) -> Result<Self, NotAcceptable> {
        if accept.trim().is_empty() {
            return Ok(Self::Object);
        }
        accept.split(',').find_map(Self::of).ok_or(NotAcceptable)
    }

    /// The same with another `includeObject`, which only a Table has.
    pub(crate) fn including(self, include: IncludeObject) -> Self {
        match self {
            Self::Table { .. } => Self::Table { include },
            other => other,
        }
    }

    /// What one alternative of the header asks for, if we can make it.
    fn of(alternative: &str) -> Option<Self> {
        let mut parts = alternative.split(';').map(str::trim);
        let media = parts.next()?;
        if !matches!(media, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let (mut form, mut group, mut version) = ("", "", "");
        for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
            match name.trim() {
                "as" => form = value.trim(),
                "g" => group = value.trim(),
                "v" => version = value.trim(),
                _ => {}
            }
        }
        match (form, group, version) {
            ("", ..) => Some(Self::Object),
            ("Table", "meta.k8s.io", "v1") => Some(Self::Table {
                include: IncludeObject::default(),
            }),
            ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => {
                Some(Self::PartialObjectMetadata)
            }
            ("PartialObjectMetadataList", "meta.k8s.io", "v1") => {
                Some(Self::PartialObjectMetadataList)
            }
            _ => None,
        }
    }
}
