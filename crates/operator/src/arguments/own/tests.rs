use clap::error::ErrorKind;

use super::*;

/// Address of the store; this text must not become the description of the whole binary.
#[derive(Debug, PartialEq, clap::Args)]
struct Store {
    /// URL of the store
    #[arg(long, env = "OPKIT_TEST_STORE_URL")]
    store_url: String,
    /// How many copies to keep
    #[arg(long, short = 'c', default_value_t = 1)]
    copies: u32,
}

const STORE: fn() -> ArgsType = ArgsType::of::<Store>;

fn parse(arguments: &[&str]) -> Result<(Arguments, ParsedArgs), clap::Error> {
    let own = [STORE()];
    let line = CommandLine::new("shop-operator", &own).unwrap();
    let all = std::iter::once(&"shop-operator").chain(arguments);
    line.parse(all.map(Into::into))
}

#[test]
fn own_flags_are_accepted_before_and_after_the_command() {
    let check = |arguments: &[&str]| {
        let (found, own) = parse(arguments).unwrap();
        assert_eq!(found.flags.namespace, ["a"], "{arguments:?}");
        let store = own.get::<Store>().unwrap();
        assert_eq!((&*store.store_url, store.copies), ("http://a", 3));
    };
    check(&["--store-url=http://a", "-c3", "--namespace=a"]);
    check(&["--store-url", "http://a", "run", "--namespace=a", "-c", "3"]);
    check(&[
        "--namespace",
        "a",
        "run",
        "--copies=3",
        "--store-url",
        "http://a",
    ]);
}

#[test]
fn required_flags_are_required_only_by_run() {
    for arguments in [&[][..], &["run"]] {
        let error = parse(arguments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument);
        assert!(
            error.to_string().contains("--store-url <STORE_URL>"),
            "{error}"
        );
    }
    for command in ["manifests", "version"] {
        assert!(parse(&[command]).is_ok(), "{command}");
        assert!(parse(&["-c", "2", command]).is_ok(), "{command}");
        // Other errors are still reported.
        let error = parse(&[command, "-c", "two"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
    }
    // A value is not parsed as a command.
    let error = parse(&["--store-url", "version", "-c", "two"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ValueValidation);
    let (arguments, _) = parse(&["--store-url", "manifests"]).unwrap();
    assert_eq!(arguments.command, None);
}

#[test]
fn help_shows_own_flags_beside_those_of_every_operator() {
    for arguments in [&["--help"][..], &["manifests", "--help"]] {
        let error = parse(arguments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp);
        let help = error.to_string();
        for text in [
            "--store-url <STORE_URL>",
            "URL of the store",
            "[env: OPKIT_TEST_STORE_URL=]",
            "--namespace <NAME>",
            "manifests: Print the manifests that the operator needs",
        ] {
            assert!(help.contains(text), "{text} is not in\n{help}");
        }
        assert!(!help.contains("Address of the store"), "{help}");
        let at = |text: &str| help.find(text).unwrap();
        assert!(at("\nArguments:\n") < at("\nOptions:\n"), "{help}");
        let own = at("\nOptions of this operator:\n");
        assert!(
            at("--namespace") < own && own < at("--store-url <STORE_URL>\n"),
            "{help}"
        );
    }
}

#[test]
fn given_values_are_parsed_without_the_environment() {
    // cargo sets this variable for every test process.
    #[derive(clap::Args)]
    struct FromEnv {
        #[arg(long, env = "CARGO_PKG_NAME")]
        package: Option<String>,
    }
    let own = [ArgsType::of::<FromEnv>()];
    let line = CommandLine::new("shop-operator", &own).unwrap();
    let given = |arguments: &[&str]| {
        let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
        line.parse_own(&arguments)
            .map(|own| own.get::<FromEnv>().unwrap().package)
    };
    assert_eq!(given(&[]).unwrap(), None);
    assert_eq!(given(&["--package", "a"]).unwrap().as_deref(), Some("a"));
    // The process's own command line reads the variable.
    let (_, own) = line.parse(["shop-operator".into()]).unwrap();
    let package = own.get::<FromEnv>().unwrap().package;
    assert_eq!(package.as_deref(), Some(env!("CARGO_PKG_NAME")));
    // Flags that every operator has are not among the values.
    let error = given(&["--namespace", "a"]).unwrap_err().to_string();
    let expected =
        "cannot run shop-operator with these arguments: unexpected argument '--namespace' found";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_missing_flag_is_reported_in_one_line() {
    let own = [STORE()];
    let line = CommandLine::new("shop-operator", &own).unwrap();
    let error = line.parse_own(&[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot run shop-operator with these arguments: \
         the following required arguments were not provided: --store-url <STORE_URL>"
    );
}

mod collisions {
    use super::*;

    #[derive(clap::Args)]
    struct Long {
        #[arg(long = "metrics-bind-address")]
        address: Option<String>,
    }
    #[derive(clap::Args)]
    struct Alias {
        #[arg(long, alias = "kubeconfig")]
        cluster: Option<String>,
    }
    #[derive(clap::Args)]
    struct Short {
        #[arg(short = 'h')]
        hours: Option<u8>,
    }
    #[derive(clap::Args)]
    struct Variable {
        #[arg(long, env = "WATCH_NAMESPACE")]
        watched: Option<String>,
    }
    #[derive(clap::Args)]
    struct Id {
        #[arg(long = "shop-namespace")]
        namespace: Option<String>,
    }
    #[derive(clap::Args)]
    struct Copies {
        #[arg(short)]
        c: bool,
    }
    #[derive(clap::Args)]
    struct Positional {
        file: Option<String>,
    }
    #[derive(clap::Subcommand)]
    enum Verb {
        Sell,
    }
    #[derive(clap::Args)]
    struct Nested {
        #[command(subcommand)]
        verb: Option<Verb>,
    }

    #[test]
    fn are_errors_that_name_the_flag() {
        let check = |own: &[ArgsType], expected: &str| {
            let error = CommandLine::new("shop-operator", own).unwrap_err();
            let error = error.to_string();
            assert!(error.ends_with(expected), "{error}\nis not\n{expected}");
            let last = own.last().unwrap().name;
            assert!(
                error.starts_with(&format!("the type of flags {last} ")),
                "{error}"
            );
        };
        let of = |name: &str, who: &str| format!("declares {name}, which {who} has: rename it");
        check(
            &[ArgsType::of::<Long>()],
            &of("--metrics-bind-address", "opkit"),
        );
        check(&[ArgsType::of::<Alias>()], &of("--kubeconfig", "opkit"));
        check(&[ArgsType::of::<Short>()], &of("-h", "opkit"));
        let variable = of("the environment variable WATCH_NAMESPACE", "opkit");
        check(&[ArgsType::of::<Variable>()], &variable);
        check(
            &[ArgsType::of::<Id>()],
            &of("the argument id namespace", "opkit"),
        );
        check(
            &[STORE(), ArgsType::of::<Copies>()],
            &of("-c", STORE().name),
        );
        check(&[STORE(), STORE()], &of("--store-url", STORE().name));
        let positional = "has the positional argument file: make it a flag with #[arg(long)]";
        check(&[ArgsType::of::<Positional>()], positional);
        let nested = "has subcommands: those of an operator are run, manifests and version";
        check(&[ArgsType::of::<Nested>()], nested);
    }
}
