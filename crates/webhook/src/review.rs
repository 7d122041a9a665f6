//! The reviews of authentication and authorization: objects with a `spec`, whose response is the
//! same object with a `status`. The functions do no I/O.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Kind of a review, with the versions that are accepted. The first is the default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReviewKind {
    pub(crate) kind: &'static str,
    pub(crate) versions: [&'static str; 2],
}

/// Decoded review.
#[derive(Debug)]
pub(crate) struct ReviewMessage<T> {
    pub(crate) api_version: &'static str,
    pub(crate) uid: String,
    pub(crate) spec: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<T> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    spec: Option<T>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    uid: Option<String>,
}

impl ReviewKind {
    /// Decodes a review.
    ///
    /// # Errors
    /// A sentence about the part that is missing or not valid.
    pub(crate) fn parse<T: DeserializeOwned + Default>(
        &self,
        body: &[u8],
    ) -> Result<ReviewMessage<T>, String> {
        let review: Review<T> = serde_json::from_slice(body)
            .map_err(|error| format!("cannot decode the {}: {error}", self.kind))?;
        let (sent, kind) = (&review.kind, self.kind);
        if !sent.is_empty() && *sent != kind {
            return Err(format!("the body is a {sent:?}, expected {kind}"));
        }
        let version = review.api_version.as_str();
        let known = self.versions.into_iter().find(|it| *it == version);
        let [first, _] = self.versions;
        let api_version = match known {
            Some(version) => version,
            None if version.is_empty() => first,
            None => {
                let problem = format!("no kind {kind:?} is registered for version {version:?}");
                return Err(problem);
            }
        };
        Ok(ReviewMessage {
            api_version,
            uid: review.metadata.uid.unwrap_or_default(),
            spec: review.spec.unwrap_or_default(),
        })
    }

    /// Returns the response with this status.
    pub(crate) fn response(
        &self,
        api_version: Option<&'static str>,
        uid: &str,
        status: &Value,
    ) -> Value {
        let [first, _] = self.versions;
        let mut metadata = json!({});
        if let (false, Some(metadata)) = (uid.is_empty(), metadata.as_object_mut()) {
            metadata.insert("uid".to_owned(), uid.into());
        }
        json!({
            "apiVersion": api_version.unwrap_or(first), "kind": self.kind, "metadata": metadata,
            "spec": {}, "status": status,
        })
    }
}
