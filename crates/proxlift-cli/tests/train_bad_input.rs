//! What `proxlift train` refuses: exit code 2, one sentence, no file written or changed.
#![allow(missing_docs)]

mod common;

use common::Desk;
use proxlift::image::io;

const TINY: &[&str] = &["--depth=3", "--features=4", "--count=16", "--patch=12", "--epochs=2", "--batch=5"];

fn refuses(desk: &Desk, arguments: &[&str], words: &[&str]) {
    desk.refuses(&[&["train"], arguments].concat(), words);
}

#[test]
fn settings_without_sense() {
    let desk = Desk::new();
    refuses(&desk, &["--depth", "1"], &["K is 1", "2"]);
    refuses(&desk, &["--kernel", "4"], &["4", "odd"]);
    refuses(&desk, &["--channels", "2"], &["--channels is 2"]);
    refuses(&desk, &["--channels", "4"], &["--channels is 4"]);
    refuses(&desk, &["--own-synthesis", "--tied"], &["--own-synthesis", "--tied"]);
    refuses(&desk, &["--taught", "0.5"], &["--taught", "--teacher"]);
    refuses(&desk, &["--teacher", "best", "--taught", "2"], &["share", "2", "at most 1"]);
    refuses(&desk, &["--teacher", "best", "--rate", "backtracking"], &["--teacher", "--rate"]);
    refuses(&desk, &["--teacher", "weakly-convex"], &["another teacher"]);
    refuses(&desk, &["--teacher", "huge"], &["huge", "no such file"]);
    refuses(
        &desk,
        &["--own-synthesis", "--rate", "backtracking"],
        &["synthesis of their own", "need a rate"],
    );
    refuses(&desk, &["--lipschitz", "0.5"], &["--lipschitz is 0.5", "at least 1"]);
    for flags in [
        &["--unrolling", "inertial"][..],
        &["--step-scale", "2"],
        &["--convex"],
        &["--tied"],
        &["--bounded"],
        &["--own-synthesis"],
        &["--border", "2"],
        &["--stride", "2"],
        &["--rate", "backtracking"],
    ] {
        refuses(&desk, &[&["--lipschitz", "1"], flags].concat(), &["--lipschitz", flags[0]]);
    }
    refuses(&desk, &["--stride", "3"], &["--stride is 3", "1 or 2"]);
    refuses(&desk, &["--stride", "18446744073709551615"], &["1 or 2"]);
    refuses(&desk, &["--stride", "2", "--patch", "15"], &["--patch is 15", "even"]);
    refuses(&desk, &["--stride", "2", "--border", "3"], &["border is 3", "even"]);
    refuses(&desk, &["--sigma", "-0.1"], &["--sigma", "-0.1"]);
    refuses(&desk, &["--sigma", "25"], &["25/255"]);
    refuses(&desk, &["--lambda", "-1"], &["--lambda"]);
    refuses(&desk, &["--mu", "0"], &["mu"]);
    refuses(&desk, &["--rate", "-1"], &["--rate"]);
    refuses(&desk, &["--rate", "fast"], &["fast", "backtracking"]);
    refuses(&desk, &["--momentum", "1"], &["--momentum"]);
    refuses(&desk, &["--inertia", "1"], &["--momentum"]);
    refuses(&desk, &["--mu", "1/0"], &["--mu", "finite"]);
    refuses(&desk, &["--depth", "many"], &["--depth", "whole number"]);
    refuses(&desk, &["--sigma-range", "0.1"], &["--sigma-range", "two numbers"]);
    refuses(&desk, &["--epochs", "0"], &["--epochs"]);
    refuses(&desk, &["--batch", "0"], &["--batch"]);
    refuses(&desk, &["--count", "0"], &["--count"]);
    refuses(&desk, &["--patch", "500"], &["500", "--data"]);
    refuses(&desk, &["--threads", "0"], &["--threads"]);
    refuses(&desk, &["--trainer", "adam", "--mu", "1"], &["--mu", "lb"]);
    refuses(&desk, &["--u", "persistent", "--rate", "1e-3"], &["persistent", "backtracking"]);
    refuses(&desk, &["--u", "persistent", "--fresh-noise"], &["--fresh-noise"]);
    refuses(&desk, &["--trainer", "sgd", "--u-step", "closed"], &["--u-step", "lb"]);
    refuses(&desk, &["--rate", "1e-3", "--u-step", "closed"], &["--u-step", "minimiser"]);
    refuses(&desk, &["--rate", "1e-3", "--theta-steps", "global"], &["--theta-steps", "backtracking"]);
    refuses(&desk, &["--order", "simultaneous", "--u-step", "closed"], &["--u-step", "simultaneous"]);
    refuses(&desk, &["--order", "simultaneous", "--metric", "diagonal"], &["simultaneous", "Euclidean"]);
    refuses(&desk, &["--rate", "1e-3", "--rate-grid", "1e-3"], &["--rate-grid", "--rate grid"]);
    refuses(&desk, &["--trainer", "sgd", "--rate-grid", "1e-3,-1"], &["--rate-grid", "-1"]);
    refuses(&desk, &["--trainer", "sgd", "--rate-grid", "1e-3,1e-3"], &["--rate-grid", "differ"]);
    refuses(&desk, &["--trainer", "sgd", "--grid-epochs", "99"], &["--grid-epochs", "99"]);
    refuses(&desk, &["--trainer", "sgd", "--rate", "backtracking"], &["backtracking", "lb"]);
    refuses(&desk, &["--test-every", "0"], &["--test-every"]);
}

#[test]
fn data_that_cannot_be_used() {
    let desk = Desk::new();
    desk.text("texts/a.txt");
    desk.grey("small/a.png");
    desk.grey("small/b.png");
    refuses(&desk, &["--data", "absent"], &["absent"]);
    refuses(&desk, &["--data", "texts"], &["texts", "no PNG"]);
    refuses(&desk, &["--test", "texts"], &["texts", "no PNG"]);
    refuses(&desk, &["--data", "small", "--patch", "64"], &["small", "64 x 64"]);
}

#[test]
fn files_of_settings_with_a_typo() {
    let desk = Desk::new();
    let write = |text: &str| std::fs::write(desk.path("c.toml"), text).unwrap();
    write("epochs = 2\ndept = 3\n");
    refuses(&desk, &["--config", "c.toml"], &["c.toml", "line 2", "dept"]);
    write("epochs = \"two\"\n");
    refuses(&desk, &["--config", "c.toml"], &["c.toml", "line 1"]);
    write("trainer = \"lbb\"\n");
    refuses(&desk, &["--config", "c.toml"], &["lbb"]);
    write("epochs = = 2\n");
    refuses(&desk, &["--config", "c.toml"], &["line 1"]);
    refuses(&desk, &["--config", "absent.toml"], &["absent.toml"]);
}

#[test]
fn folders_that_are_taken_or_cannot_be_written() {
    let desk = Desk::new();
    desk.text("full/a.txt");
    desk.text("file");
    refuses(&desk, &[TINY, &["-q", "--out", "full"]].concat(), &["full", "not empty"]);
    refuses(&desk, &[TINY, &["-q", "--out", "file/run"]].concat(), &["file/run"]);
}

#[test]
fn a_training_that_diverges_says_so() {
    let desk = Desk::new();
    for (rate, words) in
        [("--rate=1e9", "diverged in epoch 1: choose"), ("--rate-grid=1e8,1e9", "every rate")]
    {
        let arguments = [&["train", "-q", "--trainer=sgd", rate], TINY].concat();
        let output = desk.command(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{said}");
    }
}

#[test]
fn runs_that_cannot_go_on() {
    let desk = Desk::new();
    desk.text("other/a.txt");
    refuses(&desk, &["--resume", "absent"], &["absent", "not the folder of a run"]);
    refuses(&desk, &["--resume", "other"], &["other", "not the folder of a run"]);
    desk.succeeds(&[&["train"], TINY, &["--out", "run", "--stop-after", "1"]].concat());
    refuses(&desk, &["--resume", "run", "--epochs", "9"], &["--epochs"]);
    let config = std::fs::read_to_string(desk.path("run/config.toml")).unwrap();
    std::fs::write(desk.path("run/config.toml"), config.replace("seed = 0", "seed = 1")).unwrap();
    refuses(&desk, &["--resume", "run"], &["config.toml", "other settings"]);
    std::fs::write(desk.path("run/config.toml"), config).unwrap();

    let checkpoint = desk.path("run/checkpoint/latest.safetensors");
    let bytes = std::fs::read(&checkpoint).unwrap();
    std::fs::write(&checkpoint, &bytes[..bytes.len() / 2]).unwrap();
    refuses(&desk, &["--resume", "run"], &["latest.safetensors", "truncated"]);
    std::fs::copy(desk.path("run/last.safetensors"), &checkpoint).unwrap();
    refuses(&desk, &["--resume", "run"], &["not a checkpoint"]);
    std::fs::write(&checkpoint, &bytes).unwrap();
    desk.succeeds(&["train", "--resume", "run"]);
    refuses(&desk, &["--resume", "run"], &["run", "finished"]);
}

#[test]
fn pairs_without_sense() {
    let desk = Desk::new();
    for folder in ["noisy", "clean", "other"] {
        std::fs::create_dir(desk.path(folder)).unwrap();
    }
    let picture = |name: &str, side: usize| {
        let image = proxlift::image::Image::zeros(1, side, side).unwrap();
        io::write(desk.path(name), &io::Picture::new(image, io::Depth::Eight)).unwrap();
    };
    for name in ["noisy/a.png", "noisy/b.png", "clean/a.png", "other/a.png", "other/c.png"] {
        picture(name, 40);
    }
    refuses(&desk, &["--noisy", "noisy", "--data", "clean"], &["b.png", "no picture of that name", "1 of 2"]);
    picture("clean/b.png", 48);
    refuses(&desk, &["--noisy", "noisy", "--data", "clean"], &["b.png", "40 x 40", "48 x 48"]);
    picture("clean/b.png", 40);
    picture("clean/c.png", 40);
    refuses(&desk, &["--noisy", "noisy", "--data", "clean"], &["c.png", "no picture of that name"]);
    picture("clean/c.tif", 40);
    refuses(&desk, &["--noisy", "noisy", "--data", "clean"], &["c.tif", "same name"]);
    std::fs::write(desk.path("noisy/z.png"), b"not a picture").unwrap();
    ["other/b.png", "other/z.png", "noisy/c.png"].iter().for_each(|name| picture(name, 40));
    refuses(&desk, &["--noisy", "noisy", "--data", "other"], &["z.png", "not a PNG"]);
    refuses(&desk, &["--noise", "own"], &["--noisy"]);
    refuses(&desk, &["--noisy", "noisy", "--noise", "white"], &["--noisy"]);
    refuses(&desk, &["--noisy", "noisy", "--sigma-range", "0.1,0.2"], &["--sigma-range"]);
    refuses(&desk, &["--noise", "camera"], &["--channels 3"]);
}
