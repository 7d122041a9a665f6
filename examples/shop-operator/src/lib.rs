//! An operator that opens shops: six kinds of children, each applied when those before it are
//! ready.
//!
//! A second controller of the same kind sees to the number of web servers. Each has a field manager
//! of its own, so neither touches the fields and conditions of the other.

mod children;
mod scaler;
mod shop;

use opkit::k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use opkit::k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use opkit::k8s_openapi::api::networking::v1::Ingress;
use opkit::k8s_openapi::api::policy::v1::PodDisruptionBudget;
use opkit::kube::core::{Expression, PartialObjectMeta, Selector};
use opkit::prelude::*;

pub use shop::{Database, Shop, ShopSpec, ShopStatus};

/// The label that makes a Secret one of the pull secrets of a shop.
pub const SHOP: &str = "shop.opkit.dev/shop";
/// How long to wait before looking again whether somebody else's object is gone.
const TAKEN: Duration = Duration::from_secs(30);

/// The whole operator.
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
                // Only names and labels are needed: what is in the Secrets never reaches this
                // process.
                .watches_metadata::<Secret>(|secret, _| shop_of(secret))
                .max_concurrent_reconciles(4),
        )
        .controller(
            Controller::new(scaler::scale)
                .named("scaler")
                // Children of the other controller: read and listened to, never applied or pruned
                // here.
                .watches_owners::<Deployment>(),
        )
        // The scaler asks the API itself, which opkit cannot know.
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

/// Opens one shop, and says in its status how far it is.
async fn reconcile(shop: Arc<Shop>, cx: Context) -> Result<Action> {
    match open(&shop, &cx).await {
        // Nobody tells us when a stranger's object goes, so we look again.
        Err(error) if error.is_not_ours() => {
            let taken = Condition::new("Ready", false)
                .reason("NameTaken")
                .message(error.to_string());
            say(&shop, &cx, taken).await?;
            Err(Error::retry_after(TAKEN, error))
        }
        opened => opened,
    }
}

/// Applies the children in order. Whoever is waited for has the shop reconciled when it changes, so
/// every run starts at the top; what is there already costs no request.
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
    // Last, so that the world comes to a shop that is open.
    if let Some(host) = &shop.spec.host {
        cx.apply(children::ingress(shop, host)).await?;
    }

    // What an earlier spec asked for and this one does not: the database, the ingress. A run that
    // returned above comes not here, and prunes nothing.
    cx.prune().await?;
    say(shop, cx, Condition::new("Ready", true).reason("Open")).await
}

/// Says what the shop waits for. Its change leads to the next reconcile.
async fn waiting(shop: &Arc<Shop>, cx: &Context, child: &str) -> Result<Action> {
    let waiting = Condition::new("Ready", false).reason(format!("WaitingFor{child}"));
    say(shop, cx, waiting).await
}

async fn say(shop: &Arc<Shop>, cx: &Context, condition: Condition) -> Result<Action> {
    cx.update_status(shop, |status| status.conditions.set(&condition))
        .await?;
    Ok(Action::await_change())
}
