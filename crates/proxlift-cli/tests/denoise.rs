//! `proxlift denoise` on good input.

mod common;

use common::{Desk, clean};
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::Channels::{self, Grey, Rgb};
use proxlift::image::io::{self, Depth};
use std::path::Path;

fn score(path: &Path, channels: Channels) -> f64 {
    psnr(&clean(channels), &io::read(path).unwrap().image, Peak::ONE).unwrap()
}

#[test]
fn every_format_keeps_its_depth_and_alpha_and_loses_noise() {
    let desk = Desk::new();
    let cases = [
        ("a.png", Grey, Depth::Eight, false),
        ("b.png", Rgb, Depth::Eight, true),
        ("c.png", Grey, Depth::Sixteen, true),
        ("d.tif", Rgb, Depth::Sixteen, false),
        ("e.tiff", Grey, Depth::Float, false),
        ("f.tif", Rgb, Depth::Float, true),
        ("g.jpg", Rgb, Depth::Eight, false),
        ("h.webp", Rgb, Depth::Eight, true),
        ("i.pgm", Grey, Depth::Sixteen, false),
        ("j.ppm", Rgb, Depth::Eight, false),
        ("k.bmp", Rgb, Depth::Eight, true),
        ("l.fits", Grey, Depth::Float, false),
    ];
    for (name, channels, depth, alpha) in cases {
        let input = desk.picture(name, channels, depth, alpha);
        let (out, err) = desk.succeeds(&["denoise", name, "--method", "tv"]);
        assert_eq!(out, "");
        let (stem, extension) = name.split_once('.').unwrap();
        let output = desk.path(&format!("{stem}-denoised.{extension}"));
        assert!(err.starts_with("wrote ") && err.contains("-denoised"), "{err}");
        let (before, after) = (io::read(&input).unwrap(), io::read(&output).unwrap());
        assert_eq!((after.depth, after.image.kind()), (depth, channels), "{name}");
        assert_eq!(after.alpha, before.alpha, "{name}");
        assert!(score(&output, channels) > score(&input, channels) + 3.0, "{name}");
    }
}

#[test]
fn float_pictures_are_not_clipped() {
    let desk = Desk::new();
    desk.picture("a.tif", Grey, Depth::Float, false);
    desk.succeeds(&["denoise", "a.tif", "--method", "tv", "--strength", "0"]);
    let (before, after) =
        (io::read(desk.path("a.tif")).unwrap(), io::read(desk.path("a-denoised.tif")).unwrap());
    assert!(before.image.data().iter().any(|v| !(0.0..=1.0).contains(v)));
    assert_eq!((before.image, before.alpha), (after.image, after.alpha));
}

#[test]
fn models_denoise_grey_and_colour() {
    let desk = Desk::new();
    desk.model("grey.safetensors", 1);
    desk.model("rgb.safetensors", 3);
    desk.grey("a.png");
    desk.picture("b.png", Rgb, Depth::Sixteen, true);
    for (model, picture) in [("grey", "a.png"), ("grey", "b.png"), ("rgb", "b.png")] {
        let (model, output) = (format!("{model}.safetensors"), format!("{model}-{picture}"));
        desk.succeeds(&["denoise", picture, "-o", &output, "--model", &model, "--threads", "2"]);
        let (before, after) = (io::read(desk.path(picture)).unwrap(), io::read(desk.path(&output)).unwrap());
        assert_eq!((before.depth, &before.alpha), (after.depth, &after.alpha));
        assert_ne!(before.image, after.image);
        let weak = format!("weak-{output}");
        desk.succeeds(&["denoise", picture, "-o", &weak, "--model", &model, "--sigma", "0"]);
        assert_eq!(io::read(desk.path(&weak)).unwrap().image, before.image, "no noise, no change");
    }
}

#[test]
fn a_folder_keeps_its_structure_and_a_broken_file_is_skipped() {
    let desk = Desk::new();
    desk.grey("in/a.png");
    desk.grey("in/deep/er/b.PNG");
    desk.text("in/deep/broken.png");
    desk.text("in/notes.txt");
    desk.grey("in/.hidden.png");
    let output = desk.command(&["denoise", "in", "-o", "out", "--method", "tv"]).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(
        err.lines().any(|line| line.starts_with("warning: skipped: ") && line.contains("broken.png")),
        "{err}"
    );
    assert!(err.lines().last().unwrap().contains("1 of 3 pictures"), "{err}");
    let written: Vec<_> = desk.contents().into_iter().map(|(path, _)| path).collect();
    let written: Vec<_> = written.iter().filter(|path| path.starts_with(desk.path("out"))).collect();
    assert_eq!(written, [&desk.path("out/a.png"), &desk.path("out/deep/er/b.PNG")]);
}

#[test]
fn results_of_an_earlier_run_are_not_denoised_again() {
    let desk = Desk::new();
    desk.grey("in/a.png");
    desk.succeeds(&["denoise", "in", "--method", "tv", "-q"]);
    desk.succeeds(&["denoise", "in", "-o", "in/out", "--method", "tv", "-q"]);
    desk.succeeds(&["denoise", "in", "-o", "in/out", "--method", "tv", "-q", "--overwrite"]);
    let names: Vec<_> = desk.contents().into_iter().map(|(path, _)| path).collect();
    let expected = ["in/a-denoised.png", "in/a.png", "in/out/a.png"];
    assert_eq!(names, expected.map(|name| desk.path(name)));
    // Without its original, a file is a picture like any other, whatever it is called.
    desk.grey("only/b-denoised.png");
    desk.succeeds(&["denoise", "only", "-o", "elsewhere", "--method", "tv", "-q"]);
    assert!(desk.path("elsewhere/b-denoised.png").exists());
}

#[test]
fn the_input_is_replaced_when_told() {
    let desk = Desk::new();
    let path = desk.grey("a.png");
    let before = score(&path, Grey);
    let (_, err) =
        desk.succeeds(&["--quiet", "denoise", "a.png", "-o", "a.png", "--overwrite", "--method", "tv"]);
    assert_eq!(err, "");
    assert!(score(&path, Grey) > before + 3.0);
    assert_eq!(desk.contents().len(), 1, "no temporary file is left");
}

#[test]
fn warnings_name_the_file() {
    let desk = Desk::new();
    desk.picture("a.tif", Grey, Depth::Float, false);
    let (_, err) = desk.succeeds(&["denoise", "a.tif", "-o", "b.png", "-q", "--method", "tv"]);
    assert!(err.starts_with("warning: b.png: ") && err.lines().count() == 1, "{err}");
}

#[test]
fn float_pictures_of_another_scale_have_their_own_sigma() {
    let desk = Desk::new();
    let mut picture = io::read(desk.picture("a.tif", Grey, Depth::Float, false)).unwrap();
    picture.image.data_mut().iter_mut().for_each(|v| *v *= 1000.0);
    io::write(desk.path("big.tif"), &picture).unwrap();
    for choice in [["--method", "tv"], ["--model", "small"]] {
        let run = |name: &str| desk.succeeds(&[&["denoise", name, "--overwrite"], &choice[..]].concat()).1;
        run("a.tif");
        let err = run("big.tif");
        assert!(err.contains("noise estimated: white, sigma ") && !err.contains("255"), "{err}");
        let (a, big) = (
            io::read(desk.path("a-denoised.tif")).unwrap(),
            io::read(desk.path("big-denoised.tif")).unwrap(),
        );
        let far = a.image.data().iter().zip(big.image.data()).any(|(a, b)| (a - b / 1000.0).abs() > 1e-4);
        assert!(!far, "the same picture on another scale gives the same result on that scale");
    }
}

#[test]
fn a_picture_alone_is_enough() {
    let desk = Desk::new();
    for (name, channels) in [("a.png", Grey), ("b.png", Rgb)] {
        let input = desk.picture(name, channels, Depth::Eight, false);
        let (_, err) = desk.succeeds(&["denoise", name]);
        assert!(err.contains("noise estimated: white, sigma 0.") && err.contains("/255)"), "{err}");
        let output = desk.path(&name.replace('.', "-denoised."));
        assert!(score(&output, channels) > score(&input, channels) + 3.0, "{name}");
        let told = desk.succeeds(&["denoise", name, "-o", "told.png", "--sigma", "0.1", "--overwrite"]).1;
        assert!(!told.contains("estimated"), "{told}");
    }
}

#[test]
fn a_folder_ends_with_a_table_of_what_was_done_and_why() {
    let desk = Desk::new();
    desk.grey("a.png");
    desk.picture("b.png", Rgb, Depth::Eight, false);
    let flat = io::Picture::new(proxlift::Image::zeros(1, 20, 20).unwrap(), Depth::Eight);
    io::write(desk.path("flat.png"), &flat).unwrap();
    let all = ["denoise", "a.png", "b.png", "flat.png", "-o", "out", "--model", "small"];
    let (out, err) = desk.succeeds(&all);
    assert_eq!((out.as_str(), err.lines().count()), ("", 5), "{err}");
    let line =
        |name: &str| err.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{err}"));
    assert!(line("picture").ends_with("seconds"), "{err}");
    for name in ["a.png", "b.png"] {
        assert!(line(name).contains("white, sigma 0.") && line(name).contains("small"), "{err}");
    }
    assert!(line("flat.png").contains("20 x 20") && line("flat.png").contains("hardly any"), "{err}");
    assert!(err.lines().last().unwrap().starts_with("wrote 3 pictures, 0.0 megapixels, in "), "{err}");
    let again = |more: &[&str]| desk.succeeds(&[&all[..], &["--overwrite"], more].concat());
    assert_eq!(again(&["--quiet"]), (String::new(), String::new()));
    assert!(again(&["--sigma", "0.1"]).1.contains("sigma 0.10 (26/255), given"));
}

#[test]
fn json_has_an_object_for_each_picture() {
    let desk = Desk::new();
    desk.grey("in/a.png");
    desk.picture("in/b.tif", Rgb, Depth::Sixteen, true);
    desk.text("in/broken.png");
    let object = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let run =
        desk.command(&["denoise", "in", "-o", "out", "--model", "small", "--json", "-q"]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    let out = String::from_utf8(run.stdout).unwrap();
    let mut objects: Vec<_> = out.lines().map(object).collect();
    objects.sort_by_key(|object| object["input"].to_string());
    let [a, b, broken] = &objects[..] else { panic!("{out}") };
    assert_eq!(
        (&a["input"], &a["output"], &a["model"]),
        (&"in/a.png".into(), &"out/a.png".into(), &"small".into())
    );
    let size =
        |o: &serde_json::Value| ["width", "height", "channels", "bits"].map(|key| o[key].as_u64().unwrap());
    assert_eq!((size(a), size(b)), ([40, 32, 1, 8], [40, 32, 3, 16]));
    for done in [a, b] {
        assert!((done["sigma"].as_f64().unwrap() - 0.1).abs() < 0.03 && done["estimated"] == true, "{done}");
        assert!(done["seconds"].as_f64().unwrap() > 0.0 && done["error"].is_null(), "{done}");
    }
    assert!(
        broken["error"].as_str().unwrap().contains("not a PNG") && broken["output"].is_null(),
        "{broken}"
    );
    let (out, _) = desk.succeeds(&["denoise", "in/a.png", "--method", "tv", "--lambda", "0.1", "--json"]);
    let one = object(&out);
    assert!(one["model"] == "tv" && one["sigma"].is_null() && one["estimated"] == false, "{one}");
    let (out, _) = desk.succeeds(&["denoise", "in/a.png", "-o", "c.png", "--sigma", "25/255", "--json"]);
    let sigma = object(&out)["sigma"].as_f64().unwrap();
    assert!((sigma - 25.0 / 255.0).abs() < 1e-12 && object(&out)["estimated"] == false, "{out}");
}

#[test]
fn standard_input_and_output_are_files_like_others() {
    let desk = Desk::new();
    let run = |arguments: &[&str], input: &str| {
        let bytes = std::fs::read(desk.path(input)).unwrap();
        let run =
            desk.command(&[&["denoise", "--model", "small"], arguments].concat()).write_stdin(bytes).output();
        let run = run.unwrap();
        let err = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.success(), "{arguments:?}: {err}");
        (run.stdout, err)
    };
    for (name, channels, depth) in
        [("a.png", Grey, Depth::Eight), ("b.tif", Rgb, Depth::Sixteen), ("c.tif", Grey, Depth::Float)]
    {
        desk.picture(name, channels, depth, true);
        desk.succeeds(&["denoise", name, "-o", "file.tif", "--model", "small", "--overwrite"]);
        let expected = io::read(desk.path("file.tif")).unwrap();
        let decoded = |bytes: &[u8]| io::decode(bytes, &io::Limits::default()).unwrap();
        let (bytes, err) = run(&["-", "--format", "tif"], name);
        assert_eq!(decoded(&bytes), expected, "{name}");
        assert!(err.starts_with("wrote standard output in ") && err.contains("estimated"), "{err}");
        assert_eq!(decoded(&run(&[name, "-o", "-", "--format", "tif"], name).0), expected, "{name}");
        let (nothing, _) = run(&["-", "-o", "piped.tif", "--overwrite"], name);
        assert!(nothing.is_empty());
        assert_eq!(io::read(desk.path("piped.tif")).unwrap(), expected, "{name}");
        let (png, err) = run(&["-", "-q"], name);
        assert_eq!(&png[1..4], b"PNG");
        assert_eq!(err.is_empty(), depth != Depth::Float, "{err}");
        assert!(err.is_empty() || err.starts_with("warning: standard output: "), "{err}");
    }
}

#[test]
fn before_and_after_and_the_noise_are_drawn() {
    let desk = Desk::new();
    desk.grey("a.png");
    desk.picture("b.png", Rgb, Depth::Sixteen, false);
    desk.succeeds(&[
        "denoise",
        "a.png",
        "b.png",
        "-o",
        "out",
        "--model",
        "small",
        "--before-after",
        "sheet.png",
    ]);
    let [sheet, a] = ["sheet.png", "a.png"].map(|name| io::read(desk.path(name)).unwrap().image);
    assert!(sheet.channels() == 3 && sheet.width() > 2 * a.width() && sheet.height() > 2 * a.height());
    for (name, panels) in [("a.png", 1), ("b.png", 3)] {
        desk.succeeds(&[
            "denoise",
            name,
            "-o",
            "c.png",
            "--plot",
            "n.svg",
            "--overwrite",
            "--model",
            "small",
        ]);
        let svg = std::fs::read_to_string(desk.path("n.svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("Noise by frequency"), "{name}");
        assert_eq!(svg.contains(">green<"), panels == 3, "{name}");
    }
    for (flags, reason) in [
        (&["--plot", "n.png"][..], ".svg"),
        (&["--plot", "x.svg", "--sigma", "0.1"], "leave --sigma out"),
        (&["--before-after", "x.jpg"], ".png"),
        (&["--before-after", "sheet.png"], "--overwrite"),
    ] {
        desk.refuses(&[&["denoise", "a.png", "-o", "d.png"], flags].concat(), &[reason]);
    }
    desk.refuses(&["denoise", "a.png", "b.png", "-o", "new", "--plot", "x.svg"], &["one picture"]);
}

#[test]
fn a_clean_picture_is_hardly_changed() {
    let desk = Desk::new();
    for (name, image) in [
        ("flat.png", proxlift::image::Image::zeros(3, 9, 9).unwrap()),
        ("dot.png", proxlift::image::Image::zeros(1, 1, 1).unwrap()),
    ] {
        let picture = io::Picture::new(image, Depth::Eight);
        io::write(desk.path(name), &picture).unwrap();
        for choice in [["--method", "tv"], ["--model", "best"]] {
            let arguments = [&["denoise", name, "-o", "out.png", "--overwrite"], &choice[..]].concat();
            assert!(desk.succeeds(&arguments).1.contains("hardly any"), "{name}");
            assert_eq!(io::read(desk.path("out.png")).unwrap().image, picture.image, "{name}");
        }
    }
}

#[test]
fn a_model_that_does_not_know_its_noise_is_used_as_it_is() {
    let desk = Desk::new();
    let mut model = proxlift::model::Model::load(desk.model("m.safetensors", 1)).unwrap();
    model.sigma = 0.0;
    model.save(desk.path("m.safetensors")).unwrap();
    let mut picture = io::read(desk.picture("a.tif", Grey, Depth::Float, false)).unwrap();
    let (_, err) = desk.succeeds(&["denoise", "a.tif", "--model", "m.safetensors"]);
    assert!(err.starts_with("wrote ") && !err.contains("estimated"), "{err}");
    picture.image.data_mut().iter_mut().for_each(|v| *v *= 1000.0);
    io::write(desk.path("big.tif"), &picture).unwrap();
    let (_, err) = desk.succeeds(&["denoise", "big.tif", "--model", "m.safetensors"]);
    assert!(err.starts_with("warning: big.tif: values reach "), "{err}");
}
