//! Damaged files of every kind: a fixed number of mutations of files that the program wrote, the same every time; or for
//! hours, with `fuzz/run HOURS`. No panic, no case over a second.
#![allow(missing_docs)]

#[path = "../../../fuzz/targets.rs"]
mod targets;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use targets::{ALL, Target, named};

/// Mutations of each target.
const COUNT: u64 = 6_000;

/// One case must not take longer.
const SLOWEST: Duration = Duration::from_secs(1);

fn mutated(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(number);
    let mut bytes = seeds[rng.random_range(0..seeds.len())].clone();
    for _ in 0..rng.random_range(1..6) {
        mutate(&mut rng, &mut bytes, seeds);
    }
    bytes
}

fn mutate(rng: &mut impl Rng, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.random_range(0..bytes.len());
    let end = (at + rng.random_range(1..64)).min(bytes.len());
    match rng.random_range(0..8) {
        0 => bytes[at] ^= 1 << rng.random_range(0..8),
        1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.random_range(0..5)],
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        5 => {
            let other = &seeds[rng.random_range(0..seeds.len())];
            let from = rng.random_range(0..other.len());
            let part = &other[from..(from + 64).min(other.len())];
            bytes.splice(at..end, part.iter().copied());
        }
        6 => {
            let number: u32 = [0, 1, 0xffff, 0x7fff_ffff, u32::MAX, 65_536][rng.random_range(0..6)];
            let number = if rng.random() { number.to_le_bytes() } else { number.to_be_bytes() };
            bytes.iter_mut().skip(at).zip(number).for_each(|(byte, new)| *byte = new);
        }
        _ => bytes[at..end].fill(rng.random_range(b'0'..=b'9')),
    }
}

/// Runs a target over mutations from `first` on as long as `go` says; how many there were.
fn attack(target: &Target, first: u64, mut go: impl FnMut(u64) -> bool) -> u64 {
    let seeds = (target.seeds)();
    let mut number = first;
    while go(number) {
        let bytes = mutated(&seeds, number);
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes)));
        assert!(result.is_ok(), "{}: mutation {number} panics", target.name);
        // Twice, since other programs run on this machine too.
        if start.elapsed() > SLOWEST {
            let start = Instant::now();
            (target.run)(&bytes);
            assert!(
                start.elapsed() < SLOWEST,
                "{}: mutation {number} takes {:?}",
                target.name,
                start.elapsed()
            );
        }
        number += 1;
    }
    number - first
}

#[test]
fn no_mutation_of_any_file_panics_or_takes_long() {
    let hours: f64 =
        std::env::var("PROXLIFT_MUTATION_HOURS").ok().and_then(|h| h.parse().ok()).unwrap_or(0.0);
    let share = Duration::from_secs_f64(hours * 3600.0 / ALL.len() as f64);
    for target in &ALL {
        let start = Instant::now();
        let done = match hours > 0.0 {
            // Other ones than those of every day, and each time others.
            true => {
                let first = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                attack(target, first.as_micros() as u64, |_| start.elapsed() < share)
            }
            false => attack(target, 0, |number| number < COUNT),
        };
        println!("{:<12} {done:>12} mutations in {:.1} s", target.name, start.elapsed().as_secs_f64());
    }
}

/// The files to start from are good; written to `PROXLIFT_SEEDS` where that is a folder, for other fuzzers.
#[test]
fn seeds_are_read() {
    for target in &ALL {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty() && named(target.name).is_some(), "{}", target.name);
        seeds.iter().for_each(|seed| (target.run)(seed));
        let Ok(folder) = std::env::var("PROXLIFT_SEEDS") else { continue };
        let folder = std::path::Path::new(&folder).join(target.name);
        std::fs::create_dir_all(&folder).unwrap();
        for (i, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i}")), seed).unwrap();
        }
    }
}
