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

/// Pages of a list that is read to its end, which are joined. All pages have the resourceVersion of
/// the first page.
///
/// The caller sends the requests. With an async closure that does, the futures of the callers would
/// not be `Send` for every lifetime, and could not be used in a reconcile function.
#[derive(Debug)]
pub(crate) struct Pages<'a, K> {
    options: &'a ListOptions,
    next: ListOptions,
    whole: Option<ObjectList<K>>,
}

impl<'a, K> Pages<'a, K> {
    pub(crate) fn new(options: &'a ListOptions) -> Self {
        let mut next = options.clone();
        if next.limit == 0 {
            next.limit = PAGE;
        }
        Self {
            options,
            next,
            whole: None,
        }
    }

    /// Returns the options of the next request.
    pub(crate) fn next(&self) -> &ListOptions {
        &self.next
    }

    /// Adds the response to the request. Returns the whole list after the last page.
    pub(crate) fn add(
        &mut self,
        page: Result<ObjectList<K>, RequestError>,
    ) -> Result<Option<ObjectList<K>>, RequestError> {
        let page = match page {
            // Objects of the pages read so far may be deleted since, so the pages are dropped, and
            // the list is read in one request.
            Err(error) if error.is_expired() && self.whole.is_some() => {
                self.whole = None;
                self.next = self.options.clone();
                self.next.limit = 0;
                self.next.continue_token = None;
                return Ok(None);
            }
            page => page?,
        };
        let token = page.continue_token().map(str::to_owned);
        let mut whole = match self.whole.take() {
            Some(mut whole) => {
                whole.items.extend(page.items);
                whole
            }
            None => page,
        };
        match token {
            Some(token) => {
                self.next.continue_token = Some(token);
                self.whole = Some(whole);
                Ok(None)
            }
            None => {
                whole.metadata.continue_ = None;
                whole.metadata.remaining_item_count = None;
                Ok(Some(whole))
            }
        }
    }
}
