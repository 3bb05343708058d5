//! `proxlift demo`: a noisy picture, made and denoised without any file, as a page to look at.

mod page;

use crate::files::{check_extension, check_free, write};
use crate::flags::{pool, sigma};
use crate::output;
use anyhow::Result;
use page::{Page, Shot};
use proxlift::dataset::synthetic::scene;
use proxlift::image::noise::add_gaussian;
use proxlift::{Denoiser, evaluation::Score, image::Channels, model::BuiltIn, storage};
use serde_json::json;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// See it work: make a picture noisy, denoise it, and compare before and after in a browser.
///
/// No file is needed: the program paints the picture itself. Scores are printed, and one page is written that needs
/// nothing else, with a divider between any two of the results. It is opened if there is a screen.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/demo.txt").trim_end())]
pub struct Arguments {
    /// The noise level, where white is 1
    #[arg(long, value_name = "S", value_parser = sigma, allow_negative_numbers = true, default_value = "25/255")]
    sigma: f64,
    /// The seed of the picture and of the noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The model to look at first: `best` or `small`, or a file that `proxlift train` wrote
    #[arg(long, value_name = "NAME|FILE", default_value = "best")]
    model: String,
    /// The size of the picture, in pixels
    #[arg(long, value_name = "WxH", value_parser = size, default_value = "768x512")]
    size: (usize, usize),
    /// The page
    #[arg(long, short, value_name = "FILE", default_value = "proxlift-demo.html")]
    output: PathBuf,
    /// Replace the file even if it is not the page of an earlier demo
    #[arg(long)]
    overwrite: bool,
    /// Do not open the page
    #[arg(long)]
    no_open: bool,
    /// Print one JSON object, and do not open the page
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The least and the largest side of the picture.
const SIDES: (usize, usize) = (32, 4096);

/// A size such as `768x512`.
fn size(text: &str) -> Result<(usize, usize), String> {
    let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    let allowed = SIDES.0..=SIDES.1;
    sides
        .filter(|(w, h)| allowed.contains(w) && allowed.contains(h))
        .ok_or_else(|| format!("give width and height such as 768x512, each from {} to {}", SIDES.0, SIDES.1))
}

pub fn run(arguments: &Arguments) -> Result<()> {
    check_extension(&arguments.output, &["html"])?;
    check_free(&arguments.output, arguments.overwrite || is_ours(&arguments.output))?;
    let chosen = Denoiser::open(&arguments.model)?;
    pool(arguments.threads)?.install(|| {
        let (shots, first) = shots(arguments, &chosen)?;
        let page = Page { shots: &shots, first, size: arguments.size, sigma: arguments.sigma };
        write(&arguments.output, page.html()?.as_bytes())?;
        tell(arguments, &shots)
    })
}

/// The picture in all its states, clean last, and which of them is the chosen model's.
fn shots(arguments: &Arguments, chosen: &Denoiser) -> Result<(Vec<Shot>, usize)> {
    let (width, height) = arguments.size;
    let clean = scene(arguments.seed, height, width, chosen.channels().unwrap_or(Channels::Rgb))?;
    let noisy = add_gaussian(&clean, arguments.sigma as f32, arguments.seed, 0)?;
    let mut denoisers = vec![("total variation".to_string(), Denoiser::total_variation())];
    denoisers.extend([BuiltIn::Small, BuiltIn::Best].map(|model| (model.name().to_string(), model.into())));
    let first = match denoisers.iter().position(|(name, _)| *name == arguments.model) {
        Some(built_in) => built_in,
        None => {
            let name = Path::new(&arguments.model).file_stem().unwrap_or_default().to_string_lossy();
            let taken = denoisers.iter().any(|(other, _)| *other == name);
            denoisers.push((format!("{name}{}", if taken { " (file)" } else { "" }), chosen.clone()));
            denoisers.len() - 1
        }
    };
    let mut shots = vec![Shot::new("noisy", noisy.clone(), Some(Score::of(&clean, &noisy)?), None)];
    for (name, denoiser) in denoisers {
        let denoiser = denoiser.sigma(arguments.sigma);
        let start = Instant::now();
        let image = denoiser.denoise(&noisy)?;
        let seconds = start.elapsed().as_secs_f64();
        let score = Score::of(&clean, &image)?;
        shots.push(Shot::new(&name, image, Some(score), Some(seconds)));
    }
    shots.push(Shot::new("clean", clean, None, None));
    Ok((shots, first + 1))
}

fn tell(arguments: &Arguments, shots: &[Shot]) -> Result<()> {
    let (width, height) = arguments.size;
    let scored = shots.iter().filter_map(|shot| Some((shot, shot.score?)));
    if arguments.json {
        let rows = scored.map(|(shot, Score { psnr, ssim, .. })| {
            json!({"name": shot.name, "psnr": psnr, "ssim": ssim, "seconds": shot.seconds})
        });
        return output::json(&json!({
            "width": width,
            "height": height,
            "sigma": arguments.sigma,
            "seed": arguments.seed,
            "page": arguments.output,
            "results": rows.collect::<Vec<_>>(),
        }));
    }
    let level = 255.0 * arguments.sigma;
    output::line(format_args!(
        "A painted scene of {width} x {height} pixels with noise of {level:.1}/255\n"
    ))?;
    let wide = shots.iter().map(|shot| shot.name.chars().count()).max().unwrap_or(0);
    output::line(format_args!("{:wide$} {:>10} {:>8} {:>8}", "", "PSNR (dB)", "SSIM", "seconds"))?;
    for (shot, Score { psnr, ssim, .. }) in scored {
        let seconds = shot.seconds.map_or(String::new(), |s| format!(" {s:>8.2}"));
        output::line(format_args!("{:wide$} {psnr:>10.2} {ssim:>8.4}{seconds}", shot.name))?;
    }
    let path = arguments.output.display();
    if !arguments.no_open && std::io::stderr().is_terminal() && open(&arguments.output) {
        output::note(format_args!("wrote {path}, and opened it: drag the divider, or use the arrow keys"));
    } else {
        output::note(format_args!("wrote {path}: open it in a browser"));
    }
    Ok(())
}

/// Whether a file is the page of an earlier demo.
fn is_ours(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = storage::open(path).is_ok_and(|file| file.take(512).read_to_end(&mut start).is_ok());
    read && String::from_utf8_lossy(&start).contains(&format!("<title>{}</title>", page::TITLE))
}

/// Opens a page in the browser, if there is a screen and something that opens pages.
fn open(path: &Path) -> bool {
    let screens = ["DISPLAY", "WAYLAND_DISPLAY"];
    let (program, before): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ if screens.iter().any(|name| std::env::var_os(name).is_some()) => ("xdg-open", &[]),
        _ => return false,
    };
    let silent = || Stdio::null();
    let command = Command::new(program)
        .args(before)
        .arg(path)
        .stdin(silent())
        .stdout(silent())
        .stderr(silent())
        .spawn();
    command.is_ok()
}
