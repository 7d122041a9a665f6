//! Sending of requests, and the conversion of failures into errors that name the request.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::core::Status;

use super::{Encoding, RestClient};
use crate::{Call, CredentialsError, Fenced, RequestError, codec};

/// Time that one request may take, retries of the transport included. Watches and streams have no
/// such limit.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl RestClient {
    /// Sends a request and returns the headers and the whole body of the response.
    pub(super) async fn send_within_timeout(
        &self,
        call: &Call,
        request: http::Request<kube::client::Body>,
    ) -> Result<(http::HeaderMap, Bytes), RequestError> {
        let response = async {
            let response = self.send(call, request).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await;
            let body = body.map_err(|cause| unreachable(call, cause))?.to_bytes();
            Ok((head.headers, body))
        };
        match tokio::time::timeout(REQUEST_TIMEOUT, response).await {
            Ok(response) => response,
            Err(_) => Err(RequestError::Timeout {
                call: Box::new(call.clone()),
                seconds: REQUEST_TIMEOUT.as_secs(),
            }),
        }
    }

    /// Sends a request and returns the response if its status code is 2xx.
    pub(super) async fn send(
        &self,
        call: &Call,
        request: http::Request<kube::client::Body>,
    ) -> Result<http::Response<kube::client::Body>, RequestError> {
        let response = self
            .kube
            .send(request)
            .await
            .map_err(|cause| unreachable(call, cause))?;
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        let encoding = Encoding::of(response.headers());
        let body = response.into_body().collect().await;
        let body = body.map_err(|cause| unreachable(call, cause))?.to_bytes();
        // A proxy, or a path without a handler, responds in plain text or in JSON of its own, which
        // decodes as a status without a code.
        let status = codec::from_slice_by_value::<Status>(&body, encoding).ok();
        let status = status.filter(|status| status.code != 0);
        let status = status.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&body);
            Status::failure(text.trim(), "Unknown").with_code(code.as_u16())
        });
        Err(RequestError::Refused {
            call: Box::new(call.clone()),
            status: status.boxed(),
        })
    }
}

pub(super) fn unreachable(call: &Call, cause: kube::Error) -> RequestError {
    let call = Box::new(call.clone());
    if let Some(cause) = Fenced::of(&cause) {
        return RequestError::Fenced { call, cause };
    }
    // kube repeats the text of the cause in its own error; the cause alone has it once.
    let cause = match cause {
        kube::Error::Service(cause) => cause,
        kube::Error::HyperError(cause) => cause.into(),
        cause => cause.into(),
    };
    match cause.is::<CredentialsError>() {
        true => RequestError::Credentials { call, cause },
        false => RequestError::Unreachable { call, cause },
    }
}
