//! From an HTTP request on a resource to a verb of the registry, and back.

mod body;
mod listing;
mod options;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use opkit_apimachinery::{identity::ResourcePath, structural::FieldError};
use serde_json::{Value, json};

use crate::{
    auth::Identity,
    kinds::{Kind, SchemaSource},
    negotiation::{Media, Offer, negotiate},
    object,
    query::Query,
    registry::{Filter, Patch, PatchType, Registry, Target, Token, Write, from_storage},
    reviews,
    status::{ApiError, ApiResult},
    table::{IncludeObject, Representation},
    watch::{Start, WatchRequest},
};
use body::decode_patch;

/// How long a read at a future revision waits for it.
const FUTURE_REVISION_WAIT: Duration = Duration::from_secs(3);
/// The shortest time a watch lasts that names no timeout; the longest is twice that.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(1800);

/// The longest time a watch may ask for.
const WATCH_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

/// A request on a resource.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: ResourcePath<'a>,
    pub(crate) query: Query,
    pub(crate) accept: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) user_agent: &'a str,
    pub(crate) identity: &'a Identity,
    pub(crate) body: Bytes,
}

/// What a verb answers.
#[derive(Debug)]
pub(crate) enum Answer {
    Body {
        code: u16,
        body: Value,
        warnings: Vec<String>,
    },
    Watch(Box<WatchRequest>),
}

/// Carries out a request on a resource.
pub(crate) async fn dispatch(
    registry: &Registry,
    incoming: Incoming<'_>,
) -> ApiResult<(Media, Answer)> {
    let path = &incoming.path;
    let kind = registry
        .catalog
        .get(&path.group, &path.version, &path.plural)
        .ok_or_else(ApiError::no_such_resource)?;
    let misplaced = if kind.namespaced {
        path.namespace.is_none() && path.name.is_some()
    } else {
        path.namespace.is_some()
    };
    if misplaced {
        return Err(ApiError::no_such_resource());
    }
    let target = Target {
        namespace: path.namespace.as_deref().unwrap_or_default().to_owned(),
        name: path.name.as_deref().unwrap_or_default().to_owned(),
        subresource: path.subresource.as_deref().unwrap_or_default().to_owned(),
        kind: kind.clone(),
    };
    check_subresource(&target)?;
    let include = incoming.query.get("includeObject").unwrap_or_default();
    let include = IncludeObject::parse(include).ok_or_else(|| {
        ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
        ))
    })?;
    let verb = verb(&incoming);
    let offer = Offer {
        is_custom: matches!(kind.schema, SchemaSource::Custom(_)) && target.subresource != "scale",
        is_watch: verb == "watch",
    };
    let (media, representation) =
        negotiate(incoming.accept, offer).map_err(ApiError::not_acceptable)?;
    let representation = representation.including(include);
    // Across namespaces one can only look; questions have no namespace.
    let everywhere = kind.namespaced && target.namespace.is_empty();
    let looks = matches!(verb, "list" | "watch") || reviews::is_review(&kind);
    if !allows(&target, verb) || everywhere && !looks {
        return Err(ApiError::method_not_allowed());
    }
    let request = Request {
        registry,
        target,
        representation,
        media,
        incoming: &incoming,
    };
    let answer = match verb {
        "get" => request.get().await,
        "list" => request.list().await,
        "watch" => request.watch(),
        "create" => request.create(),
        "update" => request.update(),
        "patch" => request.patch(),
        "delete" => request.delete(),
        "deletecollection" => request.delete_collection(),
        _ => Err(ApiError::method_not_allowed()),
    };
    answer.map(|answer| (media, answer))
}

fn verb(incoming: &Incoming<'_>) -> &'static str {
    let named = incoming.path.name.is_some();
    match *incoming.method {
        Method::GET if incoming.query.flag("watch") && !named => "watch",
        Method::GET if named => "get",
        Method::GET => "list",
        Method::POST if named && incoming.path.subresource.is_none() => "",
        Method::POST => "create",
        Method::PUT if named => "update",
        Method::PATCH if named => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "",
    }
}

/// Whether the table of kinds lists the verb for the target.
fn allows(target: &Target, verb: &str) -> bool {
    let verbs = if target.subresource.is_empty() {
        &target.kind.verbs
    } else {
        match target.kind.subresource(&target.subresource) {
            Some(subresource) => &subresource.verbs,
            None => return false,
        }
    };
    verbs.iter().any(|listed| listed == verb)
}

fn check_subresource(target: &Target) -> ApiResult<()> {
    match target.subresource.as_str() {
        "" => Ok(()),
        // A custom kind has no path of its own for what it does not declare.
        name if target.kind.subresource(name).is_none() => Err(match target.kind.schema {
            SchemaSource::Custom(_) => target.not_found(),
            SchemaSource::Definition(_) => ApiError::no_such_resource(),
        }),
        "status" | "scale" => Ok(()),
        "finalize" if target.kind.plural == "namespaces" => Ok(()),
        name => Err(ApiError::not_modelled(&format!(
            "{}/{name}",
            target.kind.group_resource()
        ))),
    }
}

struct Request<'a> {
    registry: &'a Registry,
    target: Target,
    representation: Representation,
    media: Media,
    incoming: &'a Incoming<'a>,
}

impl Request<'_> {
    fn kind(&self) -> &Arc<Kind> {
        &self.target.kind
    }

    fn query(&self) -> &Query {
        &self.incoming.query
    }

    async fn get(&self) -> ApiResult<Answer> {
        self.await_revision().await?;
        let object = self.registry.get(&self.target)?;
        Ok(self.answer(200, object, Vec::new()))
    }

    async fn list(&self) -> ApiResult<Answer> {
        listing::check_list(self.query())?;
        let request = listing::page(self.query())?;
        self.await_revision().await?;
        if let Some(revision) = request.token.as_ref().and_then(Token::revision) {
            self.await_at_least(revision).await?;
        }
        let filter = self.filter()?;
        let page = self.registry.list_page(&self.target, &filter, &request)?;
        let mut metadata = page.metadata();
        // Kubernetes tells so in full lists of built-in kinds only, and shards all the same
        // elsewhere.
        if let Some(shard) = filter.shard()
            && self.representation == Representation::Object
            && !self.is_custom()
        {
            let info = json!({"selector": shard.to_string()});
            object::set_field(&mut metadata, "shardInfo", info);
        }
        Ok(self.list_answer(&page.objects, metadata))
    }

    fn watch(&self) -> ApiResult<Answer> {
        let query = self.query();
        listing::check_watch(query)?;
        let revision = listing::revision(query, "")?;
        let initial = query.flag("sendInitialEvents");
        let bookmarks = query.flag("allowWatchBookmarks");
        let start = match revision {
            _ if initial => Start::Present {
                end_bookmark: bookmarks,
            },
            0 if query.get("sendInitialEvents") == Some("false") => {
                Start::After(self.registry.store.revision())
            }
            0 => Start::Present {
                end_bookmark: false,
            },
            revision => Start::After(revision),
        };
        let timeout = match query
            .get("timeoutSeconds")
            .and_then(|text| text.parse().ok())
        {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds).min(WATCH_TIMEOUT_MAX),
            _ => {
                let extra = self.registry.random.next() % WATCH_TIMEOUT_MIN.as_secs();
                WATCH_TIMEOUT_MIN + Duration::from_secs(extra)
            }
        };
        Ok(Answer::Watch(Box::new(WatchRequest {
            filter: self.filter()?,
            target: self.target.clone(),
            start,
            bookmarks,
            timeout,
            representation: self.representation,
            media: self.media,
        })))
    }

    fn create(&self) -> ApiResult<Answer> {
        let body = self.object_body()?;
        if reviews::is_review(self.kind()) {
            let body = reviews::answer(self.kind(), body, self.incoming.identity)?;
            return Ok(Answer::Body {
                code: 201,
                body,
                warnings: Vec::new(),
            });
        }
        let mut write = self.write()?;
        let stored = self.registry.create(&self.target, body, &mut write)?;
        self.written(201, &stored, write)
    }

    fn update(&self) -> ApiResult<Answer> {
        let body = self.object_body()?;
        let mut write = self.write()?;
        let (stored, created) = self.registry.update(&self.target, body, &mut write)?;
        self.written(if created { 201 } else { 200 }, &stored, write)
    }

    fn patch(&self) -> ApiResult<Answer> {
        let accepted = [
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ];
        let type_ = PatchType::parse(self.incoming.content_type).ok_or_else(|| {
            if self.is_custom() {
                ApiError::unsupported_media_type(&accepted)
            } else {
                ApiError::unsupported_patch_type()
            }
        })?;
        let body = match self.incoming.body.as_ref() {
            b"" if type_ == PatchType::Apply => json!({}),
            body => decode_patch(type_, self.incoming.content_type, body)?,
        };
        let patch = Patch { type_, body };
        let mut write = self.write()?;
        if type_ == PatchType::Apply && self.query().get("fieldManager").is_none() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(ApiError::invalid_options("PatchOptions", &[error]));
        }
        let (stored, created) = self.registry.patch(&self.target, &patch, &mut write)?;
        self.written(if created { 201 } else { 200 }, &stored, write)
    }

    fn delete(&self) -> ApiResult<Answer> {
        let (options, write) = self.delete_options()?;
        let deleted = self.registry.delete(&self.target, &options, &write)?;
        let body = self.registry.deleted_answer(&self.target, &deleted);
        Ok(Answer::Body {
            code: 200,
            body,
            warnings: Vec::new(),
        })
    }

    fn delete_collection(&self) -> ApiResult<Answer> {
        listing::check_list(self.query())?;
        let request = listing::page(self.query())?;
        let filter = Filter::parse(self.kind(), self.query())?;
        let (options, write) = self.delete_options()?;
        let page = self.registry.list_page(&self.target, &filter, &request)?;
        self.registry
            .delete_all(self.kind(), &page.objects, &options, &write)?;
        Ok(self.list_answer(&page.objects, page.metadata()))
    }

    /// What a list or watch selects.
    fn filter(&self) -> ApiResult<Filter> {
        let filter = Filter::parse(self.kind(), self.query())?;
        match self.registry.sharded_list_and_watch {
            true => filter.sharded(self.query()),
            false => Ok(filter),
        }
    }

    fn list_answer(&self, stored: &[Arc<Value>], metadata: Value) -> Answer {
        let kind = self.kind();
        let objects = stored
            .iter()
            .map(|object| from_storage(kind, object))
            .collect();
        let now = self.registry.clock.now();
        Answer::Body {
            code: 200,
            body: self.representation.of_list(kind, objects, metadata, now),
            warnings: Vec::new(),
        }
    }

    fn written(&self, code: u16, stored: &Value, mut write: Write) -> ApiResult<Answer> {
        if self.target.subresource.is_empty() && !write.dry_run {
            let warnings = self
                .registry
                .warn_unmodelled(self.kind(), stored, code == 201);
            write.warnings.extend(warnings);
        }
        if self.target.subresource == "scale" {
            let body = self.registry.scale_view(&self.target, stored)?;
            return Ok(Answer::Body {
                code,
                body,
                warnings: write.warnings,
            });
        }
        Ok(self.answer(code, from_storage(self.kind(), stored), write.warnings))
    }

    fn answer(&self, code: u16, object: Value, warnings: Vec<String>) -> Answer {
        let body = if self.target.subresource == "scale" {
            object
        } else {
            self.representation
                .of_object(self.kind(), object, self.registry.clock.now())
        };
        Answer::Body {
            code,
            body,
            warnings,
        }
    }

    /// A read that names a revision sees nothing older; one that is not there yet is waited for.
    async fn await_revision(&self) -> ApiResult<()> {
        let listed = self.incoming.path.name.is_none();
        let doing = if listed {
            "invalid resource version: "
        } else {
            ""
        };
        let wanted = listing::revision(self.query(), doing)?;
        self.await_at_least(wanted).await
    }

    async fn await_at_least(&self, wanted: u64) -> ApiResult<()> {
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
