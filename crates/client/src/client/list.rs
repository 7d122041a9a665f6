//! Lists, whole or in pages.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::Deserialize;

use crate::{ListOptions, RequestError};

/// How many objects a page of a whole list has; client-go's.
const PAGE: u32 = 500;

/// Objects of a kind, and what the server says about all of them.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::ObjectList;
/// let list: ObjectList<ConfigMap> = serde_json::from_str(
///     r#"{"metadata": {"resourceVersion": "7", "continue": "abc"}, "items": [{"metadata": {"name": "a"}}]}"#,
/// )?;
/// assert_eq!(list.resource_version(), "7");
/// assert_eq!(list.continue_token(), Some("abc"));
/// assert_eq!(list.items.len(), 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(bound(deserialize = "K: Deserialize<'de>"))]
#[non_exhaustive]
pub struct ObjectList<K> {
    /// Of the list itself.
    #[serde(default)]
    pub metadata: ListMeta,
    /// The objects. A server writes none as `null`.
    #[serde(default = "Vec::new", deserialize_with = "or_none")]
    pub items: Vec<K>,
}

fn or_none<'de, D: serde::Deserializer<'de>, K: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<K>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl<K> ObjectList<K> {
    /// The version of the whole list, from which a watch can go on.
    pub fn resource_version(&self) -> &str {
        self.metadata
            .resource_version
            .as_deref()
            .unwrap_or_default()
    }

    /// What to ask for the next page with; none on the last one.
    pub fn continue_token(&self) -> Option<&str> {
        let token = self.metadata.continue_.as_deref();
        token.filter(|token| !token.is_empty())
    }
}

impl<K> IntoIterator for ObjectList<K> {
    type Item = K;
    type IntoIter = std::vec::IntoIter<K>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

/// Reads page after page. The whole has the version of the first page, as all pages have.
pub(crate) async fn all<K>(
    options: &ListOptions,
    mut page: impl AsyncFnMut(ListOptions) -> Result<ObjectList<K>, RequestError>,
) -> Result<ObjectList<K>, RequestError> {
    let mut next = options.clone();
    if next.limit == 0 {
        next.limit = PAGE;
    }
    let mut whole: Option<ObjectList<K>> = None;
    loop {
        let answer = page(next.clone()).await;
        let list = match answer {
            // Some of what was read may be gone since, so nothing of it is kept.
            Err(error) if error.is_expired() && whole.is_some() => {
                let mut once = options.clone();
                once.limit = 0;
                once.continue_token = None;
                return page(once).await;
            }
            answer => answer?,
        };
        let token = list.continue_token().map(str::to_owned);
        let whole = match &mut whole {
            Some(whole) => {
                whole.items.extend(list.items);
                whole
            }
            None => whole.insert(list),
        };
        match token {
            Some(token) => next.continue_token = Some(token),
            None => {
                whole.metadata.continue_ = None;
                whole.metadata.remaining_item_count = None;
                let metadata = whole.metadata.clone();
                let items = std::mem::take(&mut whole.items);
                return Ok(ObjectList { metadata, items });
            }
        }
    }
}
