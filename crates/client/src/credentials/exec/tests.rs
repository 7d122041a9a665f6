use std::fs;
use std::path::Path;

use kube::config::ExecAuthCluster;
use tempfile::TempDir;

use super::*;

const V1: &str = "client.authentication.k8s.io/v1";

/// A plugin that appends its input to the file `runs`, and prints the file `output`.
struct Script(TempDir);

impl Script {
    fn new(status: &Value) -> Self {
        let script = Self(tempfile::tempdir().unwrap());
        script.write("plugin", "echo \"$KUBERNETES_EXEC_INFO $EXTRA $1\" >> \"$DIR/runs\"\ncat \"$DIR/output\"\nexit $(cat \"$DIR/exit\")\n");
        script.write("exit", "0");
        script.set(status);
        script
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    /// Sets the status that the plugin prints.
    fn set(&self, status: &Value) {
        let output = json!({"apiVersion": V1, "kind": "ExecCredential", "status": status});
        self.write("output", &output.to_string());
    }

    fn config(&self) -> ExecConfig {
        let variable = |name: &str, value: &str| {
            [("name", name), ("value", value)].map(|(key, value)| (key.into(), value.into()))
        };
        ExecConfig {
            api_version: Some(V1.to_owned()),
            // Not the script itself: a file that another thread still has open for writing, in a
            // process that it starts, cannot be executed.
            command: Some("sh".to_owned()),
            args: Some(vec![
                self.path().join("plugin").to_str().unwrap().to_owned(),
                "argument".to_owned(),
            ]),
            env: Some(vec![
                variable("DIR", self.path().to_str().unwrap()).into(),
                variable("EXTRA", "variable").into(),
            ]),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        }
    }

    fn plugin(&self) -> Plugin {
        plugin(&self.config()).unwrap()
    }

    /// Returns the inputs of the runs.
    fn runs(&self) -> Vec<String> {
        let runs = fs::read_to_string(self.path().join("runs")).unwrap_or_default();
        runs.lines().map(str::to_owned).collect()
    }
}

fn plugin(config: &ExecConfig) -> Result<Plugin, CredentialsError> {
    Plugin::new(config, Identity::new(&Default::default()).unwrap())
}

async fn header(plugin: &Plugin) -> Result<String, String> {
    let header = plugin
        .header()
        .await
        .map_err(|error| crate::one_line(&error))?;
    Ok(header.map_or("none".into(), |it| it.to_str().unwrap().to_owned()))
}

#[tokio::test]
async fn the_plugin_gets_its_input_and_its_token_is_kept() {
    let script = Script::new(&json!({"token": "one"}));
    let plugin = script.plugin();
    assert_eq!(script.runs().len(), 0, "it runs for the first request");
    for _ in 0..2 {
        assert_eq!(header(&plugin).await.unwrap(), "Bearer one");
    }
    let runs = script.runs();
    let (input, rest) = runs[0].split_once(' ').unwrap();
    assert_eq!((runs.len(), rest), (1, "variable argument"));
    let input: Value = serde_json::from_str(input).unwrap();
    let expected = json!({
        "kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": false},
    });
    assert_eq!(input, expected);
}

#[tokio::test]
async fn the_plugin_gets_the_cluster_if_it_asks_for_it() {
    let script = Script::new(&json!({"token": "one"}));
    let cluster = ExecAuthCluster {
        server: Some("https://one".to_owned()),
        certificate_authority_data: Some(b"PEM".to_vec()),
        tls_server_name: Some("name".to_owned()),
        config: Some(json!({"audience": "x"})),
        ..ExecAuthCluster::default()
    };
    for provide in [true, false] {
        let config = ExecConfig {
            provide_cluster_info: provide,
            cluster: Some(cluster.clone()),
            ..script.config()
        };
        header(&plugin(&config).unwrap()).await.unwrap();
        let runs = script.runs();
        let input = runs.last().unwrap().split(' ').next().unwrap();
        let input: Value = serde_json::from_str(input).unwrap();
        let expected = json!({
            "server": "https://one", "certificate-authority-data": "UEVN",
            "tls-server-name": "name", "config": {"audience": "x"},
        });
        assert_eq!(input.pointer("/spec/cluster"), provide.then_some(&expected));
    }
}

#[tokio::test]
async fn expired_credentials_are_replaced() {
    let script = Script::new(&json!({
        "token": "one", "expirationTimestamp": "2020-01-01T00:00:00Z",
    }));
    let plugin = script.plugin();
    assert_eq!(header(&plugin).await.unwrap(), "Bearer one");
    let future = Timestamp::now() + Duration::from_secs(3600);
    script.set(&json!({"token": "two", "expirationTimestamp": future.to_string()}));
    for _ in 0..2 {
        assert_eq!(header(&plugin).await.unwrap(), "Bearer two");
    }
    assert_eq!(script.runs().len(), 2);
}

#[tokio::test]
async fn refused_credentials_are_replaced_once() {
    let script = Script::new(&json!({"token": "one"}));
    let plugin = script.plugin();
    let old = plugin.header().await.unwrap();
    script.set(&json!({"token": "two"}));
    // Two concurrent requests had the old token.
    tokio::join!(plugin.refused(old.as_ref()), plugin.refused(old.as_ref()));
    assert_eq!(header(&plugin).await.unwrap(), "Bearer two");
    assert_eq!(script.runs().len(), 2);
    // A plugin that fails leaves the last token.
    script.write("exit", "1");
    let new = plugin.header().await.unwrap();
    plugin.refused(new.as_ref()).await;
    assert_eq!(header(&plugin).await.unwrap(), "Bearer two");
}

#[tokio::test]
async fn concurrent_requests_run_the_plugin_once() {
    let script = Script::new(&json!({"token": "one"}));
    let plugin = script.plugin();
    let headers = futures::future::join_all((0..8).map(|_| header(&plugin))).await;
    assert!(headers.iter().all(|it| it.as_deref() == Ok("Bearer one")));
    assert_eq!(script.runs().len(), 1);
}

#[tokio::test]
async fn a_certificate_becomes_the_identity() {
    let pair = || {
        let signed = rcgen::generate_simple_self_signed(vec!["me".to_owned()]).unwrap();
        json!({
            "clientCertificateData": signed.cert.pem(),
            "clientKeyData": signed.signing_key.serialize_pem(),
        })
    };
    let script = Script::new(&pair());
    let plugin = script.plugin();
    assert!(!plugin.identity.is_present());
    assert_eq!(header(&plugin).await.unwrap(), "none");
    assert!(plugin.identity.is_present());
    assert_eq!(plugin.identity.changes(), 1);
    plugin.refused(None).await;
    assert_eq!(plugin.identity.changes(), 1, "the same certificate");
    script.set(&pair());
    plugin.refused(None).await;
    assert_eq!(plugin.identity.changes(), 2);
}

#[tokio::test]
async fn yaml_of_v1beta1_is_accepted() {
    let script = Script::new(&json!({}));
    let version = "client.authentication.k8s.io/v1beta1";
    script.write(
        "output",
        &format!("apiVersion: {version}\nkind: ExecCredential\nstatus:\n  token: one\n"),
    );
    let config = ExecConfig {
        api_version: Some(version.to_owned()),
        interactive_mode: None,
        ..script.config()
    };
    let plugin = plugin(&config).unwrap();
    assert_eq!(header(&plugin).await.unwrap(), "Bearer one");
}

#[tokio::test]
async fn output_that_is_no_credential_is_an_error() {
    let script = Script::new(&json!({}));
    let failure = async |expected: &str| {
        let error = header(&script.plugin()).await.unwrap_err();
        let start = "the credential plugin sh failed: ";
        assert_eq!(error.strip_prefix(start), Some(expected), "{error}");
    };
    failure("it returned neither a token nor a certificate").await;
    script.set(&json!({"clientCertificateData": "x"}));
    failure("it returned only a certificate or a key, not both").await;
    script.set(&json!({"token": "x", "expirationTimestamp": "soon"}));
    failure("its expirationTimestamp is not a time").await;
    script.write("output", "text");
    failure("its output is not JSON or YAML").await;
    script.write(
        "output",
        r#"{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential"}"#,
    );
    failure("its output is not an ExecCredential of client.authentication.k8s.io/v1, as the kubeconfig demands").await;
    script.write("exit", "3");
    failure("exit status: 3, see its output above").await;
}

#[tokio::test]
async fn a_missing_program_is_reported_with_the_hint() {
    let config = ExecConfig {
        command: Some("/nowhere/login".to_owned()),
        install_hint: Some("brew install\nlogin\u{1b}[1m".to_owned()),
        ..Script::new(&json!({})).config()
    };
    let error = header(&plugin(&config).unwrap()).await.unwrap_err();
    let expected = "cannot start the credential plugin /nowhere/login (brew install login [1m): ";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_plugin_that_is_not_configured_correctly_is_refused() {
    let valid = Script::new(&json!({})).config();
    let check = |config: ExecConfig, expected: &str| {
        let error = plugin(&config).err().unwrap().to_string();
        assert!(error.ends_with(expected), "{error}");
    };
    check(
        ExecConfig {
            command: None,
            ..valid.clone()
        },
        "it has no command",
    );
    check(
        ExecConfig {
            interactive_mode: None,
            ..valid.clone()
        },
        "its interactiveMode must be set",
    );
    check(
        ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1alpha1".to_owned()),
            ..valid.clone()
        },
        "is not client.authentication.k8s.io/v1 or v1beta1",
    );
}

#[test]
fn a_plugin_that_needs_a_person_needs_a_terminal() {
    let mut plugin = Script::new(&json!({})).plugin();
    let mut check = |mode, terminal: Option<bool>, none: Option<bool>| {
        plugin.config.interactive_mode = mode;
        assert_eq!(plugin.is_interactive(true).ok(), terminal);
        assert_eq!(plugin.is_interactive(false).ok(), none);
    };
    check(None, Some(true), Some(false));
    check(Some(ExecInteractiveMode::Never), Some(false), Some(false));
    let if_available = Some(ExecInteractiveMode::IfAvailable);
    check(if_available, Some(true), Some(false));
    check(Some(ExecInteractiveMode::Always), Some(true), None);
    let error = plugin.is_interactive(false).unwrap_err().to_string();
    assert!(
        error.ends_with("standard input is not a terminal"),
        "{error}"
    );
}
