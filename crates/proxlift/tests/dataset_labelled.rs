//! Labelled pictures: drawn digits repeat, IDX files are read, and bad ones are refused in a sentence.

use flate2::Compression;
use flate2::write::GzEncoder;
use proxlift::dataset::Labelled;
use std::fs;
use std::io::Write;
use std::path::Path;

#[test]
fn drawn_digits_repeat_and_differ() {
    let digits = Labelled::drawn(200, 7);
    assert_eq!(digits, Labelled::drawn(200, 7));
    assert_eq!(digits.clone().first(50), Labelled::drawn(50, 7));
    assert_ne!(digits, Labelled::drawn(200, 8));
    for i in 0..200 {
        let picture = digits.picture(i);
        assert_eq!(digits.labels()[i], i % 10);
        assert!(picture.iter().all(|v| (0.0..=1.0).contains(v)));
        let ink: f32 = picture.iter().sum();
        assert!((20.0..400.0).contains(&ink), "digit {i} has {ink} pixels of ink");
        assert!(i < 10 || picture != digits.picture(i - 10), "two digits are the same");
    }
}

/// The class whose mean picture is nearest tells most digits: they look like what they are.
#[test]
fn means_tell_most_digits() {
    let (train, test) = (Labelled::drawn(500, 1), Labelled::drawn(200, 2));
    let mean = |class: usize| -> Vec<f32> {
        let of_class: Vec<usize> = (0..500).filter(|i| train.labels()[*i] == class).collect();
        (0..784)
            .map(|p| of_class.iter().map(|i| train.picture(*i)[p]).sum::<f32>() / of_class.len() as f32)
            .collect()
    };
    let means: Vec<Vec<f32>> = (0..10).map(mean).collect();
    let apart = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
    let nearest = |i: usize| {
        let apart = |class: &usize| apart(test.picture(i), &means[*class]);
        (0..10).min_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap()
    };
    let right = (0..200).filter(|&i| nearest(i) == test.labels()[i]).count();
    assert!((120..200).contains(&right), "{right} of 200");
}

fn idx(lengths: &[u32], values: &[u8]) -> Vec<u8> {
    let head = [0, 0, 8, lengths.len() as u8];
    let lengths = lengths.iter().flat_map(|length| length.to_be_bytes());
    head.into_iter().chain(lengths).chain(values.iter().copied()).collect()
}

fn write_set(folder: &Path, prefix: &str, gzip: bool) {
    let pixels: Vec<u8> = (0..3 * 4 * 5).map(|i| i * 4).collect();
    for (name, bytes) in [("images-idx3", idx(&[3, 4, 5], &pixels)), ("labels-idx1", idx(&[3], &[7, 0, 9]))] {
        let path = folder.join(format!("{prefix}-{name}-ubyte"));
        if gzip {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(&bytes).unwrap();
            fs::write(folder.join(format!("{prefix}-{name}-ubyte.gz")), packed.finish().unwrap()).unwrap();
        } else {
            fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn idx_files_are_read_packed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    write_set(folder.path(), "train", false);
    write_set(folder.path(), "t10k", true);
    let (train, test) = Labelled::from_idx(folder.path()).unwrap();
    assert_eq!(train, test);
    assert_eq!((train.len(), train.size(), train.labels()), (3, (4, 5), &[7, 0, 9][..]));
    assert_eq!(train.picture(1)[2], 88.0 / 255.0);
}

#[test]
fn bad_idx_files_are_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let said = |pictures: Vec<u8>, labels: Vec<u8>| {
        let paths = ["pictures", "labels"].map(|name| folder.path().join(name));
        fs::write(&paths[0], pictures).unwrap();
        fs::write(&paths[1], labels).unwrap();
        Labelled::from_idx_files(&paths[0], &paths[1]).unwrap_err().to_string()
    };
    let (good, labels) = (idx(&[2, 2, 2], &[0; 8]), idx(&[2], &[1, 2]));
    for cut in [0, 3, 10, 16, 23] {
        let said = said(good[..cut].to_vec(), labels.clone());
        assert!(said.contains("pictures: this IDX file is cut short"), "{said}");
    }
    assert!(said(good.clone(), labels[..9].to_vec()).contains("labels: this IDX file is cut short"));
    assert!(said([&good[..], &[0]].concat(), labels.clone()).contains("something behind"));
    assert!(said(b"\x89PNG....".to_vec(), labels.clone()).contains("no IDX file"));
    assert!(said(idx(&[2, 2], &[0; 4]), labels.clone()).contains("along 2 axes"));
    assert!(said(idx(&[u32::MAX; 3], &[0; 4]), labels.clone()).contains("cut short"));
    assert!(said(good.clone(), idx(&[3], &[1, 2, 3])).contains("3 labels, but"));
    assert!(said(good.clone(), idx(&[2], &[1, 10])).contains("the label of picture 1 is 10"));
    assert!(said(idx(&[0, 2, 2], &[]), idx(&[0], &[])).contains("no labelled pictures"));
    let missing = Labelled::from_idx(folder.path()).unwrap_err().to_string();
    assert!(missing.contains("there is no file train-images-idx3-ubyte"), "{missing}");
}
