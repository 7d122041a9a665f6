//! Which form of an answer the client accepts: the media type, and what is shown of an object.

use bytes::Bytes;
use opkit_apimachinery::protobuf;
use serde_json::Value;

use crate::representation::{IncludeObject, Representation};
use crate::status::{ApiError, ApiResult};

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Media {
    #[default]
    Json,
    Yaml,
    Protobuf,
}

/// In the order in which a server offers them: the first is what `*/*` gets.
const OFFERED: [Media; 3] = [Media::Json, Media::Yaml, Media::Protobuf];

impl Media {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => protobuf::CONTENT_TYPE,
        }
    }

    /// The content type of the frames of a watch.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            other => other.content_type(),
        }
    }

    /// The bytes of a body.
    pub(crate) fn encode(self, body: &Value) -> ApiResult<Bytes> {
        let internal =
            |error: String| ApiError::internal(format!("cannot write the answer: {error}"));
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

    /// What an error is written as: parameters that ask for another form do not fit a Status, and
    /// who accepts nothing gets JSON.
    pub(crate) fn of_error(accept: &str) -> Self {
        let plain = clauses(accept).into_iter().filter(|c| c.form.is_empty());
        plain
            .flat_map(|clause| OFFERED.into_iter().find(|media| clause.names(*media)))
            .next()
            .unwrap_or_default()
    }
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offer {
    /// The objects are of a kind that has no protobuf.
    pub(crate) is_custom: bool,
    pub(crate) is_watch: bool,
}

/// Why nothing that the client accepts can be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NotAcceptable {
    /// No media type of the header is served at all.
    Type,
    /// None in this form.
    Form,
    /// Not as a stream.
    Stream,
}

/// The form that an `Accept` header asks for: of the alternatives, by their quality and then in
/// their order, the first that can be made. A Table carries metadata until
/// [`Representation::including`] says otherwise, since that is a query parameter.
pub(crate) fn negotiate(
    accept: &str,
    offer: Offer,
) -> Result<(Media, Representation), NotAcceptable> {
    if accept.trim().is_empty() {
        return Ok((Media::Json, Representation::Object));
    }
    let clauses = clauses(accept);
    // The router in front of built-in kinds knows whole names only.
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
        for media in OFFERED.into_iter().filter(|media| clause.names(*media)) {
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

/// One alternative of the header.
#[derive(Debug, Default)]
struct Clause<'a> {
    media: &'a str,
    quality: f32,
    form: &'a str,
    group: &'a str,
    version: &'a str,
    stream: &'a str,
}

/// The alternatives, the best first.
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

    /// Whether the clause names the media type.
    fn names(&self, media: Media) -> bool {
        matches!(self.media, "*/*" | "application/*") || self.media == media.content_type()
    }

    /// What the clause asks to be shown, if it can be made.
    fn representation(&self, media: Media, offer: Offer) -> Option<Representation> {
        let streams = self.stream == "watch" && media != Media::Yaml;
        if !self.stream.is_empty() && !streams {
            return None;
        }
        match (self.form, self.group, self.version) {
            ("", ..) if offer.is_custom && media == Media::Protobuf => None,
            ("", ..) => Some(Representation::Object),
            // Tables have no protobuf.
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
