//! `demo`: a page and scores out of nothing.

mod common;

use common::Desk;
use serde_json::Value;

const SMALL: [&str; 4] = ["demo", "--size", "96x64", "--no-open"];

#[test]
fn a_page_that_needs_nothing_else() {
    let desk = Desk::new();
    let (table, _) = desk.succeeds(&SMALL);
    assert!(
        table.contains("96 x 64") && table.contains("25.0/255") && table.contains("total variation"),
        "{table}"
    );
    let page = std::fs::read_to_string(desk.path("proxlift-demo.html")).unwrap();
    // Noisy, total variation, small, best, clean.
    assert_eq!(page.matches("data:image/png;base64,").count(), 5);
    for part in ["role=\"slider\"", "data-zoom=\"2\"", "ArrowLeft", "prefers-color-scheme: dark", "</html>"] {
        assert!(page.contains(part), "{part}");
    }
    for address in ["http:", "https:", "src=\"/", "<link"] {
        assert!(!page.contains(address), "{address}");
    }
    // Another demo takes its place, but nothing else is lost.
    desk.succeeds(&SMALL);
    std::fs::write(desk.path("proxlift-demo.html"), "<title>mine</title>").unwrap();
    desk.refuses(&SMALL, &["proxlift-demo.html", "--overwrite"]);
    desk.succeeds(&[&SMALL[..], &["--overwrite"]].concat());
}

#[test]
fn networks_are_ahead_of_total_variation_and_scores_follow_the_seed() {
    let desk = Desk::new();
    let run = |more: &[&'static str]| -> Value {
        let flags = [&["demo", "--size", "192x128", "--json", "-o", "d.html"], more].concat();
        serde_json::from_str(&desk.succeeds(&flags).0).unwrap()
    };
    let psnr = |run: &Value, name: &str| {
        let results = run["results"].as_array().unwrap();
        results.iter().find(|r| r["name"] == name).unwrap()["psnr"].as_f64().unwrap()
    };
    let run_1 = run(&[]);
    assert!((psnr(&run_1, "noisy") - 20.17).abs() < 0.1);
    assert!(psnr(&run_1, "total variation") > psnr(&run_1, "noisy") + 3.0);
    assert!(psnr(&run_1, "small") > psnr(&run_1, "total variation"));
    assert!(psnr(&run_1, "best") > psnr(&run_1, "total variation"));
    assert_eq!(psnr(&run(&["--threads", "1"]), "best"), psnr(&run_1, "best"));
    assert_ne!(psnr(&run(&["--seed", "2"]), "noisy"), psnr(&run_1, "noisy"));
    assert!(psnr(&run(&["--sigma", "0.2"]), "noisy") < 15.0);
}

#[test]
fn a_model_of_ones_own_is_shown_beside_the_others() {
    let desk = Desk::new();
    desk.model("mine.safetensors", 1);
    let flags = [&SMALL[..], &["--model", "mine.safetensors", "--json"]].concat();
    let found: Value = serde_json::from_str(&desk.succeeds(&flags).0).unwrap();
    let names: Vec<&str> =
        found["results"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["noisy", "total variation", "small", "best", "mine"]);
    desk.refuses(&[&SMALL[..], &["--model", "nothing"]].concat(), &["nothing"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let desk = Desk::new();
    for size in ["768", "0x512", "8x8", "5000x5000", "axb"] {
        desk.refuses(&["demo", "--no-open", "--size", size], &["--size", "768x512"]);
    }
    desk.refuses(&[&SMALL[..], &["--sigma", "25"]].concat(), &["25/255"]);
    desk.refuses(&[&SMALL[..], &["-o", "page.png"]].concat(), &["page.png", ".html"]);
}
