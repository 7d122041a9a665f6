//! Waits until the conversion webhook of a changed CRD is in force.

use http::{Request, header};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use opkit_controller::Result;
use serde_json::Value;

use super::ControlPlane;
use crate::error::TestError;

/// Media type of a list as a table, whose columns are those of the CRD that is in force.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

impl ControlPlane {
    /// Applies a CRD whose conversion webhook has changed, and waits until the server calls the
    /// webhook. `mark` is a text that no other test uses.
    ///
    /// A server in another process reads a CRD with a delay, and reports nowhere which one is in
    /// force. So the CRD is first applied with one more column: once a table has the column, the
    /// server has read the whole CRD. Then the column is removed again.
    pub(super) async fn apply_converted(
        &self,
        crd: CustomResourceDefinition,
        mark: &str,
    ) -> Result {
        if !self.inner.backend.is_shared() {
            self.apply(crd).await?;
            return Ok(());
        }
        let mut marked = crd.clone();
        for version in &mut marked.spec.versions {
            let columns = version.additional_printer_columns.get_or_insert_default();
            columns.push(CustomResourceColumnDefinition {
                name: mark.to_owned(),
                type_: "string".to_owned(),
                json_path: ".metadata.name".to_owned(),
                ..Default::default()
            });
        }
        // The server closes the watches of a CRD that has changed, so both changes are waited for.
        for (changed, is_marked) in [(marked, true), (crd, false)] {
            let path = list_path(&changed);
            let name = changed.metadata.name.clone().unwrap_or_default();
            self.apply(changed).await?;
            self.wait_for_column(&name, &path, mark, is_marked).await?;
        }
        Ok(())
    }

    /// Waits until the table at `path` has the column `mark`, or does not have it.
    async fn wait_for_column(&self, crd: &str, path: &str, mark: &str, is_marked: bool) -> Result {
        let client = self.client();
        let read = self
            .wait(async || {
                let request = Request::get(path).header(header::ACCEPT, TABLE);
                let Ok(request) = request.body(Vec::new()) else {
                    return Ok(None);
                };
                // A list fails while the server calls the webhook of the CRD before.
                let table = client.request::<Value>(request).await.ok();
                Ok(table.filter(|table| has_column(table, mark) == is_marked))
            })
            .await?;
        match read {
            Some(_) => Ok(()),
            None => Err(TestError::WebhookNotCalled {
                name: crd.to_owned(),
                timeout: self.timeout,
            }
            .into()),
        }
    }
}

/// Returns the path of a list of no more than one object of a CRD.
fn list_path(crd: &CustomResourceDefinition) -> String {
    let (group, plural) = (&crd.spec.group, &crd.spec.names.plural);
    let version = crd.spec.versions.iter().find(|version| version.served);
    let version = version.map(|version| version.name.as_str());
    let version = version.unwrap_or_default();
    format!("/apis/{group}/{version}/{plural}?limit=1")
}

fn has_column(table: &Value, name: &str) -> bool {
    let columns = table.get("columnDefinitions").and_then(Value::as_array);
    let mut columns = columns.into_iter().flatten();
    columns.any(|column| column.get("name").and_then(Value::as_str) == Some(name))
}
