//! `proxlift reproduce`: the experiments of the paper -> trainings side by side -> one report.
//!
//! ```text
//! scale, parts -> plan (runs) -> work (trainings, resumed where they were stopped) -> results -> sections -> report.html
//! ```

mod claims;
mod curves;
mod figure1;
mod figure2;
mod figure3;
mod folder;
mod html;
mod machine;
mod outcome;
mod pictures;
mod plan;
mod results;
mod scale;
mod sections;
mod table1;
mod train_one;
mod work;

use crate::chart::escape;
use crate::flags::pool;
use crate::output;
use crate::train::announce::duration;
use crate::train::interrupt;
use anyhow::Result;
use folder::Folder;
use pictures::Pictures;
use plan::Part;
use proxlift::Error;
use proxlift::engine;
use results::Results;
use scale::Scale;
use sections::{Material, Section};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Run the paper's experiments and write one report with all figures, tables and verdicts.
///
/// Everything is trained by the trainers of `proxlift train`, as they are. The report is a single HTML file; the numbers
/// behind every figure are beside it in CSV and JSON, and every trained network is kept.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  proxlift reproduce --quick                               two minutes: the same report from small experiments
  proxlift reproduce --data tiny-imagenet/ --test bsds/    the paper's data
  proxlift reproduce --only figure1,table1 --seeds 3       parts of it, with bands over three seeds

Run the same command again after an interruption: what is done is not done again. docs/reproduction.md tells where the
paper's pictures come from.")]
pub struct Arguments {
    /// A folder of clean pictures to train on, 1000 at least; of more, 1000 evenly spaced [default: built-in pictures]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A folder of clean pictures to test on, nine at least; of more, nine evenly spaced [default: built-in pictures]
    #[arg(long, value_name = "DIR")]
    test: Option<PathBuf>,
    /// The folder of the report; an existing one is resumed [default: reproduction, or reproduction-quick]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only these parts of the report
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Fewer images and epochs: the shape of the report in two minutes, not its figures
    #[arg(long)]
    quick: bool,
    /// Repeat everything with N seeds; lines become means, with bands from the least to the largest
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: u64,
    /// The mini-batch of LB-FB and SGD in figure 2, which the paper does not tell [default: 50; 20 with --quick]
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Trainings at a time, one thread each [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Hardly any work, for tests
    #[arg(long, hide = true, conflicts_with = "quick")]
    tiny: bool,
}

/// The report's file.
const REPORT: &str = "report.html";

/// Trains what the report needs, and writes it.
///
/// # Errors
/// When the input is bad or a file cannot be written; whatever was computed stays in the folder.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut scale = match (arguments.quick, arguments.tiny) {
        (true, _) => Scale::quick(),
        (_, true) => Scale::tiny(),
        _ => Scale::full(),
    };
    if !(1..=100).contains(&arguments.seeds) {
        return Err(Error::invalid(format!("--seeds is {}, but 1 to 100 make sense", arguments.seeds)).into());
    }
    scale.batch = arguments.batch.unwrap_or(scale.batch);
    // The pool of the evaluations; its check is that of --threads.
    let pool = pool(arguments.threads)?;
    let threads = pool.current_num_threads();
    let parts: Vec<Part> = Part::ALL
        .into_iter()
        .filter(|part| arguments.only.is_empty() || arguments.only.contains(part))
        .collect();
    let runs = plan::runs(&scale, &parts, arguments.seeds)?;
    let (data, test) = (arguments.data.as_deref(), arguments.test.as_deref());
    let pictures = pool.install(|| Pictures::load(data, test, &scale))?;
    let name = if scale.name == Scale::full().name {
        "reproduction".into()
    } else {
        format!("reproduction-{}", scale.name)
    };
    let folder = Folder::open(arguments.out.as_deref().unwrap_or(Path::new(&name)))?;

    output::note(format_args!("train on  {}", pictures.described));
    output::note(format_args!("test on   {}", pictures.test_described));
    output::note(format_args!("to do     {} trainings, {threads} at a time", runs.len()));
    interrupt::listen();
    let start = Instant::now();
    let Some(done) = work::carry_out(runs, &pictures, &folder, threads)? else {
        output::note(format_args!(
            "stopped; nothing is lost: the same command resumes {}",
            folder.root().display()
        ));
        std::process::exit(interrupt::EXIT_CODE);
    };
    let results = Results::new(done);
    output::note("drawing");
    let material = Material { scale: &scale, results: &results, pictures: &pictures, folder: &folder };
    let sections =
        pool.install(|| parts.iter().map(|part| section(*part, &material)).collect::<Result<Vec<_>>>())?;
    report(&material, &sections, arguments.seeds, threads)?;
    output::note(format_args!("took      {}", duration(start.elapsed().as_secs_f64())));
    output::line(folder.root().join(REPORT).display())
}

/// Writes the figures and data of a part, and gives its place in the report.
fn section(part: Part, all: &Material<'_>) -> Result<Section> {
    match part {
        Part::Figure1 => figure1::write(all),
        Part::Figure2 => figure2::write(all),
        Part::Figure3 => figure3::write(all),
        Part::Table1 => table1::write(all),
        Part::Claims => claims::write(all),
    }
}

fn report(all: &Material<'_>, sections: &[Section], seeds: u64, threads: usize) -> Result<()> {
    let training: f64 = all.results.all().iter().map(|done| done.outcome.seconds()).sum();
    let mut commits: Vec<&str> = all.results.all().iter().map(|done| done.outcome.commit.as_str()).collect();
    commits.sort_unstable();
    commits.dedup();
    let seeds: Vec<u64> = (0..seeds).collect();
    let engine = engine::standard().name();
    let setup = json!({
        "program": env!("CARGO_PKG_VERSION"),
        "commit": machine::COMMIT,
        "commits_of_runs": commits,
        "machine": machine::processor(),
        "cores": machine::cores(),
        "system": std::env::consts::OS,
        "engine": engine,
        "trainings_at_a_time": threads,
        "threads_of_a_training": 1,
        "clock": machine::clock(),
        "seeds": seeds,
        "scale": all.scale,
        "train": all.pictures.described,
        "test": all.pictures.test_described,
        "test_images": all.pictures.test_names(),
        "trainings": all.results.all().len(),
        "training_seconds": training,
    });
    all.folder.top("report.json", format!("{setup:#}\n").as_bytes())?;
    let text = |key: &str| escape(setup[key].as_str().unwrap_or_default());
    let several = if commits.len() > 1 {
        format!(" Some runs were trained by other commits: {}.", escape(&commits.join("; ")))
    } else {
        String::new()
    };
    let intro = format!(
        "<p>The experiments of X. Wang, M. Benning and A. Repetti, “A lifted Bregman strategy for training unfolded \
         proximal neural network Gaussian denoisers” (MLSP 2024), run again by <code>proxlift reproduce</code>. \
         Training: {}. Test: {}. Commit {}; {} trainings, {} of one thread in all.</p>",
        text("train"),
        text("test"),
        text("commit"),
        all.results.all().len(),
        duration(training)
    );
    let end = format!(
        "<ul>\n<li>Program: proxlift {}, commit {}.{several}</li>\n<li>Machine: {}, {} cores, {}; engine: {}.</li>\n\
         <li>Threads: {threads} trainings at a time, each on one thread, the longest first. Results do not depend on it; \
         every time in this report is {} of one thread, with the other cores busy, and without evaluation.</li>\n\
         <li>Seeds: {}; each decides the initial weights, the patches, their noise and the order of the samples. Lines are \
         means over seeds, bands go from the least to the largest.</li>\n\
         <li>Training images: {}, patches of {patch} x {patch} pixels.</li>\n<li>Test images: {}: {}; the noise on them is the same \
         for all methods.</li>\n<li>Loss: 1/2 ‖x̂ − x‖² of the network's own forward pass, summed over the pixels and \
         averaged over all training patches with their first noise, after each epoch, for all methods alike; epoch 0 is \
         the untrained network.</li>\n<li>The mini-batch of the comparison is {}: the paper only says that it saturates \
         the memory.</li>\n<li>Every training, with its settings (<code>config.toml</code> for <code>proxlift train \
         --config</code>), its course and its network, is in <code>runs/</code>; <a href=\"report.json\">report.json</a> \
         has this list for programs.</li>\n</ul>\n",
        env!("CARGO_PKG_VERSION"),
        text("commit"),
        text("machine"),
        machine::cores(),
        std::env::consts::OS,
        escape(&engine),
        machine::clock(),
        seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
        text("train"),
        text("test"),
        escape(&all.pictures.test_names().join(", ")),
        all.scale.batch,
        patch = all.scale.patch,
    );
    let page = html::page(
        "Lifted Bregman training of proximal networks, reproduced",
        &intro,
        all.scale.caution().as_deref(),
        sections,
        &end,
    );
    Ok(all.folder.top(REPORT, page.as_bytes())?)
}
