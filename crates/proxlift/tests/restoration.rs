//! Restored pictures are nearer to the originals, borders leave no trace, and what cannot be is told.

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::{Channels, Image, noise::add_gaussian};
use proxlift::model::BuiltIn;
use proxlift::operator::{Blur, Mask};
use proxlift::restoration::{Border, Degradation, Kernel, Likelihood, Linear, Prior, Restorer, Schedule};
use proxlift::solver::Until;
use proxlift::{Denoiser, Result};
use rand_distr::{Distribution, Poisson};

fn scene(side: usize, channels: Channels) -> Image {
    dead_leaves(5, 0, side, side, channels).unwrap()
}

fn small() -> Denoiser {
    Denoiser::from(BuiltIn::Small)
}

fn score(clean: &Image, estimate: &Image) -> f64 {
    psnr(clean, estimate, Peak::ONE).unwrap()
}

#[test]
fn blurs_are_undone_by_both_priors() {
    let clean = scene(72, Channels::Rgb);
    for border in [Border::Circular, Border::Mirrored] {
        let kernel: Kernel = "motion:7,30".parse().unwrap();
        let blur = Restorer::new(Degradation::Blur(kernel)).border(border).sigma(0.01);
        let seen = add_gaussian(&blur.degrade(&clean).unwrap(), 0.01, 1, 0).unwrap();
        let plugged = blur.clone().prior(small()).restore(&seen).unwrap();
        let convex = blur.prior(Prior::TotalVariation).restore(&seen).unwrap();
        let before = score(&clean, &seen);
        assert!(
            score(&clean, &plugged.image) > before + 2.0,
            "{border} {before} {}",
            score(&clean, &plugged.image)
        );
        assert!(
            score(&clean, &convex.image) > before + 1.5,
            "{border} {before} {}",
            score(&clean, &convex.image)
        );
        // The data are fitted to about the level of the noise.
        let values = 0.5 * seen.data().len() as f64;
        assert!((0.3..1.5).contains(&(plugged.misfit / values)), "{}", plugged.misfit / values);
        assert!(convex.objective.unwrap() > convex.misfit && plugged.objective.is_none());
        assert!(plugged.settled && plugged.residuals.len() == 8);
    }
}

/// What a camera sees: the middle of a larger scene that was blurred, so that nothing is known beyond the edges.
#[test]
fn unknown_borders_do_not_ring() {
    let (side, around) = (72, 20);
    let whole = scene(side + 2 * around, Channels::Grey);
    let kernel = Kernel::square(9).unwrap();
    let blur = Restorer::new(Degradation::Blur(kernel)).sigma(0.01).prior(small());
    let blurred = blur.clone().border(Border::Circular).degrade(&whole).unwrap();
    let inside = |image: &Image| image.crop(around..around + side, around..around + side);
    let (clean, seen) = (inside(&whole), add_gaussian(&inside(&blurred), 0.01, 1, 0).unwrap());
    let restored = |border| blur.clone().border(border).restore(&seen).unwrap().image;
    let wrong = score(&clean, &restored(Border::Circular));
    let (unknown, mirrored) =
        (score(&clean, &restored(Border::Unknown)), score(&clean, &restored(Border::Mirrored)));
    assert!(unknown > wrong + 2.0 && mirrored > wrong + 1.0, "{wrong} {unknown} {mirrored}");
    // Near the edges it is nearly as good as in the middle.
    let middle = |image: &Image| image.centre(side - 24);
    let inner = score(&middle(&clean), &middle(&restored(Border::Unknown)));
    assert!(unknown > inner - 2.0, "{unknown} {inner}");
}

#[test]
fn counts_are_restored() {
    let (clean, gain) = (scene(64, Channels::Grey), 0.01);
    let blur = Restorer::new(Degradation::Blur(Kernel::gaussian(1.0).unwrap())).border(Border::Circular);
    let mut seen = blur.degrade(&clean).unwrap();
    let mut random = proxlift::random::seeded(3);
    for v in seen.data_mut() {
        let mean = f64::from(*v).max(1e-6) / gain;
        *v = (gain * Poisson::new(mean).unwrap().sample(&mut random)) as f32;
    }
    let counts = blur.likelihood(Likelihood::Poisson { gain });
    let before = score(&clean, &seen);
    for prior in [Prior::from(small()), Prior::TotalVariation] {
        let restored = counts.clone().prior(prior).restore(&seen).unwrap();
        let after = score(&clean, &restored.image);
        assert!(after > before + 3.0, "{before} {after}");
        // Half the number of values, as the divergence of counts from their means is.
        let share = restored.misfit / (0.5 * seen.data().len() as f64);
        assert!((0.5..1.5).contains(&share), "{share}");
    }
}

#[test]
fn gaps_are_filled_and_small_pictures_enlarged() {
    let clean = scene(72, Channels::Rgb);
    let known: Vec<bool> = (0..72 * 72).map(|i| i * 7 % 10 < 3).collect();
    let tasks = [
        (Degradation::Missing { known, size: (72, 72) }, 22.0),
        (Degradation::Mosaic("gbrg".into()), 27.0),
        (Degradation::Small { factor: 3, kernel: Kernel::cubic(3) }, 18.0),
    ];
    for (degradation, least) in tasks {
        let restorer = Restorer::new(degradation.clone()).border(Border::Mirrored).sigma(0.0).prior(small());
        let seen = restorer.degrade(&clean).unwrap();
        let restored = restorer.restore(&seen).unwrap().image;
        assert_eq!(restored.shape(), clean.shape());
        assert!(score(&clean, &restored) > least, "{degradation:?}: {}", score(&clean, &restored));
    }
}

/// A slope that was made smaller begins where it was, for even factors too.
#[test]
fn enlarged_pictures_lie_where_they_were() {
    for factor in [2, 3, 4] {
        let side = 12 * factor;
        let slope = |i: usize| 0.1 + 0.01 * (i % side) as f32 + 0.005 * (i / side) as f32;
        let clean = Image::new(1, side, side, (0..side * side).map(slope).collect()).unwrap();
        // One step that moves nothing.
        let still = Schedule { steps: 1, first: 1e-6, last: 1e-6, lambda: 0.2, remembers: false };
        let small = Restorer::new(Degradation::Small { factor, kernel: Kernel::cubic(factor) });
        let small = small.border(Border::Circular).sigma(0.1).prior(self::small()).schedule(still);
        let found = small.restore(&small.degrade(&clean).unwrap()).unwrap().image;
        for at in (4 * factor..8 * factor).flat_map(|y| (4 * factor..8 * factor).map(move |x| y * side + x)) {
            let apart = found.data()[at] - clean.data()[at];
            assert!(apart.abs() < 1e-3, "{factor}: {at} {apart}");
        }
    }
}

/// Whatever does not fit the memory is restored in parts, which join without a trace.
#[test]
fn parts_are_the_whole() {
    let clean = dead_leaves(5, 0, 300, 240, Channels::Rgb).unwrap();
    let kernel: Kernel = "motion:7,30".parse().unwrap();
    let known: Vec<bool> = (0..300 * 240).map(|i| i * 7 % 10 < 5).collect();
    let tasks = [
        (Degradation::Blur(kernel.clone()), Border::Circular),
        (Degradation::Blur(kernel.clone()), Border::Mirrored),
        (Degradation::Blur(kernel), Border::Unknown),
        (Degradation::Missing { known, size: (300, 240) }, Border::Unknown),
        (Degradation::Mosaic("gbrg".into()), Border::Unknown),
    ];
    for (degradation, border) in tasks {
        let restorer = Restorer::new(degradation.clone()).border(border).sigma(0.01).prior(small());
        let seen = add_gaussian(&restorer.degrade(&clean).unwrap(), 0.01, 1, 0).unwrap();
        let whole = restorer.restore(&seen).unwrap().image;
        let parts = restorer.memory(1).restore(&seen).unwrap().image;
        assert!(parts != whole, "{degradation:?}: these were no parts");
        let (whole_score, parts_score) = (score(&clean, &whole), score(&clean, &parts));
        println!("{border:?}: {whole_score:.2} {parts_score:.2}, {:.2} apart", score(&whole, &parts));
        assert!((whole_score - parts_score).abs() < 0.5, "{degradation:?}: {whole_score} {parts_score}");
        assert!(score(&whole, &parts) > 50.0, "{degradation:?}: {}", score(&whole, &parts));
    }
}

#[test]
fn kernels_are_what_they_say() {
    let told = |words: &str| words.parse::<Kernel>().unwrap_err().to_string();
    assert!(told("gaussian:-1").contains("above 0") && told("box:x").contains("whole"));
    assert!(told("motion:5").contains("angle") && told("nothing.npy").contains("nothing.npy"));
    let refused = |weights: Vec<f64>| Kernel::new(1, weights.len(), weights).unwrap_err().to_string();
    assert!(refused(vec![]).contains("empty") && refused(vec![0.0; 3]).contains("zero"));
    assert!(refused(vec![1.0, f64::NAN]).contains("finite") && refused(vec![1.0, -0.1]).contains("negative"));
    // A file with one row is a line.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("line.npy");
    for (shape, size) in [("(1, 3)", Some((1, 3))), ("(1, 3, 1)", Some((3, 1))), ("(3,)", None)] {
        let header =
            format!("{:<117}\n", format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"));
        let numbers = [1.0f64, 2.0, 1.0].map(f64::to_le_bytes).concat();
        std::fs::write(&path, [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &numbers].concat()).unwrap();
        match size {
            Some(size) => assert_eq!(Kernel::open(&path).unwrap().size(), size),
            None => assert!(Kernel::open(&path).unwrap_err().to_string().contains("two dimensions")),
        }
    }
    // Counter-clockwise: a line at 45 degrees rises to the right.
    let line = Kernel::motion(5.0, 45.0).unwrap();
    let (rows, columns) = line.size();
    let at = |y: usize, x: usize| line.weights()[y * columns + x];
    assert!(at(rows / 2 - 1, columns / 2 + 1) > 0.1 && at(rows / 2 + 1, columns / 2 + 1) < 1e-9);
    assert!((line.weights().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    // A picture without details stays what it is when it becomes smaller.
    let grey = Image::new(1, 24, 24, vec![0.25; 24 * 24]).unwrap();
    let third = Restorer::new(Degradation::Small { factor: 3, kernel: Kernel::cubic(3) });
    assert!(third.degrade(&grey).unwrap().data().iter().all(|v| (v - 0.25).abs() < 1e-6));
    // And a slope stays where it is: small pixels lie in the middle of those that they are made of.
    let slope = Image::new(1, 24, 24, (0..576).map(|i| (i % 24) as f32 / 24.0).collect()).unwrap();
    let seen = third.degrade(&slope).unwrap();
    assert!((3..5).all(|x| (seen.data()[4 * 8 + x] - (3 * x + 1) as f32 / 24.0).abs() < 1e-3));
}

#[test]
fn what_does_not_fit_is_refused() {
    let picture = scene(24, Channels::Grey);
    let told = |result: Result<proxlift::restoration::Restored>| result.unwrap_err().to_string();
    let blur = Restorer::new(Degradation::Blur(Kernel::square(25).unwrap())).prior(Prior::TotalVariation);
    assert!(told(blur.restore(&picture)).contains("more than the picture"));
    let blur = Restorer::new(Degradation::Blur(Kernel::square(3).unwrap()));
    let none = Schedule { steps: 0, first: 0.2, last: 0.1, lambda: 0.2, remembers: false };
    assert!(told(blur.clone().schedule(none).restore(&picture)).contains("schedule"));
    assert!(told(blur.clone().sigma(-1.0).restore(&picture)).contains("-1"));
    assert!(told(blur.likelihood(Likelihood::Poisson { gain: 0.0 }).restore(&picture)).contains("gain"));
    let mask = Degradation::Missing { known: vec![true; 9], size: (3, 3) };
    assert!(told(Restorer::new(mask).restore(&picture)).contains("3 x 3"));
    assert!(told(Restorer::new(Degradation::Mosaic("rggb".into())).restore(&picture)).contains("colour"));
    let third = Restorer::new(Degradation::Small { factor: 5, kernel: Kernel::cubic(5) });
    assert!(third.degrade(&picture).unwrap_err().to_string().contains("does not divide"));
}

/// How much a convex prior counts follows from kernel and noise: all of it for noise alone, less for worse blurs and for less noise, and
/// not so little that noise is left.
#[test]
fn convex_priors_need_no_tuning() {
    let weight = |kernel: &str, sigma| {
        Restorer::new(Degradation::Blur(kernel.parse().unwrap())).usual_weight(sigma).unwrap()
    };
    assert!([0.001, 0.05, 0.9].iter().all(|sigma| (weight("box:1", *sigma) - 1.0).abs() < 1e-9));
    assert!(weight("box:9", 0.05) < weight("box:3", 0.05) && weight("box:9", 0.01) < weight("box:9", 0.05));
    // The best ones of training photographs.
    for (kernel, sigma, best) in
        [("motion:15,40", 12.75, 0.235), ("gaussian:2.2", 12.75, 0.22), ("box:7", 5.0, 0.115)]
    {
        let ratio = weight(kernel, sigma / 255.0) / best;
        assert!((0.8..1.25).contains(&ratio), "{kernel}: {ratio}");
    }
    let known: Vec<bool> = (0..100).map(|i| i % 4 == 0).collect();
    let mask = Restorer::new(Degradation::Missing { known, size: (10, 10) });
    assert!((mask.usual_weight(0.1).unwrap() - 0.5).abs() < 1e-9);

    let clean = scene(64, Channels::Rgb);
    for (kernel, sigma) in [("gaussian:1.6", 0.01), ("motion:9,40", 0.05), ("box:1", 0.05)] {
        let blur =
            Restorer::new(Degradation::Blur(kernel.parse().unwrap())).border(Border::Circular).sigma(sigma);
        let seen = add_gaussian(&blur.degrade(&clean).unwrap(), sigma as f32, 1, 0).unwrap();
        for prior in [Prior::TotalVariation, Prior::Convex(None)] {
            let blur = blur.clone().prior(prior).until(Until { tolerance: 3e-3, most: 500 });
            let usual = blur.restore(&seen).unwrap();
            assert!(usual.settled && usual.gap.unwrap() <= 3e-3 * usual.objective.unwrap());
            let less = blur.clone().weight(0.3 * blur.usual_weight(sigma).unwrap()).restore(&seen).unwrap();
            let (seen, less, usual) =
                (score(&clean, &seen), score(&clean, &less.image), score(&clean, &usual.image));
            assert!(usual > seen + 2.0 && usual > less + 0.5, "{kernel}: {seen} {less} {usual}");
            assert!(blur.weight(0.0).restore(&clean).is_err());
        }
    }
}

/// Edges cost a function less that bends down: it restores more where it counts at the level of what the data leave uncertain.
#[test]
fn weakly_convex_priors_restore_more_than_convex_ones() {
    let clean = scene(64, Channels::Grey);
    for (kernel, sigma) in [("motion:9,30", 0.01), ("gaussian:1.6", 0.02)] {
        let blur = Degradation::Blur(kernel.parse().unwrap());
        let blur = Restorer::new(blur).border(Border::Circular).sigma(sigma);
        let seen = add_gaussian(&blur.degrade(&clean).unwrap(), sigma as f32, 1, 0).unwrap();
        let by = |prior| score(&clean, &blur.clone().prior(prior).restore(&seen).unwrap().image);
        let (convex, weak) = (by(Prior::Convex(None)), by(Prior::WeaklyConvex));
        assert!(weak > convex + 0.1, "{kernel}: {convex} {weak}");
    }
}

#[test]
fn levels_fall_by_the_same_factor() {
    let levels = Schedule { steps: 5, first: 0.16, last: 0.01, lambda: 0.2, remembers: false }.levels();
    assert!(levels.windows(2).all(|pair| (pair[1] / pair[0] - 0.5).abs() < 1e-12), "{levels:?}");
    let noisy = Schedule { steps: 3, first: 0.1, last: 0.3, lambda: 0.2, remembers: false }.levels();
    assert!(noisy.iter().all(|level| (level - 0.3).abs() < 1e-12));
}

/// An operator of one's own that is one of ours gives the same pictures, whatever the prior.
#[test]
fn operators_of_ones_own_give_the_same_pictures() {
    let clean = scene(48, Channels::Rgb);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let operator = Blur::new(kernel.weights(), kernel.size(), 3, (48, 48)).unwrap();
    let ours = Restorer::new(Degradation::Blur(kernel)).border(Border::Circular).sigma(0.02);
    let seen = add_gaussian(&ours.degrade(&clean).unwrap(), 0.02, 1, 0).unwrap();
    let own = Linear::new(operator, Channels::Rgb, (48, 48)).unwrap();
    let own = Restorer::new(Degradation::Operator(own)).sigma(0.02).weight(ours.usual_weight(0.02).unwrap());
    for prior in [Prior::from(small()), Prior::TotalVariation, Prior::Convex(None)] {
        let until = Until { tolerance: 1e-4, most: 4000 };
        let [ours, own] = [&ours, &own].map(|restorer| restorer.clone().prior(prior.clone()).until(until));
        let expected = ours.restore(&seen).unwrap();
        let found = own.restore(&seen).unwrap();
        let both = [&expected, &found].map(|at| (at.settled, at.iterations, at.objective, at.gap));
        assert!(found.settled && expected.settled, "{both:?}");
        assert!(score(&expected.image, &found.image) > 45.0, "{}", score(&expected.image, &found.image));
        let (go, data) = (&mut |_: &_| std::ops::ControlFlow::Continue(()), seen.data().to_vec());
        let started = own.restore_data(data, Some(&seen), go).unwrap();
        assert!(score(&expected.image, &started.image) > 45.0, "{}", score(&expected.image, &started.image));
    }
    let known: Vec<bool> = (0..48 * 48).map(|i| i % 4 != 0).collect();
    let mask = Linear::new(Mask::new(known).unwrap(), Channels::Grey, (48, 48)).unwrap();
    let weight = Restorer::new(Degradation::Operator(mask.clone())).usual_weight(0.1).unwrap();
    assert!((weight - 0.75f64.sqrt()).abs() < 0.02, "{weight}");
    assert!(Linear::new(Mask::new(vec![true; 9]).unwrap(), Channels::Grey, (3, 4)).is_err());
    let told = |result: Result<proxlift::restoration::Restored>| result.unwrap_err().to_string();
    let masked = Restorer::new(Degradation::Operator(mask));
    let go = &mut |_: &_| std::ops::ControlFlow::Continue(());
    assert!(told(masked.clone().restore_data(vec![0.0; 48 * 48], None, go)).contains("sigma"));
    assert!(told(masked.sigma(0.1).restore_data(vec![0.0; 9], None, go)).contains("9 data"));
    assert!(told(ours.restore_data(vec![0.0; 9], None, go)).contains("operator"));
}
