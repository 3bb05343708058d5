//! What a step needs of memory: measured by processes that do nothing else.

use crate::files::{keep, recall};
use crate::html::table;
use crate::reproduce::{folder::Folder, machine::thread_seconds};
use anyhow::Result;
use maud::{Markup, html};
use proxlift::Error;
use proxlift::lifting::{
    Batch, Dense, LbFb, LbFbOptions, Loss, Network, Rows, Rule, Trainer, sweep, sweep_recomputing,
};
use proxlift::prox::BoxClip;
use proxlift::random::{seeded, unit};
use proxlift::training::Auxiliary;
use serde::{Deserialize, Serialize};
use std::process::Command;

/// Width of every layer, and samples of a batch.
const WIDTH: usize = 256;
const SAMPLES: usize = 1000;
/// Batches of the set: persistent `u` is kept for all of them.
const BATCHES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    Backprop,
    Lifted,
    BackpropRecomputing,
    LiftedRecomputing,
    LbFb,
    LbFbPersistent,
}

impl Way {
    pub const ALL: [Self; 6] = [
        Self::Backprop,
        Self::Lifted,
        Self::BackpropRecomputing,
        Self::LiftedRecomputing,
        Self::LbFb,
        Self::LbFbPersistent,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::Backprop => "back-propagation",
            Self::Lifted => "lifted, u anchored",
            Self::BackpropRecomputing => "back-propagation, features computed again",
            Self::LiftedRecomputing => "lifted, features computed again",
            Self::LbFb => "LB-FB, u anchored",
            Self::LbFbPersistent => "LB-FB, u persistent, 4 batches",
        }
    }
}

/// What one process found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub depth: usize,
    pub way: Way,
    /// The largest memory of the process beyond that of its network and data, in MB.
    pub megabytes: f64,
    /// Processor time of a step.
    pub seconds: f64,
}

/// In a process of its own, on one thread: measures and prints.
pub fn measure(way: Way, depth: usize) -> Result<()> {
    let mut rng = seeded(1);
    let mut network = Network::new(Loss::Squared);
    for _ in 0..depth {
        network = network.layer(Dense::random(WIDTH, WIDTH, 1.0, &mut rng)?, BoxClip::symmetric(vec![1.0])?);
    }
    let mut network: Network<f32> = network.output(Dense::random(WIDTH, WIDTH, 1.0, &mut rng)?)?;
    let data: Vec<f32> = (0..SAMPLES * WIDTH).map(|_| unit(&mut rng)).collect();
    let z = Rows::new(WIDTH, data)?;
    let every = ((depth as f64 / 2.0).sqrt().round() as usize).max(1);
    let before = peak()?;
    let clock = thread_seconds();
    let mut steps = 1;
    match way {
        Way::Backprop => drop(sweep(&network, Rule::Backprop, &z, &z)?),
        Way::Lifted => drop(sweep(&network, Rule::Lifted { mu: 1.0 }, &z, &z)?),
        Way::BackpropRecomputing => drop(sweep_recomputing(&network, Rule::Backprop, &z, &z, every)?),
        Way::LiftedRecomputing => drop(sweep_recomputing(&network, Rule::Lifted { mu: 1.0 }, &z, &z, every)?),
        Way::LbFb | Way::LbFbPersistent => {
            let persistent = way == Way::LbFbPersistent;
            steps = if persistent { BATCHES } else { 1 };
            let auxiliary = if persistent { Auxiliary::Persistent } else { Auxiliary::Anchored };
            let options = LbFbOptions { auxiliary, ..LbFbOptions::default() };
            let mut trainer = LbFb::new(&network, options, steps * SAMPLES)?;
            for batch in 0..steps {
                let indices: Vec<usize> = (batch * SAMPLES..(batch + 1) * SAMPLES).collect();
                trainer.step(&mut network, Batch { z: &z, x: &z, indices: &indices }, 0.0)?;
            }
        }
    }
    let seconds = clock.zip(thread_seconds()).map_or(0.0, |(from, to)| to - from) / steps as f64;
    let megabytes = (peak()? - before) / 1e6;
    println!("{}", serde_json::to_string(&Measured { depth, way, megabytes, seconds })?);
    Ok(())
}

/// The largest memory that this process has had, in bytes (Linux).
fn peak() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    Ok(1024.0
        * kilobytes
            .ok_or_else(|| Error::invalid("this system does not tell how much memory a process has had"))?)
}

/// All ways at these depths, one process after the other; empty where the system does not tell. What was found is kept.
pub fn all(folder: &Folder, depths: &[usize]) -> Result<Vec<Measured>> {
    let path = folder.runs().join("memory.json");
    if let Some(known) = recall(&path) {
        return Ok(known);
    }
    let program = std::env::current_exe()?;
    let mut measured = Vec::new();
    for &depth in depths {
        for way in Way::ALL {
            let name = clap::ValueEnum::to_possible_value(&way).map(|value| value.get_name().to_string());
            let told = Command::new(&program)
                .args([
                    "reproduce",
                    "--only",
                    "lifting",
                    "--threads",
                    "1",
                    "--measure-depth",
                    &depth.to_string(),
                ])
                .args(["--measure-memory", &name.unwrap_or_default()])
                .output()?;
            match serde_json::from_slice(&told.stdout) {
                Ok(one) => measured.push(one),
                Err(_) => return Ok(Vec::new()),
            }
        }
    }
    keep(&path, &measured)?;
    Ok(measured)
}

/// What each way needs at the depths that were measured.
pub fn section(measured: &[Measured]) -> Markup {
    let mut depths: Vec<usize> = measured.iter().map(|m| m.depth).collect();
    depths.dedup();
    let row = |way: Way| {
        let cells = depths.iter().map(|depth| {
            let found = measured.iter().find(|m| m.way == way && m.depth == *depth);
            found.map_or("–".into(), |m| format!("{:.0} MB, {:.2} s", m.megabytes, m.seconds))
        });
        std::iter::once(way.label().to_string()).chain(cells).collect::<Vec<_>>()
    };
    let head: Vec<String> = depths.iter().map(|depth| format!("{depth} layers")).collect();
    let head: Vec<&str> = std::iter::once("a step by").chain(head.iter().map(String::as_str)).collect();
    html! {
        section id="memory" {
            h2 { "Memory" }
            p {
                "A chain of clipped layers, 256 wide, batches of 1000: 1 MB for the features of a layer. What a process had at \
                 most beyond its network and data, and the processor time of a step. Anchored lifting needs what \
                 back-propagation needs, for secants too are taken at v, and both can compute features again instead of \
                 keeping them. Block-coordinate steps with backtracking hold trials beside them; persistent u is kept for \
                 the whole set."
            }
            @if measured.is_empty() {
                p { "Not measured: this system does not tell how much memory a process has had." }
            } @else {
                (table(&head, &Way::ALL.map(row)))
            }
        }
    }
}
