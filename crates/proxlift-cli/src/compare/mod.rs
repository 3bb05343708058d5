//! `proxlift compare`: denoisers side by side, in numbers and in pictures.

mod column;
pub mod sheet;
mod show;

use crate::files::{check_extension, check_free, write};
use crate::flags::{pool, sigma};
use crate::output::{self, Progress};
use crate::scores::{noisy, score_picture};
use crate::test_set::{TestSet, channels};
use anyhow::Result;
use column::{Column, Named, named};
use proxlift::{Denoiser, evaluation::Score, image::Image};
use serde_json::json;
use sheet::{Means, Sheet};
use show::{Show, show};
use std::path::PathBuf;

/// Compare denoisers: a table of scores, and a sheet of pictures to judge by eye.
///
/// All denoisers get the same noisy pictures: white Gaussian noise, not clipped, the same as in `proxlift evaluate` for
/// the same seed. Total variation is always included. Results of other programs can be added as folders of pictures
/// that are named like the clean ones; `proxlift evaluate --export-noisy` writes the noisy pictures to start from.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/compare.txt").trim_end())]
pub struct Arguments {
    /// `best`, `small`, or a file written by `proxlift train`; may be given several times. NAME is its label [default:
    /// the name of the file]
    #[arg(long, value_name = "[NAME=]MODEL", value_parser = named)]
    model: Vec<Named>,
    /// Results of another program: pictures named like the clean ones; may be given several times
    #[arg(long, value_name = "NAME=DIR", value_parser = named)]
    also: Vec<Named>,
    /// A folder of clean pictures [default: 12 built-in procedural pictures of 128 x 128 pixels]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The noise level, where white is 1 [default: the level that the first model was trained for, otherwise 0.1]
    #[arg(long, value_name = "S", value_parser = sigma, allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// The seed of the noise
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Only the first N pictures
    #[arg(long, value_name = "N")]
    limit: Option<std::num::NonZeroUsize>,
    /// Compare colour pictures in grey
    #[arg(long)]
    grey: bool,
    /// Clip results to [0, 1] before they are scored
    #[arg(long)]
    clip: bool,
    /// Write a sheet of pictures, as .html or .svg: a single self-contained file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Pictures on the sheet: how many, evenly spaced, or their names, separated by commas
    #[arg(long, value_name = "N|NAMES", value_parser = show, default_value = "3")]
    show: Show,
    /// The side of the centre crops that are shown, in pixels [default: what fits a page]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(16..=2048))]
    side: Option<u16>,
    /// Draw the error of each result under it
    #[arg(long)]
    errors: bool,
    /// Replace the sheet if it exists
    #[arg(long)]
    overwrite: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(path) = &arguments.output {
        check_extension(path, &["html", "svg"])?;
        check_free(path, arguments.overwrite)?;
    }
    let models =
        arguments.model.iter().map(|named| Ok((named, Denoiser::open(&named.path.to_string_lossy())?)));
    let models: Vec<_> = models.collect::<proxlift::Result<_>>()?;
    pool(arguments.threads)?.install(|| {
        let needed: Vec<_> = models.iter().filter_map(|(_, denoiser)| denoiser.channels()).collect();
        let channels = channels(&needed, arguments.grey, arguments.data.as_deref())?;
        let (columns, sigma) =
            column::all(&models, &arguments.also, arguments.sigma, channels, arguments.clip)?;
        let pictures = TestSet::load(arguments.data.as_deref(), channels)?;
        let count = arguments.limit.map_or(pictures.len(), |most| most.get().min(pictures.len()));
        let shown = arguments.show.of(&pictures, count)?;
        let mut sheet = Sheet::new(columns.len() + 1, arguments.side.map(usize::from), arguments.errors);
        let progress = Progress::new(count, "comparing");
        let mut scores = vec![Vec::with_capacity(count); columns.len()];
        for few in pictures.few_at_a_time(count) {
            let clean = pictures.read(few.clone())?;
            let noisy = noisy(&clean, few.start, sigma, arguments.seed)?;
            let results = columns.iter().map(|column| column.results(&pictures, few.clone(), &clean, &noisy));
            let results: Vec<Vec<Image>> = results.collect::<proxlift::Result<_>>()?;
            for (at, i) in few.enumerate() {
                let clean = &clean[at];
                for (scores, results) in scores.iter_mut().zip(&results) {
                    scores.push(score_picture(&pictures.names()[i], clean, &results[at])?);
                }
                if arguments.output.is_some() && shown.contains(&i) {
                    let made = columns.iter().zip(&results).zip(&scores);
                    let made =
                        made.map(|((column, results), scores)| (&*column.name, &results[at], scores[i]));
                    sheet.add(&pictures.name(i).display().to_string(), clean, made)?;
                }
                progress.step();
            }
        }
        drop(progress);
        Outcome { arguments, pictures, shown, sigma, columns, scores }.tell(&sheet)
    })
}

struct Outcome<'a> {
    arguments: &'a Arguments,
    pictures: TestSet,
    shown: Vec<usize>,
    sigma: f64,
    columns: Vec<Column>,
    /// Of each column, those of each picture.
    scores: Vec<Vec<Score>>,
}

impl Outcome<'_> {
    /// Writes the sheet and prints the table.
    fn tell(&self, sheet: &Sheet) -> Result<()> {
        let (pictures, Arguments { seed, clip, .. }) = (&self.pictures, self.arguments);
        let noise = format!("sigma {:.4} ({:.1}/255)", self.sigma, 255.0 * self.sigma);
        // A sheet is passed on: it tells no more of this machine than the folder's name.
        let about = pictures.about(self.scores[0].len(), &pictures.short_name(), &noise, *seed, *clip);
        let table: Vec<Means> =
            self.columns.iter().zip(&self.scores).map(|(c, s)| Means::of(&c.name, s)).collect();
        if let Some(path) = &self.arguments.output {
            let svg = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg"));
            let text = if svg { sheet.svg(&about) } else { sheet.page(&about, &table) };
            write(path, text.as_bytes())?;
            output::note(format_args!("wrote {}", path.display()));
        }
        if self.arguments.json {
            return output::json(&json!({
                "data": pictures.described(),
                "images": self.scores[0].len(),
                "channels": pictures.channels().count(),
                "sigma": self.sigma,
                "seed": seed,
                "clipped": clip,
                "columns": table,
                "shown": self.shown.iter().map(|&i| pictures.name(i)).collect::<Vec<_>>(),
            }));
        }
        output::line(format_args!("{about}\n"))?;
        let width = table.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        output::line(format_args!("{:width$} {:>16} {:>18}", "", "PSNR (peak 1)", "SSIM"))?;
        table.iter().try_for_each(|Means { name, psnr, ssim }| {
            let (psnr, ssim) = (format!("{psnr:.2}"), format!("{ssim:.4}"));
            output::line(format_args!("{name:width$} {psnr:>16} {ssim:>18}"))
        })
    }
}
