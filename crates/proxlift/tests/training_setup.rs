//! Settings become configurations: presets, what is refused, older names, models to start from.

use proxlift::image::Channels;
use proxlift::model::BuiltIn;
use proxlift::named::Named;
use proxlift::network::Network;
use proxlift::training::{
    Algorithm, Config, FilterConstraint, Grid, Method, Metric, Preset, Settings, StepRule,
};
use serde_json::{Value, json};

fn given(settings: Value) -> Settings {
    Settings::from_map(settings.as_object().unwrap().clone()).unwrap()
}

fn refused(settings: Value) -> String {
    let settings = settings.as_object().unwrap().clone();
    Settings::from_map(settings).and_then(|settings| Config::resolve(&settings)).unwrap_err().to_string()
}

fn resolved(settings: Value) -> Config {
    Config::resolve(&given(settings)).unwrap()
}

#[test]
fn twelve_settings_are_common_and_every_setting_has_help() {
    let list = Settings::list();
    assert_eq!(list.iter().filter(|setting| setting.is_common()).count(), 12);
    for setting in &list {
        assert!(setting.help().len() > 10 && !setting.help().ends_with('.'), "{}", setting.field);
    }
}

#[test]
fn older_names_are_understood() {
    let old =
        given(json!({"trainer": "adam", "inertia": 0.5, "overstep": 2, "filters": "free", "preset": "best"}));
    assert_eq!((old.trainer, old.preset), (Some(Algorithm::Backprop), Some(Preset::Lifted)));
    assert_eq!((old.momentum, old.step_scale), (Some(0.5), Some(2.0)));
    assert_eq!(old.filter_constraint, Some(FilterConstraint::Free));
    let old = given(json!({"trainer": "momentum"}));
    assert_eq!((old.trainer, old.preset), (Some(Algorithm::Backprop), Some(Preset::Momentum)));
    assert_eq!(Settings::from_map(old.to_map()).unwrap(), old);
    assert!(refused(json!({"dept": 3})).contains("dept"));
    assert!(refused(json!({"rate": "fast"})).contains("backtracking"));
}

#[test]
fn the_preset_of_an_algorithm_trains_by_it() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.preset().settings().trainer, Some(*algorithm));
    }
}

#[test]
fn a_complete_configuration_gives_itself() {
    for settings in [
        json!({}),
        json!({"preset": "paper"}),
        json!({"trainer": "backprop"}),
        json!({"preset": "adam", "metric": "kronecker", "beta2": 0.99}),
        json!({"preset": "backtracking"}),
        json!({"preset": "backtracking", "trainer": "backprop"}),
        json!({"preset": "paper", "rate": 1e-3, "order": "sweep", "u": "anchored"}),
        json!({"u": "persistent"}),
        json!({"metric": "gauss-newton", "seed": 3}),
        json!({"metric": "kronecker", "border": 4, "overstep": 4}),
        json!({"metric": "gauss-newton", "rate": "backtracking", "u-step": "backtracked", "theta-steps": "global"}),
        json!({"preset": "sgd", "rate-grid": [1e-4, 5e-4], "grid-epochs": 2}),
        json!({"from": "small", "sigma": 0.2}),
    ] {
        let config = resolved(settings.clone());
        let mut again = Config::resolve(&config.settings).unwrap();
        again.name = config.name.clone();
        assert_eq!(again, config, "{settings}");
        assert_eq!(again.fingerprint(), config.fingerprint());
    }
}

#[test]
fn settings_that_would_do_nothing_or_make_no_sense_are_refused() {
    for settings in [
        json!({"trainer": "backprop", "mu": 1}),
        json!({"preset": "paper", "momentum": 0.5}),
        json!({"preset": "paper", "loss": "norm"}),
        json!({"preset": "backtracking", "beta2": 0.5}),
        json!({"preset": "sgd", "beta2": 0.5}),
        json!({"rate": 1e-3, "u-step": "closed"}),
        json!({"rate": 1e-3, "inner": 2}),
        json!({"rate": 1e-3, "u": "persistent"}),
        json!({"preset": "paper", "rate": 1e-3}),
        json!({"rate": 1e-3, "theta-steps": "global"}),
        json!({"order": "simultaneous", "u-step": "closed"}),
        json!({"order": "simultaneous", "theta-steps": "layer"}),
        json!({"trainer": "backprop", "u-step": "closed"}),
        json!({"rate": 1e-3, "rate-grid": [1e-3]}),
        json!({"rate": "backtracking", "grid-epochs": 2}),
        json!({"rate-grid": [1e-3, 1e-4, 1e-3]}),
        json!({"rate-grid": []}),
        json!({"rate-grid": [-1.0]}),
        json!({"grid-epochs": 99}),
        json!({"border": 16}),
        json!({"step-scale": 0}),
        json!({"from": "small", "start": "cosines"}),
        json!({"from": "small", "patch": 12}),
    ] {
        assert!(!refused(settings).is_empty());
    }
}

#[test]
fn given_settings_adapt_the_preset() {
    let config = resolved(json!({"u": "persistent"}));
    assert_eq!(config.settings.rate, Some(StepRule::Backtracking));
    assert!(config.is_persistent() && !config.plan.fresh_noise);
    let config = resolved(json!({"metric": "diagonal", "rate": "backtracking"}));
    assert_eq!(config.settings.metric, Some(Metric::Diagonal));
    let config = resolved(json!({"preset": "backtracking", "metric": "diagonal"}));
    assert_eq!(config.settings.rate, Preset::Lifted.settings().rate);
    let config = resolved(json!({"preset": "sgd", "rate-grid": [1e-4]}));
    assert_eq!(config.grid, Some(Grid { rates: vec![1e-4], epochs: config.plan.epochs }));
    let trial = config.with_rate(1e-4, 3).unwrap();
    assert_eq!((trial.grid, trial.plan.epochs, trial.name.as_str()), (None, 3, "sgd"));
    let config = resolved(json!({"preset": "paper", "trainer": "backprop"}));
    assert!(matches!(config.method, Method::Descent(..)) && config.settings.augment == Some(false));
    assert_eq!((config.settings.mu, config.settings.u), (None, None));
    assert_eq!(resolved(json!({"preset": "backtracking", "batch": 3})).plan.last_batch, 3);
}

#[test]
fn a_model_to_start_from_brings_its_architecture_and_refuses_another_one() {
    let grey = resolved(json!({"from": "small"}));
    let model = BuiltIn::Small.model(Channels::Grey);
    assert_eq!(grey.network().unwrap(), model.network);
    assert_eq!((grey.sigma, grey.settings.border), (model.sigma, Some(model.network.border)));
    let colour = resolved(json!({"from": "small", "channels": 3, "border": 2, "sigma": 2.0 * model.sigma}));
    let network = colour.network().unwrap();
    assert_eq!((network.architecture().colours(), network.border), (3, 2));
    let knots = |network: &Network<f32>| network.activation[0].piecewise().unwrap().knots().to_vec();
    let trained = &BuiltIn::Small.model(Channels::Rgb).network;
    let doubled = knots(trained).iter().zip(knots(&network)).all(|(a, b)| (2.0 * a - b).abs() < 1e-6);
    assert!(doubled, "thresholds follow the noise");
    for (setting, words) in [
        (json!({"from": "small", "depth": 7}), ["depth 8", "--depth is 7"]),
        (json!({"from": "small", "unrolling": "inertial"}), ["chambolle-pock-accelerated", "inertial"]),
        (json!({"from": "small", "knots": 0}), ["knots", "--knots is 0"]),
    ] {
        let refused = refused(setting);
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    }
}
