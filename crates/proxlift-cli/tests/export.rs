//! `export`: a model becomes an ONNX file, whole or not at all.

mod common;

use common::Desk;
use proxlift::image::Channels;
use proxlift::model::{BuiltIn, Model};

#[test]
fn the_file_is_what_the_library_makes_of_the_model() {
    let desk = Desk::new();
    let file = desk.model("m.safetensors", 3);
    let cases: [(&[&str], Model, &str); 5] = [
        (&[], BuiltIn::Best.model(Channels::Grey).clone(), "[N, 1, H, W]"),
        (&["--model", "small", "--channels", "1"], BuiltIn::Small.model(Channels::Grey).clone(), "K=8, J=27"),
        (&["--model", "best", "--channels", "3"], BuiltIn::Best.model(Channels::Rgb).clone(), "[N, 3, H, W]"),
        (&["--model", "photo"], BuiltIn::Photo.model(Channels::Rgb).clone(), "[N, 3, H, W]"),
        (&["--model", "m.safetensors", "--channels", "3"], Model::load(file).unwrap(), "810 parameters"),
    ];
    for (flags, model, word) in cases {
        let (out, err) = desk.succeeds(&[&["export", "out.onnx", "--overwrite"], flags].concat());
        for word in [word, "out.onnx", "opset 21", " KB", "input image", "input sigma", "output denoised"] {
            assert!(out.contains(word), "{word} in {out}");
        }
        assert_eq!(err, "");
        assert!(std::fs::read(desk.path("out.onnx")).unwrap() == model.to_onnx().unwrap(), "{flags:?}");
    }
}

#[test]
fn a_model_without_a_level_has_no_input_for_one() {
    let desk = Desk::new();
    let path = desk.model("m.safetensors", 1);
    let model = Model { sigma: 0.0, ..Model::load(&path).unwrap() };
    model.save(&path).unwrap();
    let (out, _) = desk.succeeds(&["export", "m.onnx", "--model", "m.safetensors"]);
    assert!(out.contains("input image") && !out.contains("sigma"), "{out}");
}

#[test]
fn bad_input_writes_nothing() {
    let desk = Desk::new();
    desk.model("grey.safetensors", 1);
    desk.text("text.safetensors");
    desk.text("there.onnx");
    std::fs::create_dir(desk.path("folder.onnx")).unwrap();
    desk.refuses(&["export", "m.tflite"], &["m.tflite", "must end with .onnx"]);
    desk.refuses(&["export", "m"], &["must end with .onnx"]);
    desk.refuses(&["export", "there.onnx"], &["there.onnx", "--overwrite"]);
    desk.refuses(&["export", "folder.onnx", "--overwrite"], &["folder.onnx", "folder"]);
    desk.refuses(&["export", "missing/m.onnx"], &["missing", "no such folder"]);
    desk.refuses(
        &["export", "m.onnx", "--model", "huge"],
        &["huge", "small, best, photo, convex and weakly-convex"],
    );
    desk.refuses(
        &["export", "m.onnx", "--model", "text.safetensors"],
        &["text.safetensors", "not a proxlift model"],
    );
    let contrary = ["export", "m.onnx", "--model", "grey.safetensors", "--channels", "3"];
    desk.refuses(&contrary, &["grey.safetensors", "grey pictures", "--channels 3"]);
    desk.refuses(&["export", "m.onnx", "--model", "photo", "--channels", "1"], &["photo", "colour"]);
    desk.refuses(&["export", "m.onnx", "--channels", "2"], &["--channels", "1, 3"]);
    desk.refuses(&["export"], &["<FILE>"]);
}
