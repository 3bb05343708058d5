//! Bad input: exit code 2, one sentence, nothing written.

mod common;

use common::Desk;
use proxlift::image::Channels::Rgb;
use proxlift::image::io::Depth;

#[test]
fn pictures_that_are_none() {
    let desk = Desk::new();
    desk.text("text.png");
    desk.text("empty/readme.txt");
    std::fs::write(desk.path("nothing.png"), "").unwrap();
    for command in [&["denoise", "--method", "tv"][..], &["denoise", "-o", "out/", "--method", "tv"]] {
        let with = |input| [command, &[input]].concat();
        desk.refuses(&with("missing.png"), &["missing.png"]);
        desk.refuses(&with("text.png"), &["text.png", "not a PNG"]);
        desk.refuses(&with("nothing.png"), &["nothing.png", "empty"]);
        desk.refuses(&with("empty"), &["empty", "no PNG"]);
    }
    std::fs::write(desk.path("x.gif"), "GIF89a").unwrap();
    desk.refuses(&["denoise", "x.gif"], &["x.gif", "by its extension", "PNG, JPEG, TIFF", "or FITS"]);
    desk.refuses(&["denoise", "x.gif", "-o", "out/"], &["x.gif", "by its extension"]);
    desk.refuses(&["denoise", "x.gif", "-o", "y.png"], &["x.gif", "not a PNG"]);
    desk.refuses(&["denoise", "-"], &["standard input", "empty"]);
    desk.refuses(&["denoise", "-", "x.gif"], &["alone"]);
    desk.refuses(&["denoise", "-", "-o", "empty"], &["empty", "no name"]);
    desk.refuses(&["denoise", "empty", "-o", "-"], &["-o -", "several"]);
    desk.refuses(&["evaluate", "--method", "tv", "--data", "empty"], &["empty", "no PNG"]);
    desk.refuses(&["evaluate", "--method", "tv", "--data", "missing"], &["missing"]);
    desk.refuses(&["evaluate", "--method", "tv", "--data", "text.png"], &["text.png"]);
    assert!(!desk.path("out").exists());
}

#[test]
fn numbers_without_meaning() {
    let desk = Desk::new();
    desk.grey("a.png");
    for command in [&["denoise", "a.png", "--method", "tv"][..], &["evaluate", "--method", "tv"]] {
        for value in ["-0.1", "NaN", "inf", "1/0", "25", "much"] {
            desk.refuses(&[command, &["--sigma", value]].concat(), &["sigma"]);
        }
        desk.refuses(&[command, &["--strength", "-1"]].concat(), &["--strength"]);
        desk.refuses(&[command, &["--lambda", "nan"]].concat(), &["--lambda"]);
        desk.refuses(&[command, &["--threads", "0"]].concat(), &["--threads"]);
    }
    desk.refuses(&["evaluate", "--method", "tv", "--limit", "0"], &["--limit"]);
    desk.refuses(&["bench", "--seconds", "0"], &["--seconds"]);
}

#[test]
fn flags_that_do_not_fit() {
    let desk = Desk::new();
    desk.grey("a.png");
    desk.model("m.safetensors", 1);
    desk.refuses(&["denoise", "a.png", "--lambda", "0.1"], &["--method"]);
    desk.refuses(&["denoise", "--method", "tv"], &["<IN>"]);
    desk.refuses(&["denoise", "a.png", "--method", "tv", "--model", "m.safetensors"], &["cannot be used"]);
    desk.refuses(&["denoise", "a.png", "--model", "m.safetensors", "--lambda", "1"], &["--lambda"]);
    desk.refuses(&["denoise", "a.png", "--method", "magic"], &["magic", "tv"]);
    desk.refuses(&["denoise", "a.png", "--format", "tif"], &["--format", "-o -"]);
    desk.refuses(&["denoise", "a.png", "-o", "-", "--format", "gif"], &["--format", "webp"]);
    desk.refuses(&["denoise", "a.png", "-o", "-", "--json"], &["--json"]);
    desk.refuses(&["paint"], &["paint"]);
    desk.refuses(&["completions", "cmd.exe"], &["cmd.exe"]);
}

#[test]
fn models_that_are_none() {
    let desk = Desk::new();
    desk.grey("a.png");
    let bytes = std::fs::read(desk.model("whole.safetensors", 1)).unwrap();
    std::fs::write(desk.path("cut.safetensors"), &bytes[..bytes.len() - 9]).unwrap();
    std::fs::write(desk.path("head.safetensors"), &bytes[..5]).unwrap();
    desk.text("foreign.safetensors");
    for model in
        ["cut.safetensors", "head.safetensors", "foreign.safetensors", "missing.safetensors", "a.png"]
    {
        desk.refuses(&["denoise", "a.png", "--model", model], &[model]);
        desk.refuses(&["evaluate", "--model", model], &[model]);
        desk.refuses(&["inspect", model, "--filter-sheet", "sheet.png"], &[model]);
    }
}

#[test]
fn models_that_are_neither_file_nor_built_in() {
    let desk = Desk::new();
    desk.grey("a.png");
    desk.model("m.safetensors", 1);
    let words = ["huge", "no such file", "small, best, photo, convex and weakly-convex"];
    desk.refuses(&["denoise", "a.png", "--model", "huge"], &words);
    desk.refuses(&["evaluate", "--model", "huge"], &words);
    desk.refuses(&["inspect", "huge"], &words);
    desk.refuses(&["inspect", "m.safetensors", "--colour"], &["m.safetensors", "--colour"]);
}

#[test]
fn a_colour_model_on_a_grey_picture() {
    let desk = Desk::new();
    desk.grey("a.png");
    desk.model("rgb.safetensors", 3);
    desk.refuses(&["denoise", "a.png", "--model", "rgb.safetensors"], &["a.png", "grey", "colour"]);
    desk.refuses(&["evaluate", "--grey", "--model", "rgb.safetensors"], &["--grey"]);
}

#[test]
fn outputs_that_would_destroy() {
    let desk = Desk::new();
    for name in ["a.png", "b.png", "in/a.png", "in/deep/c.png", "twin/a.png", "old-denoised.png", "old.png"] {
        desk.grey(name);
    }
    let tv = |arguments: &[&'static str]| [&["denoise", "--method", "tv"], arguments].concat();
    desk.refuses(&tv(&["a.png", "-o", "a.png"]), &["a.png", "--overwrite"]);
    desk.refuses(&tv(&["a.png", "-o", "./in/../a.png"]), &["a.png", "--overwrite"]);
    desk.refuses(&tv(&["a.png", "-o", "."]), &["--overwrite"]);
    desk.refuses(&tv(&["in", "-o", "in"]), &["--overwrite"]);
    desk.refuses(&tv(&["a.png", "-o", "b.png"]), &["b.png", "exists", "--overwrite"]);
    desk.refuses(&tv(&["old.png"]), &["old-denoised.png", "exists"]);
    desk.refuses(&tv(&["in/a.png", "twin/a.png", "-o", "out"]), &["in/a.png", "twin/a.png", "both"]);
    desk.refuses(&tv(&["in", "twin", "-o", "out/", "--overwrite"]), &["both"]);
    desk.refuses(&tv(&["a.png", "a.png"]), &["both"]);
    desk.refuses(&tv(&["old.png", "old-denoised.png", "--overwrite"]), &["another output"]);
    desk.refuses(&tv(&["in", "-o", "out.png"]), &["out.png", "folder"]);
    desk.refuses(&tv(&["a.png", "b.png", "-o", "old.png"]), &["old.png", "folder"]);
    desk.refuses(&tv(&["a.png", "-o", "a.gif"]), &["a.gif", "png, jpg, tif, webp"]);
    assert!(!desk.path("out").exists());
}

#[test]
fn outputs_that_cannot_be_written() {
    let desk = Desk::new();
    desk.grey("a.png");
    desk.text("wall");
    desk.picture("alpha.png", Rgb, Depth::Eight, true);
    desk.model("m.safetensors", 1);
    desk.refuses(&["denoise", "a.png", "-o", "wall/out.png", "--method", "tv"], &["wall"]);
    desk.refuses(
        &["denoise", "alpha.png", "-o", "flat.jpg", "--method", "tv"],
        &["flat.jpg", "transparency"],
    );
    desk.refuses(&["inspect", "m.safetensors", "--filter-sheet", "wall/out.png"], &["wall"]);
    desk.refuses(&["inspect", "m.safetensors", "--filter-sheet", "a.png"], &["a.png", "--overwrite"]);
    desk.refuses(&["inspect", "m.safetensors", "--filter-sheet", "sheet.txt"], &["sheet.txt"]);
}

#[test]
fn pictures_too_small_to_score() {
    let desk = Desk::new();
    let tiny = proxlift::image::Image::zeros(1, 4, 4).unwrap();
    std::fs::create_dir(desk.path("set")).unwrap();
    let picture = proxlift::image::io::Picture::new(tiny, Depth::Eight);
    proxlift::image::io::write(desk.path("set/tiny.png"), &picture).unwrap();
    desk.refuses(&["evaluate", "--method", "tv", "--data", "set"], &["tiny.png"]);
}
