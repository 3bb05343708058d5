//! Flags that several commands share: noise levels, threads.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use proxlift::Error;
pub use proxlift::error::check_not_negative;
use proxlift::image::noise;
use proxlift::named::{Name, Named, from_name};

/// A number, or a fraction such as `25/255`. What it may be is checked where its meaning is known.
pub fn number(text: &str) -> Result<f64, String> {
    let parse = |part: &str| {
        part.trim()
            .parse::<f64>()
            .map_err(|_| "give a number such as 0.1, or a fraction such as 25/255".to_string())
    };
    match text.split_once('/') {
        None => parse(text),
        Some((above, below)) => Ok(parse(above)? / parse(below)?),
    }
}

/// The noise level of an evaluation where neither the user nor a model says one.
pub const DEFAULT_SIGMA: f64 = 0.1;

/// The most noise levels of a curve.
const MOST_LEVELS: usize = 200;

/// Noise levels, in the order they were given: see [`levels`].
#[derive(Clone, Debug, PartialEq)]
pub struct Levels(pub Vec<f64>);

/// Noise levels where white is 1: numbers and ranges `FROM:TO:STEP`, separated by commas. Ranges include both ends.
pub fn levels(text: &str) -> Result<Levels, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let ends = part.split(':').map(number).collect::<Result<Vec<_>, _>>()?;
        match ends[..] {
            [one] => all.push(one),
            [from, to, step] => {
                let count = ((to - from) / step + 1e-9).floor();
                if !(step > 0.0 && count >= 0.0 && count < MOST_LEVELS as f64) {
                    return Err(format!(
                        "give a range as FROM:TO:STEP, such as 0.02:0.3:0.02, of at most {MOST_LEVELS} levels"
                    ));
                }
                // Without the rounding error that 0.02 + 14 * 0.02 has.
                let level = |i: usize| ((from + i as f64 * step) * 1e12).round() / 1e12;
                all.extend((0..=count as usize).map(level));
            }
            _ => return Err("give numbers such as 0.1,25/255 or a range such as 0.02:0.3:0.02".into()),
        }
    }
    for &level in &all {
        noise::check_sigma_below_white(level).map_err(|e| e.to_string())?;
    }
    match all.len() {
        1..=MOST_LEVELS => Ok(Levels(all)),
        many => Err(format!("{many} noise levels are more than {MOST_LEVELS}")),
    }
}

/// A number that is neither negative nor infinite.
pub fn not_negative(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    check_not_negative("the value", value).map(|()| value).map_err(|e| e.to_string())
}

/// A noise level on the scale where white is 1.
pub fn sigma(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    noise::check_sigma_below_white(value).map(|()| value).map_err(|e| e.to_string())
}

/// A pool of `threads` threads, or of one for each core.
pub fn pool(threads: Option<usize>) -> proxlift::Result<rayon::ThreadPool> {
    if let Some(count) = threads
        && !(1..=1024).contains(&count)
    {
        return Err(Error::invalid(format!("--threads is {count}, but it must be between 1 and 1024")));
    }
    if threads.is_none() {
        check_threads_of_environment()?;
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build().map_err(|e| unstarted(&e))
}

/// Starts the threads of work that is not given a pool, while their failure can be told.
pub fn start_threads() -> proxlift::Result<()> {
    check_threads_of_environment()?;
    rayon::ThreadPoolBuilder::new().build_global().map_err(|e| unstarted(&e))
}

fn unstarted(error: &rayon::ThreadPoolBuildError) -> Error {
    Error::invalid(format!(
        "threads cannot be started: there is no memory for them, or too many run ({error})"
    ))
}

/// Refuses a number of threads from outside that no machine has.
pub fn check_threads_of_environment() -> proxlift::Result<()> {
    let count = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse::<u64>().ok());
    match count {
        Some(count) if count > 1024 => Err(Error::invalid(format!(
            "RAYON_NUM_THREADS is {count}, but it must be at most 1024: unset it, or give --threads"
        ))),
        _ => Ok(()),
    }
}

/// A number of bytes such as `500M` or `4G`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "give a number of bytes, such as 500M or 4G".to_string();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1.0,
        "K" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if number > 0.0 && number * unit < 1e18 { Ok((number * unit) as u64) } else { Err(wrong()) }
}

/// What is chosen by its name, unless the program chooses.
#[derive(Clone, Copy)]
pub struct OrAuto<T>(pub Option<T>);

/// One of the names of an enum, each with its help, or `auto`.
pub fn named_or_auto<T: Named + Clone + Send + Sync + 'static>(
    auto: &'static str,
) -> impl TypedValueParser<Value = OrAuto<T>> {
    let names = T::names().iter().map(possible).chain([PossibleValue::new("auto").help(auto)]);
    PossibleValuesParser::new(names).try_map(|name| {
        if name == "auto" { Ok(OrAuto(None)) } else { from_name(&name).map(|v| OrAuto(Some(v))) }
    })
}

/// One of the names of an enum, each with its help.
pub fn one_of<T: Named + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::names().iter().map(possible)).try_map(|name| from_name(&name))
}

/// A name that a value may have.
pub fn possible(name: &Name) -> PossibleValue {
    PossibleValue::new(name.name).aliases(name.aliases).help(name.help())
}
