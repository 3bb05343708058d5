//! The flags of `train`: one for each setting that the library lists.

use crate::flags::{number, possible};
use clap::builder::{BoolValueParser, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, FromArgMatches};

use proxlift::training::{Kind, Setting, Settings, StepRule};
use serde_json::{Map, Value};

/// The settings that flags give.
pub struct Flags(pub Settings);

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(Settings::list().iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Settings::list()
            .into_iter()
            .filter_map(|setting| Some((setting.name(), matches.get_one::<Value>(setting.field)?.clone())));
        let settings = Settings::from_map(given.collect::<Map<_, _>>());
        settings.map(Self).map_err(|e| clap::Error::raw(ErrorKind::InvalidValue, e))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag of a setting; `-h` shows only those that most people need.
fn flag(setting: &Setting) -> Arg {
    let flag = Arg::new(setting.field)
        .long(setting.name())
        .help(setting.help())
        .help_heading(setting.group)
        .hide_short_help(!setting.is_common())
        .allow_negative_numbers(true);
    let flag = setting.alias.into_iter().fold(flag, |flag, alias| flag.alias(alias));
    let (usual, flag) = match setting.kind {
        Kind::Number => ("X", flag.value_parser(|text: &str| finite(text).map(Value::from))),
        Kind::Count => ("N", flag.value_parser(whole)),
        Kind::Range => ("A,B", flag.value_parser(range)),
        Kind::List => ("X,..", flag.value_parser(list)),
        Kind::StepRule => ("X", flag.value_parser(step_rule)),
        Kind::Path => ("PATH", flag.value_parser(StringValueParser::new().map(Value::String))),
        Kind::Switch => {
            let flag = flag.num_args(0..=1).default_missing_value("true");
            ("BOOL", flag.value_parser(BoolValueParser::new().map(Value::Bool)).hide_possible_values(true))
        }
        Kind::Choice(names) => {
            let values = PossibleValuesParser::new(names.iter().map(possible));
            ("NAME", flag.value_parser(values.map(Value::String)))
        }
    };
    flag.value_name(setting.value.unwrap_or(usual))
}

fn finite(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if value.is_finite() { Ok(value) } else { Err(format!("{value} is not a finite number")) }
}

fn whole(text: &str) -> Result<Value, String> {
    text.parse::<u64>().map(Value::from).map_err(|_| "give a whole number, 0 or more".into())
}

fn list(text: &str) -> Result<Value, String> {
    text.split(',').map(finite).collect::<Result<Vec<_>, _>>().map(Value::from)
}

fn range(text: &str) -> Result<Value, String> {
    let both = list(text)?;
    if both.as_array().is_some_and(|both| both.len() == 2) {
        return Ok(both);
    }
    Err("give two numbers such as 0.02,0.3".into())
}

fn step_rule(text: &str) -> Result<Value, String> {
    StepRule::try_from(Value::from(text)).map(Value::from).map_err(String::from)
}
