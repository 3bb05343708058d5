//! Folders, procedural images, and their determinism.

use proxlift::dataset::{ImageSet, synthetic::dead_leaves};
use proxlift::image::io::{Depth, Picture, write};
use proxlift::image::{Channels, Image};

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

fn plain(value: f32, height: usize, width: usize) -> Picture {
    Picture::new(Image::new(3, height, width, vec![value; 3 * height * width]).unwrap(), Depth::Eight)
}

#[test]
fn folders_are_read_in_order_and_broken_files_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("b")).unwrap();
    for (i, name) in ["c.png", "a.tif", "b/z.webp", "b/y.PNG"].iter().enumerate() {
        write(path(name), &plain(i as f32 / 255.0, 4 + i, 7)).unwrap();
    }
    std::fs::write(path("broken.png"), b"\x89PNG\r\n\x1a\nand no more").unwrap();
    std::fs::write(path("notes.txt"), "not an image").unwrap();
    std::fs::write(path("._c.png"), "left by another system").unwrap();

    let set = ImageSet::from_folder(folder.path(), Channels::Grey).unwrap();
    let names: Vec<_> =
        set.names().iter().map(|n| n.strip_prefix(folder.path()).unwrap().to_owned()).collect();
    assert_eq!(names, ["a.tif", "b/y.PNG", "b/z.webp", "c.png"].map(std::path::PathBuf::from));
    assert_eq!(set.images().iter().map(Image::height).collect::<Vec<_>>(), [5, 7, 6, 4]);
    assert!(set.images().iter().all(|i| i.channels() == 1));
    assert_eq!(set.skipped().len(), 1);
    assert!(set.skipped()[0].0.ends_with("broken.png"));
    assert_eq!(ImageSet::from_folder(folder.path(), Channels::Rgb).unwrap().images()[0].channels(), 3);
}

#[test]
fn a_few_images_of_a_folder_are_evenly_spaced() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..10 {
        write(folder.path().join(format!("{i}.png")), &plain(0.5, 4, 4 + i)).unwrap();
    }
    let widths = |most| {
        let set = ImageSet::spaced(folder.path(), Channels::Grey, most).unwrap();
        set.images().iter().map(Image::width).collect::<Vec<_>>()
    };
    assert_eq!(widths(3), [4, 7, 10]);
    assert_eq!(widths(99), (4..14).collect::<Vec<_>>());
    std::fs::write(folder.path().join("3.png"), "broken").unwrap();
    assert_eq!(widths(3), [4, 8, 11], "as if the broken file were not there");
    assert_eq!(widths(99).len(), 9);
}

#[test]
fn folders_without_images_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let reason = |path| ImageSet::from_folder(path, Channels::Grey).unwrap_err().to_string();
    assert!(reason(folder.path().to_owned()).contains("no PNG"));
    assert!(reason(folder.path().join("missing")).contains("missing"));
    std::fs::write(folder.path().join("bad.jpg"), "").unwrap();
    assert!(reason(folder.path().to_owned()).contains("bad.jpg: the file is empty"));
}

#[test]
fn every_nth_image_is_held_out() {
    let set = ImageSet::embedded_train(7, 8, Channels::Grey, 3).unwrap();
    let (rest, held) = set.clone().hold_out(3).unwrap();
    assert_eq!((rest.len(), held.len()), (4, 3));
    assert_eq!((&held.images()[1], &rest.images()[2]), (&set.images()[3], &set.images()[4]));
    assert!(set.hold_out(1).is_err());
}

#[test]
fn synthetic_images_do_not_depend_on_threads_or_company() {
    let one = on_threads(1, || ImageSet::embedded_train(20, 24, Channels::Rgb, 5).unwrap());
    let two = on_threads(2, || ImageSet::embedded_train(20, 24, Channels::Rgb, 5).unwrap());
    assert!(one.images() == two.images());
    assert!(dead_leaves(5, 13, 24, 24, Channels::Rgb).unwrap() == one.images()[13]);
    assert!(one.images()[12] != one.images()[13]);
    assert!(one.images()[0] != ImageSet::embedded_train(1, 24, Channels::Rgb, 6).unwrap().images()[0]);
    assert!(one.images()[0] != ImageSet::embedded_test(1, 24, Channels::Rgb, 5).unwrap().images()[0]);
    assert!(dead_leaves(1, 0, 0, 5, Channels::Grey).is_err());
    assert!(ImageSet::embedded_train(0, 8, Channels::Grey, 1).is_err());
    assert_eq!(dead_leaves(1, 0, 33, 17, Channels::Grey).unwrap().shape(), (1, 33, 17));
}

/// Networks trained on these images are published with their seed.
#[test]
fn synthetic_bits_are_pinned() {
    let hash = |image: &Image| {
        image.data().iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, v| {
            (h ^ u64::from(v.to_bits())).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let hashes = [Channels::Grey, Channels::Rgb].map(|c| hash(&dead_leaves(2024, 7, 48, 40, c).unwrap()));
    assert_eq!(hashes, [0xcf76_028a_718a_0664, 0x10f6_60fc_1f77_5323], "{hashes:x?}");
}

/// What makes photographs hard to denoise, measured on 200 photographs of BSDS500: 64 x 64 patches have a median
/// standard deviation of 0.13, horizontal differences a median of 0.016 and a kurtosis of 19, and power falls by
/// 2.2 to 2.7 octaves for each octave of frequency, which makes the rms difference grow by 1.2 to 1.5 at twice the
/// distance.
#[test]
fn synthetic_statistics_resemble_photographs() {
    let set = ImageSet::embedded_train(300, 64, Channels::Grey, 1).unwrap();
    let differences = |lag: usize| -> Vec<f64> {
        let lines = set.images().iter().flat_map(|i| i.data().chunks_exact(64));
        lines.flat_map(|l| l.iter().zip(&l[lag..]).map(|(a, b)| f64::from((a - b).abs()))).collect()
    };
    let mut steps = differences(1);
    steps.sort_by(f64::total_cmp);
    let median = steps[steps.len() / 2];
    assert!((0.008..0.025).contains(&median), "median difference {median}");
    let moment = |p: i32| steps.iter().map(|d| d.powi(p)).sum::<f64>() / steps.len() as f64;
    let kurtosis = moment(4) / moment(2).powi(2);
    assert!((10.0..30.0).contains(&kurtosis), "kurtosis {kurtosis}");

    let rms = |lag| (differences(lag).iter().map(|d| d * d).sum::<f64>() / 1e6).sqrt();
    for lag in [1, 2, 4] {
        let growth = rms(2 * lag) / rms(lag) * ((64 - lag) as f64 / (64 - 2 * lag) as f64).sqrt();
        assert!(
            (1.1..1.7).contains(&growth),
            "rms difference grows by {growth} from distance {lag} to its double"
        );
    }

    let deviation = |image: &Image| {
        let n = image.data().len() as f32;
        let mean = image.data().iter().sum::<f32>() / n;
        (image.data().iter().map(|v| (v - mean).powi(2)).sum::<f32>() / n).sqrt()
    };
    let mut deviations: Vec<f32> = set.images().iter().map(deviation).collect();
    deviations.sort_by(f32::total_cmp);
    assert!((0.1..0.16).contains(&deviations[150]), "median contrast {}", deviations[150]);
    assert!(deviations[285] > 0.18 && deviations[15] < 0.07, "contrasts are not spread");

    let mut values: Vec<f32> = set.images().iter().flat_map(|i| i.data().iter().copied()).collect();
    values.sort_by(f32::total_cmp);
    let at = |percent: usize| values[values.len() * percent / 100];
    assert!(at(5) < 0.2 && (0.35..0.6).contains(&at(50)) && at(95) > 0.75, "grey levels are not spread");
}
