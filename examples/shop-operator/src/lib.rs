//! An operator for web shops: six kinds of children, each applied when the previous ones are ready.
//!
//! A second controller of the same kind sets the number of web servers. Each controller has its own
//! field manager, so neither changes the fields and conditions of the other.

mod children;
mod scaler;
mod shop;
mod webhook;

use opkit::k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use opkit::k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use opkit::k8s_openapi::api::networking::v1::Ingress;
use opkit::k8s_openapi::api::policy::v1::PodDisruptionBudget;
use opkit::kube::core::{Expression, PartialObjectMeta, Selector};
use opkit::prelude::*;

pub use shop::{Database, Shop, ShopSpec, ShopStatus};

/// Label that marks a Secret as one of the pull secrets of a shop.
pub const SHOP: &str = "shop.opkit.dev/shop";
/// Time until the next attempt if another controller owns an object with the name of a child.
const TAKEN: Duration = Duration::from_secs(30);

/// Returns the operator.
pub fn operator() -> Operator {
    Operator::new("shop-operator")
        .crd::<Shop>()
        .controller(
            Controller::new(reconcile)
                .owns::<ServiceAccount>()
                .owns::<Service>()
                .owns::<StatefulSet>()
                .owns::<Deployment>()
                .owns::<PodDisruptionBudget>()
                .owns::<Ingress>()
                .references::<ConfigMap>(|shop: &Shop| vec![shop.spec.config_map.as_str().into()])
                // Only names and labels are needed: the content of the Secrets never reaches this
                // process.
                .watches_metadata::<Secret>(|secret, _| shop_of(secret))
                .max_concurrent_reconciles(4),
        )
        .controller(
            Controller::new(scaler::scale)
                .named("scaler")
                // Children of the other controller: read and watched, never applied or pruned here.
                .watches_owners::<Deployment>(),
        )
        .webhook(webhook::webhook())
        // The scaler calls the API directly, which opkit cannot infer.
        .rule(PolicyRule::new("apps", ["deployments/scale"], ["patch"]))
        .leader_election("shop-operator.opkit.dev")
}

fn shop_of(secret: &PartialObjectMeta<Secret>) -> Vec<ObjectKey> {
    secret
        .labels()
        .get(SHOP)
        .map(ObjectKey::from)
        .into_iter()
        .collect()
}

/// Applies the children of one shop, and reports its progress in the status.
async fn reconcile(shop: Arc<Shop>, cx: Context) -> Result<Action> {
    match open(&shop, &cx).await {
        // No event reports the deletion of another controller's object, so this is retried.
        Err(error) if error.is_not_ours() => {
            let taken = Condition::new("Ready", false)
                .reason("NameTaken")
                .message(error.to_string());
            set_condition(&shop, &cx, taken).await?;
            Err(Error::retry_after(TAKEN, error))
        }
        opened => opened,
    }
}

/// Applies the children in order. A child that is not ready triggers a reconcile when it changes,
/// so every run starts at the top; an unchanged child costs no request.
async fn open(shop: &Arc<Shop>, cx: &Context) -> Result<Action> {
    let Some(settings) = cx.get::<ConfigMap>(&shop.spec.config_map)? else {
        return waiting(shop, cx, "ConfigMap").await;
    };
    let mine = Selector::from(Expression::Equal(SHOP.to_owned(), shop.name_any()));
    let pull_secrets = cx.list::<PartialObjectMeta<Secret>>(mine)?;

    cx.apply(children::service_account(shop, &pull_secrets))
        .await?;
    cx.apply(children::service(shop)).await?;
    if let Some(database) = &shop.spec.database {
        let database = cx.apply(children::database(shop, database)).await?;
        if !database.is_ready() {
            return waiting(shop, cx, "Database").await;
        }
    }
    let web = cx.apply(children::web(shop, &settings)).await?;
    if !web.is_ready() {
        return waiting(shop, cx, "WebServers").await;
    }
    cx.apply(children::disruption_budget(shop)).await?;
    // Last, so that users reach the shop only when it is open.
    if let Some(host) = &shop.spec.host {
        cx.apply(children::ingress(shop, host)).await?;
    }

    // Deletes children that an earlier spec required and this one does not: the database, the
    // ingress. A run that returned earlier prunes nothing.
    cx.prune().await?;
    if !shop.is_ready() {
        cx.event(Normal, "Opened", "the shop is open");
    }
    set_condition(shop, cx, Condition::new("Ready", true).reason("Open")).await
}

/// Writes to the status which child the shop waits for. The child's change triggers the next
/// reconcile.
async fn waiting(shop: &Arc<Shop>, cx: &Context, child: &str) -> Result<Action> {
    let waiting = Condition::new("Ready", false).reason(format!("WaitingFor{child}"));
    set_condition(shop, cx, waiting).await
}

async fn set_condition(shop: &Arc<Shop>, cx: &Context, condition: Condition) -> Result<Action> {
    cx.update_status(shop, |status| status.conditions.set(&condition))
        .await?;
    Ok(Action::await_change())
}
