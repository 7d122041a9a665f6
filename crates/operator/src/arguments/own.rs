//! Flags that an operator declares itself, in addition to those that every operator has.

use std::any::{TypeId, type_name};
use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::Arc;

use clap::builder::{OsStr, Resettable};
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches};
use opkit_controller::Error;

use super::{Arguments, Command};
use crate::OperatorError;

/// Heading in `--help` above the operator's own flags, unless their type sets a heading.
const HEADING: &str = "Options of this operator";

/// Type whose fields are flags that an operator declares.
#[derive(Debug, Clone, Copy)]
pub struct ArgsType {
    id: TypeId,
    pub(crate) name: &'static str,
    augment: fn(clap::Command) -> clap::Command,
    check: fn(&ArgMatches) -> Result<(), clap::Error>,
}

impl ArgsType {
    pub(crate) fn of<A: Args + 'static>() -> Self {
        Self {
            id: TypeId::of::<A>(),
            name: type_name::<A>(),
            augment: A::augment_args,
            check: |matches| A::from_arg_matches(matches).map(drop),
        }
    }

    /// Builds a command that has only the arguments and groups of this type.
    fn command(&self) -> clap::Command {
        (self.augment)(clap::Command::new(self.name))
    }
}

impl PartialEq for ArgsType {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Parsed values of the declared flags, from which each declared type can be read.
#[derive(Debug, Clone)]
pub struct ParsedArgs {
    matches: Arc<ArgMatches>,
}

impl ParsedArgs {
    /// Returns the values of a declared type.
    pub(crate) fn get<A: Args>(&self) -> Result<A, Error> {
        A::from_arg_matches(&self.matches).map_err(|error| Error::msg(one_line(&error)))
    }
}

/// All flags of an operator's command line.
#[derive(Debug)]
pub(crate) struct CommandLine<'a> {
    operator: &'a str,
    own: &'a [ArgsType],
}

impl<'a> CommandLine<'a> {
    /// Creates a command line with the flags that every operator has and those of `own`.
    ///
    /// # Errors
    /// Returns an error if an argument of `own` has the name of another argument, or cannot be a
    /// flag.
    pub(crate) fn new(operator: &'a str, own: &'a [ArgsType]) -> Result<Self, OperatorError> {
        check_names(own)?;
        Ok(CommandLine { operator, own })
    }

    /// Parses the arguments of the process; the first one is the binary. Flags that the operator
    /// declares as required are required by `run` and `plan`, not by `manifests` and `version`.
    pub(crate) fn parse(
        &self,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<(Arguments, ParsedArgs), clap::Error> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let own = self.own();
        let all = Arguments::command().bin_name(self.operator);
        let names = own.clone().into_iter().flat_map(|own| own.args);
        let lenient = all.clone().args(names.map(|arg| arg.required(false)));
        let lenient = lenient.ignore_errors(true);
        let command = lenient.try_get_matches_from(&arguments).ok();
        let command = command.and_then(|found| Arguments::from_arg_matches(&found).ok());
        let command = command.and_then(|found| found.command);
        let is_run = matches!(command, None | Some(Command::Run | Command::Plan));

        let mut strict = all;
        for own in own {
            strict = strict.args(own.args.into_iter().map(|arg| match is_run {
                true => arg,
                false => arg.required(false),
            }));
            strict = strict.groups(own.groups.into_iter().map(|group| match is_run {
                true => group,
                false => group.required(false),
            }));
        }
        let matches = strict.try_get_matches_from(arguments)?;
        let arguments = Arguments::from_arg_matches(&matches)?;
        if is_run {
            for own in self.own {
                (own.check)(&matches)?;
            }
        }
        let matches = Arc::new(matches);
        Ok((arguments, ParsedArgs { matches }))
    }

    /// Parses values of the operator's own flags that do not come from a process's command line.
    /// The environment is not read.
    pub(crate) fn parse_own(&self, arguments: &[OsString]) -> Result<ParsedArgs, OperatorError> {
        let mut command = clap::Command::new("operator")
            .no_binary_name(true)
            .disable_help_flag(true);
        for own in self.own() {
            let args = own.args.into_iter();
            command = command
                .args(args.map(|arg| arg.env(Resettable::<OsStr>::Reset)))
                .groups(own.groups);
        }
        let refused = |error: clap::Error| OperatorError::Arguments {
            operator: self.operator.to_owned(),
            problem: one_line(&error),
        };
        let matches = command.try_get_matches_from(arguments).map_err(refused)?;
        for own in self.own {
            (own.check)(&matches).map_err(refused)?;
        }
        let matches = Arc::new(matches);
        Ok(ParsedArgs { matches })
    }

    /// Returns the arguments and groups of the operator's own types. They are copied one by one,
    /// because clap's derive would replace the description of the command with the documentation of
    /// the type.
    fn own(&self) -> Vec<OwnArgs> {
        let own = self.own.iter().map(ArgsType::command);
        let headed = |arg: &Arg| match arg.get_help_heading() {
            Some(_) => arg.clone(),
            None => arg.clone().help_heading(HEADING),
        };
        let own = own.map(|command| OwnArgs {
            args: command.get_arguments().map(headed).collect(),
            groups: command.get_groups().cloned().collect(),
        });
        own.collect()
    }
}

#[derive(Clone)]
struct OwnArgs {
    args: Vec<Arg>,
    groups: Vec<clap::ArgGroup>,
}

/// Checks that the operator's own arguments are flags, and that no two arguments share a name. clap
/// reports shared names only in debug builds, by a panic.
fn check_names(own: &[ArgsType]) -> Result<(), OperatorError> {
    let mut taken: HashMap<String, &str> = HashMap::new();
    taken.extend(["--help", "-h"].map(|name| (name.to_owned(), "opkit")));
    for arg in Arguments::command().get_arguments() {
        taken.extend(names_of(arg).map(|name| (name, "opkit")));
    }
    for args in own {
        let command = args.command();
        let problem = |problem: String| OperatorError::Flag {
            args: args.name,
            problem,
        };
        if command.has_subcommands() {
            let text = "has subcommands: those of an operator are run, manifests and version";
            return Err(problem(text.to_owned()));
        }
        if let Some(arg) = command.get_positionals().next() {
            let text = format!(
                "has the positional argument {}: make it a flag with #[arg(long)]",
                arg.get_id()
            );
            return Err(problem(text));
        }
        let groups = command.get_groups();
        let groups = groups.map(|group| format!("the group {}", group.get_id()));
        let arguments = command.get_arguments();
        for name in arguments.flat_map(names_of).chain(groups) {
            if let Some(owner) = taken.get(&name) {
                return Err(problem(format!(
                    "declares {name}, which {owner} has: rename it"
                )));
            }
            taken.insert(name, args.name);
        }
    }
    Ok(())
}

/// Returns the names of an argument that must be unique: flags, environment variable and clap's id.
fn names_of(arg: &Arg) -> impl Iterator<Item = String> + use<> {
    let longs = arg.get_long().into_iter().map(str::to_owned);
    let aliases = arg.get_all_aliases().unwrap_or_default();
    let longs = longs.chain(aliases.into_iter().map(str::to_owned));
    let shorts = arg.get_short().into_iter();
    let shorts = shorts.chain(arg.get_all_short_aliases().unwrap_or_default());
    let mut names: Vec<_> = longs.map(|name| format!("--{name}")).collect();
    names.extend(shorts.map(|name| format!("-{name}")));
    let variable = arg.get_env().map(|name| name.to_string_lossy());
    names.extend(variable.map(|name| format!("the environment variable {name}")));
    // The id is last, because most arguments with the same id have the same flag as well.
    names.push(format!("the argument id {}", arg.get_id()));
    names.into_iter()
}

/// Returns clap's message without its advice and usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\n\nUsage:", "\n\nFor more information"]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min();
    let text = end.and_then(|end| text.get(..end)).unwrap_or(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
