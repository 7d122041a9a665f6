//! Delete and deletecollection.

use super::{Handler, list_options};
use crate::registry::Filter;
use crate::response::Response;
use crate::status::ApiResult;

impl Handler<'_> {
    pub(super) async fn delete(&self) -> ApiResult<Response> {
        let (options, mut write) = self.delete_options()?;
        let deleted = self.registry.delete(&self.target, &options, &write).await;
        let deleted = self.noted(&mut write, deleted)?;
        let body = self.registry.deleted_body(&self.target, deleted).await?;
        Ok(Response::with_code(200, body, write.warnings))
    }

    pub(super) async fn delete_collection(&self) -> ApiResult<Response> {
        list_options::check_list(self.query())?;
        let request = list_options::page(self.query())?;
        let filter = Filter::parse(self.kind(), self.query())?;
        let (options, mut write) = self.delete_options()?;
        let page = self.registry.list_page(&self.target, &filter, &request)?;
        let deleted = self
            .registry
            .delete_all(self.kind(), &page.objects, &options, &write)
            .await;
        self.noted(&mut write, deleted)?;
        let metadata = page.metadata();
        self.list_response(page.objects, metadata).await
    }
}
