//! Lists, complete or in pages.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::Deserialize;

use crate::{ListOptions, RequestError};

/// Number of objects per page when a whole list is read; client-go's value.
const PAGE: u32 = 500;

/// Objects of a kind, and the metadata of the list.
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
    /// Metadata of the list itself.
    #[serde(default)]
    pub metadata: ListMeta,
    /// Objects of the list. A server may write an empty list as `null`.
    #[serde(default = "Vec::new", deserialize_with = "null_as_empty")]
    pub items: Vec<K>,
}

fn null_as_empty<'de, D: serde::Deserializer<'de>, K: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<K>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl<K> ObjectList<K> {
    /// Returns the resourceVersion of the list, after which a watch can start.
    pub fn resource_version(&self) -> &str {
        self.metadata
            .resource_version
            .as_deref()
            .unwrap_or_default()
    }

    /// Returns the continue token, which requests the next page, or `None` on the last page.
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

/// Reads all pages of a list and joins them. All pages have the resourceVersion of the first page.
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
        let response = page(next.clone()).await;
        let list = match response {
            // Objects of the pages read so far may be deleted since, so the pages are dropped.
            Err(error) if error.is_expired() && whole.is_some() => {
                let mut once = options.clone();
                once.limit = 0;
                once.continue_token = None;
                return page(once).await;
            }
            response => response?,
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
