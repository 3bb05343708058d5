//! `compare`, and the curves and exports of `evaluate`: the same noise for everybody.

mod common;

use common::Desk;
use proxlift::image::Channels::Rgb;
use proxlift::image::Image;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::image::noise::add_gaussian;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_curve_has_the_scores_of_each_level() {
    let desk = Desk::new();
    desk.model("m.safetensors", 1);
    let base = ["evaluate", "--model", "m.safetensors", "--limit", "2", "--json", "--sigma"];
    let sweep = [&base[..], &["0.05:0.1:0.05,50/255", "--tv", "--plot", "curve.svg"]].concat();
    let curve = json(&desk.succeeds(&sweep).0);
    let points = curve["curve"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    for (point, sigma) in points.iter().zip(["0.05", "0.1", "50/255"]) {
        let alone = json(&desk.succeeds(&[&base[..], &[sigma]].concat()).0);
        assert_eq!((&point["psnr"], &point["ssim"]), (&alone["psnr"], &alone["ssim"]), "{sigma}");
        let tv = ["evaluate", "--method", "tv", "--limit", "2", "--json", "--sigma", sigma];
        assert_eq!(point["tv_psnr"], json(&desk.succeeds(&tv).0)["psnr"], "{sigma}");
    }
    let svg = std::fs::read_to_string(desk.path("curve.svg")).unwrap();
    assert!(svg.ends_with("</svg>\n") && svg.matches("<polyline").count() == 6);
    desk.refuses(&sweep, &["curve.svg", "--overwrite"]);
    desk.grey("set/a.png");
    let on_one = ["evaluate", "--method", "tv", "--data", "set", "--json", "--sigma"];
    for (levels, count, last) in [("0.02:0.3:0.02", 15, 0.3), ("0.02, 25/255,0.05:0.15:0.1", 4, 0.15)] {
        let curve = json(&desk.succeeds(&[&on_one[..], &[levels]].concat()).0);
        let points = curve["curve"].as_array().unwrap();
        assert_eq!((points.len(), points[count - 1]["sigma"].as_f64()), (count, Some(last)), "{levels}");
    }
    let (table, _) = desk.succeeds(&["evaluate", "--method", "tv", "--limit", "1", "--sigma", "0.05,0.1"]);
    assert!(table.contains("2 noise levels") && table.contains("0.0500    12.8"), "{table}");
}

#[test]
fn exported_pictures_are_those_that_were_denoised() {
    let desk = Desk::new();
    for name in ["set/a.png", "set/deep/b.c.png"] {
        desk.grey(name);
    }
    let scored = ["evaluate", "--method", "tv", "--data", "set", "--sigma", "25/255", "--seed", "3"];
    desk.succeeds(&[&scored[..], &["--export-noisy", "noisy"]].concat());
    let clean = io::read(desk.path("set/deep/b.c.png")).unwrap().image;
    let noisy = io::read(desk.path("noisy/deep/b.c.tif")).unwrap();
    assert_eq!(
        (noisy.depth, &noisy.image),
        (Depth::Float, &add_gaussian(&clean, 25.0 / 255.0, 3, 1).unwrap())
    );
    desk.refuses(&[&scored[..], &["--export-noisy", "noisy"]].concat(), &["a.tif", "--overwrite"]);
    // What another program makes of them is scored like our own.
    desk.succeeds(&["denoise", "noisy", "-o", "results/", "--method", "tv", "--sigma", "25/255"]);
    let compared = ["compare", "--data", "set", "--sigma", "25/255", "--seed", "3", "--json"];
    let scores = json(&desk.succeeds(&[&compared[..], &["--also", "again=results"]].concat()).0);
    let psnr = |name: &str| {
        let columns = scores["columns"].as_array().unwrap();
        columns.iter().find(|c| c["name"] == name).unwrap()["psnr"].as_f64().unwrap()
    };
    assert_eq!(psnr("TV"), psnr("again"));
    assert!(psnr("TV") > psnr("noisy"));
}

#[test]
fn a_sheet_is_one_file_without_scripts() {
    let desk = Desk::new();
    desk.picture("set/<a&b>.png", Rgb, Depth::Eight, false);
    desk.model("m.safetensors", 3);
    let compare =
        ["compare", "--model", "a < b<script>=m.safetensors", "--data", "set", "--side", "20", "--errors"];
    for name in ["sheet.html", "sheet.svg"] {
        let (out, _) = desk.succeeds(&[&compare[..], &["-o", name]].concat());
        assert!(out.contains("TV") && out.contains("a < b"), "{out}");
        let text = std::fs::read_to_string(desk.path(name)).unwrap();
        // Clean, and three results with their errors; on a page clean once more, to be put in their place.
        let pictures = if name == "sheet.html" { 8 } else { 7 };
        assert_eq!(text.matches("data:image/png;base64,").count(), pictures, "{name}");
        assert!(
            text.contains("a &lt; b")
                && text.contains("&lt;a&amp;b&gt;")
                && !text.contains("<script")
                && !text.contains("<a&b>")
                && !text.contains("http://www.w3.org/1999")
        );
        desk.refuses(&[&compare[..], &["-o", name]].concat(), &[name, "--overwrite"]);
    }
    desk.refuses(&[&compare[..], &["-o", "sheet.png"]].concat(), &["sheet.png", "html or .svg"]);
}

#[test]
fn a_sheet_shows_some_pictures_or_those_with_these_names() {
    let desk = Desk::new();
    for name in ["a", "b", "deep/c", "deep/d"] {
        desk.grey(&format!("set/{name}.png"));
    }
    let base = ["compare", "--data", "set", "--json", "--show"];
    let all = ["a", "b", "deep/c", "deep/d"];
    for (show, more, shown) in [
        ("2", &[][..], &["a", "deep/c"][..]),
        ("9", &[], &all),
        ("9", &["--limit", "2"], &["a", "b"]),
        ("d, deep/c,a.png", &[], &["a", "deep/c", "deep/d"]),
    ] {
        let found = json(&desk.succeeds(&[&base[..], &[show], more].concat()).0);
        assert_eq!(found["shown"], Value::from(shown), "{show}");
    }
    desk.refuses(&[&base[..], &["d", "--limit", "2"]].concat(), &["--show", "d"]);
    for bad in ["0", "101", "", "a,,b"] {
        desk.refuses(&[&base[..], &[bad]].concat(), &["--show"]);
    }
}

#[test]
fn comparisons_that_make_no_sense() {
    let desk = Desk::new();
    desk.grey("set/a.png");
    desk.text("other/a.txt");
    let small = Picture::new(Image::zeros(1, 20, 20).unwrap(), Depth::Eight);
    std::fs::create_dir(desk.path("small")).unwrap();
    io::write(desk.path("small/a.png"), &small).unwrap();
    desk.model("grey.safetensors", 1);
    desk.model("rgb.safetensors", 3);
    let with = |more: &[&'static str]| [&["compare", "--data", "set"], more].concat();
    desk.refuses(&with(&["--also", "x=other"]), &["other", "a.tif"]);
    desk.refuses(&with(&["--also", "x=small"]), &["a.png", "20 x 20"]);
    desk.refuses(&with(&["--also", "x=missing"]), &["missing", "folder"]);
    desk.refuses(&with(&["--model", "grey.safetensors", "--model", "rgb.safetensors"]), &["grey", "colour"]);
    desk.refuses(&with(&["--model", "grey.safetensors", "--model", "grey.safetensors"]), &["two columns"]);
    desk.refuses(&with(&["--show", "b"]), &["--show", "b"]);
    desk.refuses(&with(&["-o", "no/such/sheet.html"]), &["no/such"]);
    for levels in [
        "",
        "0.1,",
        "0.1:0.2",
        "0.2:0.1:0.1",
        "0:1:0",
        "0:1:-1",
        "0:1:1e-9",
        "0:nan:1",
        "1:2:3:4",
        "2,0.1",
        "1/",
    ] {
        desk.refuses(&["evaluate", "--method", "tv", "--sigma", levels], &["--sigma"]);
    }
    desk.refuses(
        &["evaluate", "--method", "tv", "--sigma", "0.1,0.2", "--export-noisy", "x"],
        &["--export-noisy"],
    );
}
