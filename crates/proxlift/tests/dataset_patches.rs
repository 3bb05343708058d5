//! Patches and mini-batches.

use std::sync::Arc;

use proxlift::dataset::{Batches, ImageSet, Order, PatchNoise, PatchSpec, Patches, Visit};
use proxlift::image::{Channels, Image, symmetry::Symmetry};

const SPEC: PatchSpec = PatchSpec {
    size: 5,
    count: 40,
    augment: true,
    sigma: 0.1,
    levels: None,
    noise: PatchNoise::White,
    seed: 11,
};

/// Image `k` holds distinct values that tell image, channel, row and column apart.
fn set(sizes: &[(usize, usize)], channels: Channels) -> Arc<ImageSet> {
    let images = sizes.iter().enumerate().map(|(k, &(h, w))| {
        let n = channels.count() * h * w;
        Image::new(channels.count(), h, w, (0..n).map(|i| (10_000 * k + i) as f32).collect()).unwrap()
    });
    Arc::new(ImageSet::from_images(images.collect(), channels).unwrap())
}

fn fill(patches: &Patches, indices: &[usize], epoch: u64) -> (Vec<f32>, Vec<f32>) {
    let n = indices.len() * patches.values();
    let (mut x, mut z) = (vec![f32::NAN; n], vec![f32::NAN; n]);
    patches.fill(indices, Visit { place: 0, noise: epoch }, &mut x, &mut z);
    (x, z)
}

fn turned(patch: &[f32], size: usize) -> Vec<Vec<f32>> {
    let image = Image::new(patch.len() / (size * size), size, size, patch.to_vec()).unwrap();
    (0..8).map(|i| Symmetry::nth(i).image(&image).data().to_vec()).collect()
}

#[test]
fn the_eight_symmetries_differ() {
    let mut all = turned(&[1., 2., 3., 4., 5., 6., 7., 8., 9.], 3);
    assert_eq!(all[0], [1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    assert_eq!(all[1], [3., 2., 1., 6., 5., 4., 9., 8., 7.]);
    assert_eq!(all[4], [1., 4., 7., 2., 5., 8., 3., 6., 9.]);
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all.dedup();
    assert_eq!(all.len(), 8);
}

#[test]
fn patches_cycle_through_the_images_and_lie_inside() {
    for channels in [Channels::Grey, Channels::Rgb] {
        let set = set(&[(9, 7), (5, 5), (12, 30)], channels);
        let plain = Patches::new(set.clone(), PatchSpec { augment: false, ..SPEC }).unwrap();
        let augmented = Patches::new(set.clone(), SPEC).unwrap();
        let mut symmetries = std::collections::HashSet::new();
        for i in 0..plain.len() {
            let (x, _) = fill(&plain, &[i], 0);
            let image = &set.images()[i % 3];
            let corner = image.data().iter().position(|&v| v == x[0]).expect("patch from the wrong image");
            for (at, &value) in x.iter().enumerate() {
                let (c, y, dx) = (at / 25, at / 5 % 5, at % 5);
                assert_eq!(value, image.plane(c)[corner + y * image.width() + dx]);
            }
            let (turn, _) = fill(&augmented, &[i], 0);
            symmetries.insert(turned(&x, 5).iter().position(|t| *t == turn).expect("not a symmetry"));
        }
        assert_eq!(symmetries.len(), 8, "some symmetries never occur");
    }
}

#[test]
fn noise_is_fresh_in_each_epoch_and_otherwise_repeats() {
    let set = Arc::new(ImageSet::embedded_train(6, 40, Channels::Grey, 1).unwrap());
    let patches = Patches::new(set, PatchSpec { size: 32, ..SPEC }).unwrap();
    let all: Vec<usize> = (0..40).collect();
    let (x, z) = fill(&patches, &all, 3);
    let noise: f64 = x.iter().zip(&z).map(|(x, z)| f64::from(z - x).powi(2)).sum();
    assert!(((noise / x.len() as f64).sqrt() - 0.1).abs() < 0.002);
    let (x4, z4) = fill(&patches, &all, 4);
    assert!(x4 == x && z4 != z);
    // Any subset in any order gives each patch the same noise.
    let (_, some) = fill(&patches, &[17, 2], 3);
    assert!(some[..1024] == z[17 * 1024..18 * 1024] && some[1024..] == z[2 * 1024..3 * 1024]);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    assert!(one.install(|| fill(&patches, &all, 3)) == two.install(|| fill(&patches, &all, 3)));
}

#[test]
fn small_images_are_passed_over() {
    let mixed = set(&[(4, 30), (6, 6), (30, 4)], Channels::Grey);
    let patches = Patches::new(mixed.clone(), SPEC).unwrap();
    let (x, _) = fill(&patches, &(0..40).collect::<Vec<_>>(), 0);
    assert!(x.iter().all(|v| (10_000.0..20_000.0).contains(v)));
    let error = Patches::new(mixed.clone(), PatchSpec { size: 7, ..SPEC }).unwrap_err().to_string();
    assert!(error.contains("7 x 7"), "{error}");
    for bad in
        [PatchSpec { size: 0, ..SPEC }, PatchSpec { count: 0, ..SPEC }, PatchSpec { sigma: -1.0, ..SPEC }]
    {
        assert!(Patches::new(mixed.clone(), bad).is_err());
    }
}

#[test]
fn each_epoch_visits_every_sample_once() {
    for order in [Order::Fixed, Order::Shuffled(3)] {
        let mut batches = Batches::new(23, order).unwrap();
        let mut epoch = |e| batches.epoch(e, 5).map(<[usize]>::to_vec).collect::<Vec<_>>();
        let first = epoch(0);
        assert_eq!(first.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 5, 3]);
        let mut seen = first.concat();
        assert_eq!(seen.is_sorted(), order == Order::Fixed);
        seen.sort_unstable();
        assert_eq!(seen, (0..23).collect::<Vec<_>>());
        assert_eq!(epoch(1) == first, order == Order::Fixed);
        assert_eq!(epoch(0), first, "an epoch depends on those before it");
        assert_eq!(batches.epoch(0, 7).len(), 4);
    }
    assert!(Batches::new(0, Order::Fixed).is_err());
}
