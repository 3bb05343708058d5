//! Flags that several commands share: noise levels, threads.

use anyhow::Context;
use proxlift::Error;

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

/// Refuses a value of `flag` that is negative or not a finite number.
pub fn check_not_negative(flag: &str, value: f64) -> proxlift::Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::invalid(format!("{flag} is {value}, but it must be a finite number, 0 or more")))
}

/// Refuses a noise level that is negative, not finite, or meant for another scale than `[0, 1]`.
pub fn check_sigma_below_white(sigma: f64) -> proxlift::Result<()> {
    check_not_negative("--sigma", sigma)?;
    if sigma <= 1.0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "--sigma is {sigma}, but white is 1 here: for {sigma} gray levels of 8 bits give --sigma {sigma}/255"
    )))
}

/// A pool of `threads` threads, or of one for each core.
pub fn pool(threads: Option<usize>) -> anyhow::Result<rayon::ThreadPool> {
    if let Some(count) = threads
        && !(1..=1024).contains(&count)
    {
        return Err(Error::invalid(format!("--threads is {count}, but 1 to 1024 make sense")).into());
    }
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
    builder.build().context("cannot start threads")
}

/// Two numbers, such as `0.02,0.3`.
pub fn range(text: &str) -> Result<[f64; 2], String> {
    let wrong = || format!("{text} is not two numbers such as 0.02,0.3");
    let (first, second) = text.split_once(',').ok_or_else(wrong)?;
    Ok([number(first.trim())?, number(second.trim())?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_numbers() {
        assert_eq!(number("25/255"), Ok(25.0 / 255.0));
        assert_eq!(number(" 0.1"), Ok(0.1));
        assert!(number("a lot").unwrap_err().contains("25/255"));
        assert!(number("1/").is_err());
    }

    #[test]
    fn numbers_without_meaning_are_refused() {
        for bad in [-0.1, f64::NAN, f64::INFINITY, 25.0] {
            assert!(check_sigma_below_white(bad).is_err(), "{bad}");
        }
        assert!(check_sigma_below_white(0.0).is_ok());
    }
}
