//! Credential plugins: programs that print credentials, of the API
//! `client.authentication.k8s.io/v1` or `v1beta1`, as client-go runs them
//! (`plugin/pkg/client/auth/exec`).

use std::io::IsTerminal;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use k8s_openapi::jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::Mutex;

use super::{CredentialsError, Identity, bearer};

/// Variable in which a plugin receives its input.
const INPUT: &str = "KUBERNETES_EXEC_INFO";
/// Time limit of a plugin that does not talk to a person. Plugins call the API of a cloud, which
/// takes seconds.
const RUN_MAX: Duration = Duration::from_secs(60);

/// A credential plugin, and the credentials that it returned last.
pub(super) struct Plugin {
    config: ExecConfig,
    command: String,
    api_version: String,
    identity: Arc<Identity>,
    /// The lock is held while the plugin runs, so that concurrent requests run it once.
    issued: Mutex<Option<Issued>>,
}

/// Credentials of a plugin. A certificate is in the [`Identity`].
struct Issued {
    header: Option<HeaderValue>,
    /// Time from which on the plugin runs again; `None` to keep the credentials until the server
    /// refuses them.
    expires: Option<Timestamp>,
}

impl Plugin {
    /// Checks the configuration. Does not run the plugin.
    pub(super) fn new(
        config: &ExecConfig,
        identity: Arc<Identity>,
    ) -> Result<Self, CredentialsError> {
        let command = config.command.clone().unwrap_or_default();
        let plugin = Self {
            command,
            api_version: config.api_version.clone().unwrap_or_default(),
            config: config.clone(),
            identity,
            issued: Mutex::default(),
        };
        if plugin.command.is_empty() {
            return Err(plugin.unusable("it has no command"));
        }
        match (plugin.api_version.as_str(), &config.interactive_mode) {
            ("client.authentication.k8s.io/v1beta1", _)
            | ("client.authentication.k8s.io/v1", Some(_)) => {}
            ("client.authentication.k8s.io/v1", None) => {
                return Err(plugin.unusable("its interactiveMode must be set"));
            }
            (version, _) => {
                let reason = format!(
                    "its apiVersion {version:?} is not client.authentication.k8s.io/v1 or v1beta1"
                );
                return Err(plugin.unusable(&reason));
            }
        }
        plugin.is_interactive(std::io::stdin().is_terminal())?;
        Ok(plugin)
    }

    /// Returns the error of a plugin that is not configured correctly.
    pub(super) fn unusable(&self, reason: &str) -> CredentialsError {
        CredentialsError::PluginConfig {
            command: self.command.clone(),
            reason: reason.to_owned(),
        }
    }

    /// Returns the header. Runs the plugin for the first request, and when the credentials have
    /// expired.
    pub(super) async fn header(&self) -> Result<Option<HeaderValue>, CredentialsError> {
        let mut issued = self.issued.lock().await;
        let is_valid = |it: &&Issued| it.expires.is_none_or(|end| Timestamp::now() <= end);
        if let Some(issued) = issued.as_ref().filter(is_valid) {
            return Ok(issued.header.clone());
        }
        let new = self.run().await?;
        let header = new.header.clone();
        *issued = Some(new);
        Ok(header)
    }

    /// Runs the plugin, unless there are newer credentials than `header` already.
    pub(super) async fn refused(&self, header: Option<&HeaderValue>) {
        let mut issued = self.issued.lock().await;
        if issued
            .as_ref()
            .is_some_and(|it| it.header.as_ref() != header)
        {
            return;
        }
        match self.run().await {
            Ok(new) => *issued = Some(new),
            Err(error) => {
                let error = crate::one_line(&error);
                tracing::warn!(error, "the credentials are refused");
            }
        }
    }

    /// Returns whether the plugin may ask the person at the terminal.
    fn is_interactive(&self, is_terminal: bool) -> Result<bool, CredentialsError> {
        match self.config.interactive_mode {
            Some(ExecInteractiveMode::Never) => Ok(false),
            Some(ExecInteractiveMode::IfAvailable) | None => Ok(is_terminal),
            Some(ExecInteractiveMode::Always) if is_terminal => Ok(true),
            Some(ExecInteractiveMode::Always) => Err(self.unusable(
                "it asks a person for input (interactiveMode: Always), and standard input is not a terminal",
            )),
        }
    }

    async fn run(&self) -> Result<Issued, CredentialsError> {
        let is_interactive = self.is_interactive(std::io::stdin().is_terminal())?;
        let mut input = json!({
            "kind": "ExecCredential",
            "apiVersion": self.api_version,
            "spec": {"interactive": is_interactive},
        });
        let cluster = self.config.cluster.as_ref();
        if let Some(cluster) = cluster.filter(|_| self.config.provide_cluster_info)
            && let Some(spec) = input.get_mut("spec").and_then(Value::as_object_mut)
        {
            let cluster = serde_json::to_value(cluster).unwrap_or_default();
            spec.insert("cluster".to_owned(), cluster);
        }
        let variables = self.config.env.iter().flatten();
        let variables = variables.filter_map(|it| Some((it.get("name")?, it.get("value")?)));
        let mut command = Command::new(&self.command);
        command
            .args(self.config.args.iter().flatten())
            .envs(variables)
            .env(INPUT, input.to_string())
            .stdin(match is_interactive {
                true => Stdio::inherit(),
                false => Stdio::null(),
            })
            .stdout(Stdio::piped())
            // Instructions and errors are for the person, as with kubectl.
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let output = command.spawn().map_err(|cause| self.not_started(cause))?;
        let output = output.wait_with_output();
        let output = match is_interactive {
            true => output.await,
            false => match tokio::time::timeout(RUN_MAX, output).await {
                Ok(output) => output,
                Err(_) => return Err(self.failed("it did not end within 60 s")),
            },
        };
        let output = output.map_err(|cause| self.failed(&cause.to_string()))?;
        if !output.status.success() {
            let reason = format!("{}, see its output above", output.status);
            return Err(self.failed(&reason));
        }
        self.issued(&output.stdout)
    }

    /// Reads the output of the plugin.
    fn issued(&self, output: &[u8]) -> Result<Issued, CredentialsError> {
        let document =
            parse(output).ok_or_else(|| self.failed("its output is not JSON or YAML"))?;
        let text = |pointer: &str| {
            let text = document.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
        };
        let version = text("/apiVersion").unwrap_or_default();
        if version != self.api_version || text("/kind") != Some("ExecCredential") {
            return Err(self.failed(&format!(
                "its output is not an ExecCredential of {}, as the kubeconfig demands",
                self.api_version
            )));
        }
        let pair = match (
            text("/status/clientCertificateData"),
            text("/status/clientKeyData"),
        ) {
            (Some(certificate), Some(key)) => Some([certificate, key]),
            (None, None) => None,
            _ => return Err(self.failed("it returned only a certificate or a key, not both")),
        };
        let token = text("/status/token");
        if token.is_none() && pair.is_none() {
            return Err(self.failed("it returned neither a token nor a certificate"));
        }
        let expires = text("/status/expirationTimestamp")
            .map(str::parse)
            .transpose();
        let expires = expires.map_err(|_| self.failed("its expirationTimestamp is not a time"))?;
        let replaced = self.identity.replace(pair);
        replaced.map_err(|error| self.failed(&error.to_string()))?;
        Ok(Issued {
            header: token.map(bearer).transpose()?,
            expires,
        })
    }

    fn failed(&self, reason: &str) -> CredentialsError {
        CredentialsError::Plugin {
            command: self.command.clone(),
            reason: reason.to_owned(),
        }
    }

    fn not_started(&self, cause: std::io::Error) -> CredentialsError {
        let is_missing = cause.kind() == std::io::ErrorKind::NotFound;
        let hint = self.config.install_hint.as_deref();
        let hint = hint.filter(|hint| is_missing && !hint.trim().is_empty());
        CredentialsError::PluginStart {
            command: self.command.clone(),
            // A kubeconfig may come from anywhere: no control characters for the terminal.
            hint: hint.map(|hint| {
                let clean = |char: char| if char.is_control() { ' ' } else { char };
                hint.trim().chars().map(clean).collect()
            }),
            cause,
        }
    }
}

/// Parses JSON, or YAML, which client-go accepts as well.
fn parse(output: &[u8]) -> Option<Value> {
    if let Ok(document) = serde_json::from_slice(output) {
        return Some(document);
    }
    let text = std::str::from_utf8(output).ok()?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).ok()?;
    documents.into_iter().next().filter(Value::is_object)
}

#[cfg(test)]
mod tests;
