//! Get and list.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Handler, list_options};
use crate::object;
use crate::registry::Token;
use crate::representation::Representation;
use crate::response::{Content, Response};
use crate::status::{ApiError, ApiResult};
use crate::store::Stored;

/// Maximum time that a read at a future revision waits for the revision.
const FUTURE_REVISION_WAIT: Duration = Duration::from_secs(3);

impl Handler<'_> {
    pub(super) async fn get(&self) -> ApiResult<Response> {
        self.wait_for_resource_version("").await?;
        // A Scale is always returned as a whole object.
        if self.target.subresource == "scale" {
            return Ok(Response::ok(self.registry.get(&self.target).await?));
        }
        let stored = self.registry.stored(&self.target)?;
        let stored = self.registry.readable(self.kind(), stored).await?;
        let body = self.view().object(&stored)?;
        Ok(Response::with_content(
            200,
            Content::Encoded(body),
            Vec::new(),
        ))
    }

    pub(super) async fn list(&self) -> ApiResult<Response> {
        list_options::check_list(self.query())?;
        let request = list_options::page(self.query())?;
        self.wait_for_resource_version("invalid resource version: ")
            .await?;
        if let Some(revision) = request.token.as_ref().and_then(Token::revision) {
            self.wait_for(revision).await?;
        }
        let filter = self.filter()?;
        let page = self.registry.list_page(&self.target, &filter, &request)?;
        let mut metadata = page.metadata();
        // Kubernetes selects by shard everywhere, but has shardInfo only in full lists of built-in
        // kinds.
        if let Some(shard) = filter.shard()
            && self.representation == Representation::Object
            && !self.kind().is_custom()
        {
            let info = json!({"selector": shard.to_string()});
            object::set_field(&mut metadata, "shardInfo", info);
        }
        self.list_response(page.objects, metadata).await
    }

    /// Returns the response with a list of stored objects.
    pub(super) async fn list_response(
        &self,
        objects: Vec<Arc<Stored>>,
        metadata: Value,
    ) -> ApiResult<Response> {
        let objects = self.registry.readable_all(self.kind(), objects).await?;
        let list = self.view().list(objects, metadata).await?;
        Ok(Response::with_content(200, Content::List(list), Vec::new()))
    }

    /// Waits until the store has reached the `resourceVersion` of the request, so that the read
    /// returns nothing older. The message of an error starts with `prefix`.
    async fn wait_for_resource_version(&self, prefix: &str) -> ApiResult<()> {
        let wanted = list_options::revision(self.query(), prefix)?;
        self.wait_for(wanted).await
    }

    /// Waits until the store has reached the revision `wanted`.
    async fn wait_for(&self, wanted: u64) -> ApiResult<()> {
        let store = &self.registry.store;
        if store.revision() >= wanted {
            return Ok(());
        }
        let mut changed = store.subscribe();
        let arrived = changed.wait_for(|revision| *revision >= wanted);
        match tokio::time::timeout(FUTURE_REVISION_WAIT, arrived).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(ApiError::too_large_resource_version(
                wanted,
                store.revision(),
            )),
        }
    }
}
