//! How large the experiments are: those of the paper, or a quick look with the same shape.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Scale {
    pub name: &'static str,
    /// The mini-batch experiment: its images, epochs and batch sizes.
    pub few: usize,
    pub few_epochs: usize,
    pub batches: &'static [usize],
    /// The comparison: its images and epochs, its depths, increasing, and the mini-batch of LB-FB and SGD.
    pub images: usize,
    pub epochs: usize,
    pub depths: &'static [usize],
    pub batch: usize,
    /// The grid of rates for SGD, over the paper's range; and rates beyond it, so that the best one lies inside.
    pub rates: &'static [f64],
    pub wider_rates: &'static [f64],
    /// Features `J`, and the side of the patches.
    pub features: usize,
    pub patch: usize,
    /// Test images, and their side where they are painted.
    pub test: usize,
    pub test_side: usize,
    /// The robustness experiment: its noise levels, and the side of the crops that Jacobians are taken at.
    pub sigmas: &'static [f64],
    pub jacobian_side: usize,
}

/// The paper's.
pub const FULL: Scale = Scale {
    name: "full",
    few: 100,
    few_epochs: 50,
    batches: &[1, 2, 5, 10, 20, 50, 100],
    images: 1000,
    epochs: 50,
    depths: &[5, 10, 15],
    batch: 50,
    rates: &[1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4],
    wider_rates: &[1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1],
    features: 16,
    patch: 32,
    test: 9,
    test_side: 192,
    sigmas: &[0.05, 0.075, 0.1, 0.125, 0.15, 0.2],
    jacobian_side: 96,
};

/// About two minutes on two cores.
pub const QUICK: Scale = Scale {
    name: "quick",
    few_epochs: 15,
    images: 300,
    epochs: 15,
    batch: 20,
    test_side: 128,
    jacobian_side: 48,
    ..FULL
};

/// For tests: every part of the report, hardly any work.
pub const TINY: Scale = Scale {
    name: "tiny",
    few: 6,
    few_epochs: 2,
    batches: &[1, 6],
    images: 8,
    epochs: 3,
    depths: &[3, 4],
    batch: 4,
    rates: &[1e-6, 5e-4],
    wider_rates: &[2e-3],
    features: 4,
    patch: 12,
    test: 2,
    test_side: 32,
    sigmas: &[0.1, 0.2],
    jacobian_side: 16,
};

impl Scale {
    /// The deepest network: the one of the pictures and the table.
    pub fn deepest(&self) -> usize {
        self.depths[self.depths.len() - 1]
    }

    /// All rates of SGD, increasing.
    pub fn all_rates(&self) -> impl Iterator<Item = f64> {
        self.rates.iter().chain(self.wider_rates).copied()
    }

    /// What must stand on every figure, unless this is the experiment of the paper.
    pub fn caution(&self) -> Option<String> {
        let name = match self.name {
            "full" => return None,
            "quick" => "Quick",
            _ => "Tiny",
        };
        Some(format!(
            "{name} version: {} images and {} epochs where the paper has {} and {} (batch sizes: {} images, {} epochs). \
             The shape of the report, not its figures.",
            self.images, self.epochs, FULL.images, FULL.epochs, self.few, self.few_epochs
        ))
    }
}
