//! Plain mutations of files that the program wrote, without any tool: the same every time, on all cores, with the time and the
//! memory of each case. `crates/proxlift/tests/mutations.rs` and the tests of the command line give it their targets.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A target: its name, how many of all cases it gets compared with others, what it does with bytes, files to start from.
pub struct Target {
    pub name: &'static str,
    pub share: u64,
    pub run: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// No case may take longer, or more memory.
const SLOWEST: f64 = 1.0;
/// What takes longer, in seconds, is measured again.
const SLOW: f64 = 0.01;
const LARGEST: usize = 1 << 30;

/// The rounds that a long attack is cut into; after each, what was done is kept.
const ROUNDS: u64 = 200;
/// Cases that a thread takes at once.
const CHUNK: u64 = 250;

/// Counts the memory of each thread.
pub struct Counting;

thread_local! {
    static TAKEN: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

fn take(bytes: usize) {
    // Threads that end have none.
    let _ = TAKEN.try_with(|taken| {
        let now = taken.get().0.saturating_add(bytes);
        taken.set((now, taken.get().1.max(now)));
    });
}

fn give(bytes: usize) {
    let _ = TAKEN.try_with(|taken| taken.set((taken.get().0.saturating_sub(bytes), taken.get().1)));
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        give(layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Random numbers in a multiplication or two.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

/// Makes `bytes` the mutation of a number.
fn mutated(seeds: &[Vec<u8>], number: u64, bytes: &mut Vec<u8>) {
    let mut dice = Dice(number.wrapping_mul(0xd134_2543_de82_ef95));
    bytes.clear();
    bytes.extend_from_slice(&seeds[dice.below(seeds.len())]);
    for _ in 0..1 + dice.below(5) {
        mutate(&mut dice, bytes, seeds);
    }
}

fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    if bytes.is_empty() {
        return;
    }
    let at = dice.below(bytes.len());
    let end = (at + 1 + dice.below(63)).min(bytes.len());
    match dice.below(9) {
        0 | 1 => bytes[at] ^= 1 << dice.below(8),
        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][dice.below(5)],
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..end)),
        5 => {
            let part: [u8; 64] = std::array::from_fn(|i| bytes.get(at + i).copied().unwrap_or(0));
            bytes.splice(at..at, part[..end - at].iter().copied());
        }
        6 => {
            let other = &seeds[dice.below(seeds.len())];
            let from = dice.below(other.len());
            bytes.splice(at..end, other[from..(from + 64).min(other.len())].iter().copied());
        }
        7 => {
            let number: u32 = [0, 1, 0xffff, 0x7fff_ffff, u32::MAX, 65_536][dice.below(6)];
            let number = if dice.below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
            bytes.iter_mut().skip(at).zip(number).for_each(|(byte, new)| *byte = new);
        }
        _ => bytes[at..end].fill(b'0' + dice.below(10) as u8),
    }
}

/// What a target has gone through.
#[derive(Clone, Copy, Default)]
struct Tally {
    cases: u64,
    seconds: f64,
    /// Seconds and bytes of the worst case.
    slowest: f64,
    largest: usize,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.seconds += other.seconds;
        self.slowest = self.slowest.max(other.slowest);
        self.largest = self.largest.max(other.largest);
    }
}

/// Runs a target over the mutations of some numbers. Panics with the number of one that panics, or takes too much.
fn attack(target: &Target, seeds: &[Vec<u8>], numbers: std::ops::Range<u64>, bytes: &mut Vec<u8>) -> Tally {
    let mut tally = Tally::default();
    for number in numbers {
        mutated(seeds, number, bytes);
        let (mut seconds, memory) = run(target, number, bytes);
        // Again, since other programs run on this machine too.
        for _ in 0..5 {
            if seconds > SLOW {
                seconds = seconds.min(run(target, number, bytes).0);
            }
        }
        assert!(seconds < SLOWEST, "{}: mutation {number} takes {seconds:.1} s", target.name);
        assert!(memory < LARGEST, "{}: mutation {number} takes {memory} bytes", target.name);
        tally.add(&Tally { cases: 1, seconds, slowest: seconds, largest: memory });
    }
    tally
}

fn run(target: &Target, number: u64, bytes: &[u8]) -> (f64, usize) {
    let before = TAKEN.get().0;
    TAKEN.set((before, before));
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
    assert!(result.is_ok(), "{}: mutation {number} panics", target.name);
    (start.elapsed().as_secs_f64(), TAKEN.get().1 - before)
}

/// Attacks all targets with `usual` cases in all, or with `PROXLIFT_MUTATIONS`, and prints what came of it. A long attack keeps
/// what is done in the folder `PROXLIFT_MUTATIONS_KEPT`, and goes on from there.
pub fn attack_all(name: &str, targets: &[Target], usual: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = number("PROXLIFT_MUTATIONS").unwrap_or(usual);
    let kept = std::env::var_os("PROXLIFT_MUTATIONS_KEPT").map(|folder| PathBuf::from(folder).join(name));
    let shares: u64 = targets.iter().map(|target| target.share).sum();
    let rounds = if kept.is_some() { ROUNDS } else { 1 };
    // Of each target in a round.
    let each: Vec<u64> =
        targets.iter().map(|target| (wanted * target.share).div_ceil(shares * rounds)).collect();
    let (first, mut tallies) = kept.as_deref().and_then(|path| recall(path, targets)).unwrap_or_default();
    tallies.resize(targets.len(), Tally::default());
    let seeds: Vec<Vec<Vec<u8>>> = targets.iter().map(|target| (target.seeds)()).collect();
    // Decoders that panic are caught by the library, without a word.
    static CAUGHT: AtomicU64 = AtomicU64::new(0);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |about| {
        CAUGHT.fetch_add(1, Ordering::Relaxed);
        if about.location().is_some_and(|place| place.file().ends_with("fuzz/mutate.rs")) {
            hook(about);
        }
    }));
    for round in first..rounds {
        let chunks: Vec<(usize, std::ops::Range<u64>)> = each
            .iter()
            .enumerate()
            .flat_map(|(i, &count)| {
                let (start, end) = (round * count, (round + 1) * count);
                (start..end).step_by(CHUNK as usize).map(move |at| (i, at..(at + CHUNK).min(end)))
            })
            .collect();
        let (next, found) = (AtomicU64::new(0), Mutex::new(&mut tallies));
        let work = || {
            // One thread each, so that what the library starts is counted where it is asked for.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            let mut bytes = Vec::with_capacity(1 << 16);
            while let Some((i, numbers)) = chunks.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                let tally = attack(&targets[*i], &seeds[*i], numbers.clone(), &mut bytes);
                found.lock().expect("no thread panics with it")[*i].add(&tally);
            }
            drop(pool);
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            // With what it said, which names the case.
            workers.into_iter().for_each(|w| w.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        });
        if let Some(path) = &kept {
            keep(path, round + 1, &tallies);
        }
    }
    print!("{}", table(targets, &tallies));
    println!("panics of decoders, caught by the library in this run: {}", CAUGHT.load(Ordering::Relaxed));
}

fn table(targets: &[Target], tallies: &[Tally]) -> String {
    let mut text = format!(
        "{:<12} {:>12} {:>12} {:>14} {:>14}\n",
        "target", "cases", "a second", "slowest in ms", "most MB"
    );
    let mut all = Tally::default();
    tallies.iter().for_each(|tally| all.add(tally));
    let rows = targets.iter().map(|target| target.name).zip(tallies).chain([("all", &all)]);
    for (name, Tally { cases, seconds, slowest, largest }) in rows {
        let (rate, slowest, largest) =
            (*cases as f64 / seconds.max(1e-9), 1e3 * slowest, *largest as f64 / 1e6);
        let _ = writeln!(text, "{name:<12} {cases:>12} {rate:>12.0} {slowest:>14.1} {largest:>14.1}");
    }
    text
}

fn keep(path: &Path, round: u64, tallies: &[Tally]) {
    let mut text = format!("{round}\n");
    for Tally { cases, seconds, slowest, largest } in tallies {
        let _ = writeln!(text, "{cases} {seconds} {slowest} {largest}");
    }
    let partial = path.with_extension("new");
    std::fs::write(&partial, text).expect("the folder PROXLIFT_MUTATIONS_KEPT can be written to");
    std::fs::rename(partial, path).expect("the same");
}

fn recall(path: &Path, targets: &[Target]) -> Option<(u64, Vec<Tally>)> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let round = lines.next()?.parse().ok()?;
    let tally = |line: &str| {
        let mut words = line.split(' ');
        Some(Tally {
            cases: words.next()?.parse().ok()?,
            seconds: words.next()?.parse().ok()?,
            slowest: words.next()?.parse().ok()?,
            largest: words.next()?.parse().ok()?,
        })
    };
    let tallies = lines.map(tally).collect::<Option<Vec<_>>>()?;
    (tallies.len() == targets.len()).then_some((round, tallies))
}

/// The files to start from are good; written to `PROXLIFT_SEEDS` where that is a folder, for other fuzzers.
pub fn seeds_are_read(targets: &[Target]) {
    for target in targets {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        seeds.iter().for_each(|seed| (target.run)(seed));
        let Ok(folder) = std::env::var("PROXLIFT_SEEDS") else { continue };
        let folder = Path::new(&folder).join(target.name);
        std::fs::create_dir_all(&folder).expect("PROXLIFT_SEEDS can be written to");
        for (i, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i}")), seed).expect("the same");
        }
    }
}
