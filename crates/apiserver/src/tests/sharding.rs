use opkit_apimachinery::shard::{ShardKey, ShardSelector};

use super::*;

fn path(shard: &ShardSelector, more: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("shardSelector", &shard.to_string());
    format!("{CONFIG_MAPS}?{}{more}", query.finish())
}

#[tokio::test]
async fn lists_and_watches_are_selected_by_shard() {
    let api = Api::alone();
    for number in 0..20 {
        api.post(CONFIG_MAPS, config_map(&format!("m{number}")))
            .await;
    }
    let mut seen = Vec::new();
    for index in 0..3 {
        let shard = ShardSelector::part(ShardKey::Uid, index, 3);
        let (code, list) = api.get(&path(&shard, "")).await;
        assert_eq!(code, 200, "{list}");
        assert_eq!(list["metadata"]["shardInfo"]["selector"], shard.to_string());
        let items = list["items"].as_array().unwrap();
        assert!(!items.is_empty() && items.len() < 20);
        let frames = api.frames(&path(&shard, "&watch=true"), items.len()).await;
        for (item, frame) in items.iter().zip(&frames) {
            assert_eq!(frame["object"]["metadata"], item["metadata"]);
            seen.push(item["metadata"]["name"].as_str().unwrap().to_owned());
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 20);
}

#[tokio::test]
async fn only_full_lists_of_built_in_kinds_have_shard_info() {
    let api = with_robots().await;
    let shard = ShardSelector::part(ShardKey::Uid, 0, 1);
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let robots = path(&shard, "").replace(CONFIG_MAPS, ROBOTS);
    for (path, accept) in [
        (path(&shard, ""), metadata),
        (path(&shard, ""), table),
        (robots, "application/json"),
    ] {
        let response = api.raw(&path, &[("accept", accept)]).await;
        let list: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(response.status(), 200, "{list}");
        assert_eq!(list["metadata"].get("shardInfo"), None, "{accept}");
    }
}

#[tokio::test]
async fn an_invalid_shard_selector_has_the_error_of_kubernetes() {
    let api = Api::start();
    let response = api.get(&format!("{CONFIG_MAPS}?shardSelector=foo")).await;
    assert_eq!(response.0, 500);
    assert_eq!(
        message(&response),
        "invalid shard selector: unexpected expression kind 3; expected shardRange() call or || operator"
    );
}

#[tokio::test]
async fn without_the_gate_the_parameter_is_ignored() {
    let api = Api::with(Options {
        sharded_list_and_watch: false,
        ..Options::default()
    });
    api.post(CONFIG_MAPS, config_map("a")).await;
    let (code, list) = api.get(&format!("{CONFIG_MAPS}?shardSelector=foo")).await;
    assert_eq!(code, 200);
    assert_eq!(list["metadata"].get("shardInfo"), None);
}
