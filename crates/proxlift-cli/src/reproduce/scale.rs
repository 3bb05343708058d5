//! How large the experiments are: those of the paper, or a quick look with the same shape.

use serde::Serialize;

/// The sizes of all experiments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scale {
    /// What this scale is called.
    pub name: &'static str,
    /// Images of the mini-batch experiment.
    pub few: usize,
    /// Its epochs.
    pub few_epochs: usize,
    /// Its batch sizes.
    pub batches: Vec<usize>,
    /// Images of the comparison.
    pub images: usize,
    /// Its epochs.
    pub epochs: usize,
    /// Its depths, increasing.
    pub depths: Vec<usize>,
    /// The mini-batch of LB-FB and SGD in the comparison.
    pub batch: usize,
    /// The grid of rates for SGD, over the paper's range.
    pub rates: Vec<f64>,
    /// Rates beyond it: with these, the best rate lies inside the grid.
    pub wider_rates: Vec<f64>,
    /// Features `J`.
    pub features: usize,
    /// The side of the patches.
    pub patch: usize,
    /// Test images.
    pub test: usize,
    /// The side of the test images, where they are painted.
    pub test_side: usize,
    /// Noise levels of the robustness experiment.
    pub sigmas: Vec<f64>,
    /// The side of the crops that Jacobians are taken at.
    pub jacobian_side: usize,
}

impl Scale {
    /// The paper's.
    pub fn full() -> Self {
        Self {
            name: "full",
            few: 100,
            few_epochs: 50,
            batches: vec![1, 2, 5, 10, 20, 50, 100],
            images: 1000,
            epochs: 50,
            depths: vec![5, 10, 15],
            batch: 50,
            rates: vec![1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4],
            wider_rates: vec![1e-3, 2e-3, 5e-3, 1e-2, 2e-2],
            features: 16,
            patch: 32,
            test: 9,
            test_side: 192,
            sigmas: vec![0.05, 0.075, 0.1, 0.125, 0.15, 0.2],
            jacobian_side: 96,
        }
    }

    /// About two minutes on two cores.
    pub fn quick() -> Self {
        Self {
            name: "quick",
            few_epochs: 15,
            images: 300,
            epochs: 15,
            batch: 20,
            test_side: 128,
            jacobian_side: 48,
            ..Self::full()
        }
    }

    /// For tests: every part of the report, hardly any work.
    pub fn tiny() -> Self {
        Self {
            name: "tiny",
            few: 6,
            few_epochs: 2,
            batches: vec![1, 6],
            images: 8,
            epochs: 3,
            depths: vec![3, 4],
            batch: 4,
            rates: vec![1e-6, 5e-4],
            wider_rates: vec![2e-3],
            features: 4,
            patch: 12,
            test: 2,
            test_side: 32,
            sigmas: vec![0.1, 0.2],
            jacobian_side: 16,
        }
    }

    /// The deepest network: the one of the pictures and the table.
    pub fn deepest(&self) -> usize {
        self.depths.last().copied().unwrap_or(15)
    }

    /// What must stand on every figure, unless this is the experiment of the paper.
    pub fn caution(&self) -> Option<String> {
        let full = Self::full();
        (self.name != full.name).then(|| {
            format!(
                "{} version: {} images and {} epochs where the paper has {} and {} (batch sizes: {} images, {} epochs). \
                 The shape of the report, not its figures.",
                if self.name == "quick" { "Quick" } else { "Tiny" },
                self.images,
                self.epochs,
                full.images,
                full.epochs,
                self.few,
                self.few_epochs
            )
        })
    }
}
