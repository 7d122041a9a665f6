//! Content negotiation: the media type and the representation that the client accepts.

use bytes::Bytes;
use opkit_apimachinery::protobuf;
use serde_json::Value;

use crate::representation::{IncludeObject, Representation};
use crate::status::{ApiError, ApiResult};

/// The encoding of a body.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Media {
    #[default]
    Json,
    Yaml,
    Protobuf,
}

/// The media types of the server in order of preference: `*/*` selects the first.
const OFFERED: [Media; 3] = [Media::Json, Media::Yaml, Media::Protobuf];

impl Media {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => protobuf::CONTENT_TYPE,
        }
    }

    /// Returns the content type of a watch response in this media type.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            other => other.content_type(),
        }
    }

    /// Encodes a body in this media type.
    pub(crate) fn encode(self, body: &Value) -> ApiResult<Bytes> {
        let internal =
            |error: String| ApiError::internal(format!("cannot encode the response: {error}"));
        match self {
            Self::Json => Ok(body.to_string().into()),
            Self::Yaml => serde_saphyr::to_string(body)
                .map(Bytes::from)
                .map_err(|error| internal(error.to_string())),
            Self::Protobuf => protobuf::encode(body)
                .map(Bytes::from)
                .map_err(|error| internal(error.to_string())),
        }
    }

    /// Decodes a body in this media type. Returns `None` if the body is malformed.
    pub(crate) fn decode(self, body: &[u8]) -> Option<Value> {
        match self {
            Self::Json => serde_json::from_slice(body).ok(),
            Self::Yaml => serde_saphyr::from_slice(body).ok(),
            Self::Protobuf => protobuf::decode(body).ok(),
        }
    }

    /// Returns the media type of an error response. Media types in the `Accept` header that ask for
    /// another representation, such as a Table, are skipped, because an error is always a `Status`.
    /// The default is JSON.
    pub(crate) fn of_error(accept: &str) -> Self {
        let plain = clauses(accept).into_iter().filter(|c| c.form.is_empty());
        plain
            .flat_map(|clause| OFFERED.into_iter().find(|media| clause.includes(*media)))
            .next()
            .unwrap_or_default()
    }
}

/// The properties of a request on which the offered media types depend.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offer {
    /// Whether the objects are custom resources, which have no protobuf encoding.
    pub(crate) is_custom: bool,
    pub(crate) is_watch: bool,
}

/// The reason why the client accepts nothing that the server can send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NotAcceptable {
    /// The server cannot send any of the media types in the header.
    Type,
    /// The server can send a media type in the header, but not in the requested representation.
    Form,
    /// The media type cannot be used for a watch.
    Stream,
}

/// Returns the media type and the representation for an `Accept` header. Of the alternatives that
/// the server can send, the one with the highest quality is chosen. Among equal qualities, a media
/// type without wildcards comes before one with wildcards, and then the order in the header
/// decides. A Table has `includeObject=Metadata`; the caller sets another value of the query
/// parameter with [`Representation::including`].
pub(crate) fn negotiate(
    accept: &str,
    offer: Offer,
) -> Result<(Media, Representation), NotAcceptable> {
    if accept.trim().is_empty() {
        return Ok((Media::Json, Representation::Object));
    }
    let clauses = clauses(accept);
    // The router of built-in kinds in Kubernetes does not know `application/*`.
    let is_known = |clause: &Clause<'_>| {
        clause.media == "*/*"
            || OFFERED
                .iter()
                .any(|media| media.content_type() == clause.media)
    };
    if !offer.is_custom && !clauses.iter().any(is_known) {
        return Err(NotAcceptable::Type);
    }
    for clause in &clauses {
        for media in OFFERED.into_iter().filter(|media| clause.includes(*media)) {
            let Some(representation) = clause.representation(media, offer) else {
                continue;
            };
            return match (offer.is_watch, media) {
                (true, Media::Yaml) => Err(NotAcceptable::Stream),
                _ => Ok((media, representation)),
            };
        }
    }
    Err(NotAcceptable::Form)
}

/// One alternative of an `Accept` header.
#[derive(Debug, Default)]
struct Clause<'a> {
    media: &'a str,
    quality: f32,
    form: &'a str,
    group: &'a str,
    version: &'a str,
    stream: &'a str,
}

/// Returns the alternatives of an `Accept` header, the preferred one first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|left, right| {
        let wildcards = |clause: &Clause<'_>| clause.media.matches('*').count();
        right
            .quality
            .total_cmp(&left.quality)
            .then_with(|| wildcards(left).cmp(&wildcards(right)))
    });
    clauses
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = match parts.next()? {
            "*" => "*/*",
            media if media.matches('/').count() == 1 => media,
            _ => return None,
        };
        let mut clause = Self {
            media,
            quality: 1.0,
            ..Self::default()
        };
        for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
            let value = value.trim();
            match name.trim() {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                "as" => clause.form = value,
                "g" => clause.group = value,
                "v" => clause.version = value,
                "stream" => clause.stream = value,
                _ => {}
            }
        }
        Some(clause)
    }

    /// Reports whether this alternative of the header includes `media`. `*/*` includes every media
    /// type.
    fn includes(&self, media: Media) -> bool {
        matches!(self.media, "*/*" | "application/*") || self.media == media.content_type()
    }

    /// Returns the representation that this alternative of the header asks for, or `None` if the
    /// server does not support it.
    fn representation(&self, media: Media, offer: Offer) -> Option<Representation> {
        let streams = self.stream == "watch" && media != Media::Yaml;
        if !self.stream.is_empty() && !streams {
            return None;
        }
        match (self.form, self.group, self.version) {
            ("", ..) if offer.is_custom && media == Media::Protobuf => None,
            ("", ..) => Some(Representation::Object),
            // Tables have no protobuf encoding.
            ("Table", "meta.k8s.io", "v1") if media != Media::Protobuf => {
                Some(Representation::Table {
                    include: IncludeObject::default(),
                })
            }
            ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => {
                Some(Representation::PartialObjectMetadata)
            }
            ("PartialObjectMetadataList", "meta.k8s.io", "v1") => {
                Some(Representation::PartialObjectMetadataList)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
