//! Infinite depth: an operator trained at the fixed point of its layers, beside one trained through some of them.

mod train;

use super::compare::{Duel, Spread};
use super::experiments::Size;
use super::kept::Kept;
use super::pieces::{behind, duels};
use crate::files::write_json;
use crate::flags::pool;
use crate::html::table;
use crate::reproduce::{folder::Folder, machine};
use crate::workers::side_by_side;
use anyhow::Result;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::json;
use train::{MU, Trained, Training, Way};

/// A way over all seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    #[serde(skip)]
    way: Way,
    label: String,
    epochs: Spread,
    layers: Spread,
    layers_after: Spread,
    loss: Spread,
    psnr: Spread,
    psnr_of_limit: Spread,
}

/// Trains what is not known yet, so many at a time; none after Ctrl-C.
pub fn all(folder: &Folder, size: &Size, threads: usize) -> Result<Option<Vec<Found>>> {
    let kept = Kept::open(folder, "infinite");
    let (seconds, tests) = (size.infinite_seconds, size.infinite_tests);
    let one = |way, seed| {
        let training = Training { way, seconds, samples: size.infinite_samples, tests, seed };
        kept.or_measure(&format!("{training:?}"), || pool(Some(1))?.install(|| training.work()))
    };
    let tasks: Vec<_> =
        (0..size.seeds).flat_map(|seed| Way::ALL.into_iter().map(move |way| (way, seed))).collect();
    side_by_side(&tasks, threads, |&(way, seed)| one(way, seed).map(drop))?;
    let mut found = Vec::new();
    for way in Way::ALL {
        let seeds = (0..size.seeds).map(|seed| one(way, seed)).collect::<Result<Option<Vec<Trained>>>>()?;
        let Some(seeds) = seeds else { return Ok(None) };
        found.push(Found::of(way, &seeds));
    }
    let text = json!({ "seconds": seconds, "ways": found, "verdicts": verdicts(&found) });
    write_json(&folder.path("infinite.json"), &text)?;
    Ok(Some(found))
}

impl Found {
    fn of(way: Way, seeds: &[Trained]) -> Self {
        let spread = |of: fn(&Trained) -> f64| Spread::of(seeds.iter().map(of));
        Self {
            way,
            label: way.label(),
            epochs: spread(|one| one.epochs),
            layers: spread(|one| one.layers[0]),
            layers_after: spread(|one| one.layers[1]),
            loss: spread(|one| one.loss),
            psnr: spread(|one| one.psnr),
            psnr_of_limit: spread(|one| one.psnr_of_limit),
        }
    }
}

/// Lifted against implicit, the limit against unrolled layers, and lifted layers against back-propagation through them.
fn verdicts(found: &[Found]) -> Vec<Duel> {
    use Way::{Centred, Implicit, Lifted, Unrolled, UnrolledLifted};
    let duel = |(first, a): (&str, Way), (second, b): (&str, Way)| {
        let of = |way: Way| found.iter().find(|one| one.way == way).map(|one| one.psnr);
        let (of_first, of_second) = of(a).zip(of(b))?;
        let about = format!("{} against {}", a.label(), b.label());
        Some(Duel::more(&about, (first, of_first), (second, of_second)))
    };
    let all = [
        duel(("lifting", Lifted), ("the implicit gradient", Implicit)),
        duel(("lifting", Centred), ("the implicit gradient", Implicit)),
        duel(("the limit", Implicit), ("unrolling", Unrolled(5))),
        duel(("the limit", Implicit), ("unrolling", Unrolled(20))),
        duel(("the limit", Lifted), ("unrolling", UnrolledLifted(5))),
        duel(("the limit", Lifted), ("unrolling", UnrolledLifted(20))),
        duel(("lifting", UnrolledLifted(5)), ("back-propagation", Unrolled(5))),
        duel(("lifting", UnrolledLifted(20)), ("back-propagation", Unrolled(20))),
    ];
    all.into_iter().flatten().collect()
}

pub fn section(size: &Size, found: &[Found]) -> Markup {
    let row = |one: &Found| {
        vec![
            one.label.clone(),
            one.epochs.text(1),
            one.layers.text(1),
            one.layers_after.text(1),
            one.loss.text(3),
            one.psnr.text(2),
            one.psnr_of_limit.text(2),
        ]
    };
    let head = [
        "gradient",
        "epochs",
        "layers a batch",
        "after them",
        "training loss",
        "PSNR as trained (dB)",
        "PSNR of its limit (dB)",
    ];
    html! {
        section id="infinite" {
            h2 { "Infinite depth" }
            p {
                "One operator of 16 filters that all layers share, trained to denoise pictures of 32 x 32 pixels for "
                (size.infinite_seconds) " s of " (machine::clock()) " on one thread, whatever it costs to do a batch. At the fixed \
                 point of the layer, the gradient is implicit (a linear system with tangents, by conjugate gradients) or lifted \
                 (the fixed point of an image that is nudged by the error; two of them where it is centred; μ " (MU) "). Beside \
                 it stand K tied layers, by back-propagation and lifted. All have the same start, data, optimiser (Adam) and \
                 rate, and differ in the gradient and the depth."
            }
            (table(&head, &found.iter().map(row).collect::<Vec<_>>()))
            p {
                "At a fixed point, the layers of a batch are those of its slowest sample, and after them come iterations of the \
                 linear system or layers of the nudged fixed points. Scores are those of " (size.infinite_tests)
                " pictures that no training saw. The limit of an unrolled network is what its layer comes to when it is \
                 repeated until nothing moves."
            }
            (duels(["PSNR as trained (dB)", "first", "second", "verdict"], &verdicts(found), 2))
            (behind("infinite.json"))
        }
    }
}
