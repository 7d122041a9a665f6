//! Command lines in the form of Go's pflag, as `kube-apiserver` and `etcd` read them.
//!
//! The flags of each program are in a data file: one line per flag, with its name and the type of
//! its value as the program's `--help` prints it. A flag of the type `bool` needs no value.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result, bail};

/// The flags that a program knows, and the flags that its stand-in implements.
#[derive(Debug)]
pub(super) struct FlagSet {
    /// Name of the program, for `--help` and messages.
    pub(super) program: &'static str,
    /// The data file with the flags of the program.
    pub(super) known: &'static str,
    /// Names of the flags that the stand-in implements.
    pub(super) implemented: &'static [&'static str],
}

/// The result of reading a command line.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Parsed {
    /// The flags that are set.
    Flags(Flags),
    /// The command line asks for help.
    Help,
    /// The command line asks for the version of the program.
    Version,
}

/// The flags of a command line, with all values of each flag.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Flags {
    values: BTreeMap<&'static str, Vec<String>>,
}

impl FlagSet {
    /// Parses a command line without the name of the program.
    ///
    /// # Errors
    /// If a flag is not known, has no value, or an argument is not a flag. The messages are those
    /// of pflag.
    pub(super) fn parse(&self, arguments: impl IntoIterator<Item = String>) -> Result<Parsed> {
        let mut flags = Flags::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let text = match argument.as_str() {
                "-h" | "--help" => return Ok(Parsed::Help),
                "--version" => return Ok(Parsed::Version),
                text if text.starts_with("--") => text.trim_start_matches("--"),
                text if text.starts_with("-v") => text.trim_start_matches('-'),
                text => bail!("unknown command {text:?} for {:?}", self.program),
            };
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text, None),
            };
            let (name, type_) = self
                .flag(name)
                .with_context(|| format!("unknown flag: --{name}"))?;
            let value = match value {
                Some(value) => value,
                None if type_ == "bool" => "true".to_owned(),
                None => arguments
                    .next()
                    .with_context(|| format!("flag needs an argument: --{name}"))?,
            };
            flags.values.entry(name).or_default().push(value);
        }
        Ok(Parsed::Flags(flags))
    }

    /// Returns the name and type of a flag, or `None` if the program has no such flag.
    fn flag(&self, name: &str) -> Option<(&'static str, &'static str)> {
        self.rows().find(|(known, _)| *known == name)
    }

    fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.known.lines().filter_map(|line| line.split_once(' '))
    }

    /// Returns the text of `--help`: every flag of the program, with a remark if the stand-in does
    /// not implement the flag. Programs that start the stand-in search this text for flags.
    pub(super) fn help(&self, about: &str) -> String {
        let mut text = format!("{about}\n\nUsage:\n  {} [flags]\n\nFlags:\n", self.program);
        for (name, type_) in self.rows() {
            let value = if type_ == "bool" { "" } else { type_ };
            let remark = match self.implemented.contains(&name) {
                true => "",
                false => "(accepted, without effect)",
            };
            let flag = format!("--{name} {value}");
            let line = format!("      {flag:<60} {remark}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// Returns the names of the flags on the command line that the stand-in does not implement.
    pub(super) fn without_effect(&self, flags: &Flags) -> Vec<&'static str> {
        let names = flags.values.keys().copied();
        names
            .filter(|name| !self.implemented.contains(name))
            .collect()
    }
}

impl Flags {
    /// Returns the last value of a flag, or `None` if the flag is missing or its value is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name)?.last()?.as_str();
        Some(value).filter(|value| !value.is_empty())
    }

    /// Returns the parts of the values of a flag, which are separated by commas. The flag may be on
    /// the command line more than once.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let values = self.values.get(name).into_iter().flatten();
        values
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns the parsed value of a flag, or `None` if the flag is missing.
    ///
    /// # Errors
    /// If the value does not have the type of the flag.
    pub(super) fn parse<T>(&self, name: &str) -> Result<Option<T>>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                bail!("invalid argument {value:?} for \"--{name}\" flag: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: FlagSet = FlagSet {
        program: "kube-apiserver",
        known: include_str!("flags/kube-apiserver.txt"),
        implemented: &["secure-port", "authorization-mode", "anonymous-auth"],
    };

    fn parse(line: &str) -> Result<Parsed> {
        FLAGS.parse(line.split_whitespace().map(str::to_owned))
    }

    fn flags(line: &str) -> Flags {
        match parse(line).unwrap() {
            Parsed::Flags(flags) => flags,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_follow_an_equals_sign_or_a_space() {
        let flags = flags("--secure-port=6443 --cert-dir /tmp/certs -v=4 --anonymous-auth");
        assert_eq!(flags.parse::<u16>("secure-port").unwrap(), Some(6443));
        assert_eq!(flags.get("cert-dir"), Some("/tmp/certs"));
        assert_eq!(flags.get("v"), Some("4"));
        assert_eq!(flags.parse::<bool>("anonymous-auth").unwrap(), Some(true));
        assert_eq!(flags.get("client-ca-file"), None);
    }

    #[test]
    fn lists_are_separated_by_commas_and_by_repetition() {
        let flags = flags("--authorization-mode=RBAC,Webhook --authorization-mode AlwaysAllow");
        let modes = flags.list("authorization-mode");
        assert_eq!(modes, ["RBAC", "Webhook", "AlwaysAllow"]);
    }

    #[test]
    fn the_last_value_wins_and_an_empty_value_counts_as_missing() {
        assert_eq!(
            flags("--secure-port=1 --secure-port=2").get("secure-port"),
            Some("2")
        );
        assert_eq!(flags("--cert-dir=").get("cert-dir"), None);
    }

    #[test]
    fn errors_are_those_of_pflag() {
        let error = |line| parse(line).unwrap_err().to_string();
        assert_eq!(error("--insecure-port=0"), "unknown flag: --insecure-port");
        assert_eq!(
            error("--secure-port"),
            "flag needs an argument: --secure-port"
        );
        assert_eq!(
            error("serve"),
            "unknown command \"serve\" for \"kube-apiserver\""
        );
        let flags = flags("--secure-port=x");
        assert_eq!(
            flags.parse::<u16>("secure-port").unwrap_err().to_string(),
            "invalid argument \"x\" for \"--secure-port\" flag: invalid digit found in string"
        );
    }

    #[test]
    fn help_lists_each_flag_at_the_start_of_a_line() {
        let help = FLAGS.help("About.");
        let has = |flag: &str| help.lines().any(|line| line.trim_start().starts_with(flag));
        assert!(has("--secure-port int"));
        assert!(has("--anonymous-auth"));
        // envtest of Kubernetes before 1.24 sets this flag if it is in the help text.
        assert!(!has("--insecure-port"));
        assert_eq!(parse("--help").unwrap(), Parsed::Help);
        assert_eq!(parse("--version").unwrap(), Parsed::Version);
    }

    #[test]
    fn flags_without_effect_are_named() {
        let flags = flags("--secure-port=1 --etcd-prefix=/registry --profiling=false");
        assert_eq!(FLAGS.without_effect(&flags), ["etcd-prefix", "profiling"]);
    }
}
