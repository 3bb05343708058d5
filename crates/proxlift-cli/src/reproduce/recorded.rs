//! A trainer that is watched step by step: how often the energy rose on its batch.

use proxlift::Result;
use proxlift::engine::Engine;
use proxlift::network::Network;
use proxlift::training::{Batch, Report, Snapshot, Trainer};
use std::cell::Cell;
use std::rc::Rc;

/// Steps whose energy is known, and those after which it was higher than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps.
    pub steps: usize,
    /// Rises among them.
    pub rises: usize,
}

/// A rise below this share of `E` cannot be told from rounding in single precision.
const ROUNDING: f64 = 1e-5;

/// The trainer as it is, with a tally.
pub struct Recorded {
    trainer: Box<dyn Trainer + Send>,
    tally: Rc<Cell<Tally>>,
}

impl Recorded {
    /// Watches `trainer`, counting on in `tally`.
    pub fn new(trainer: Box<dyn Trainer + Send>, tally: Rc<Cell<Tally>>) -> Self {
        Self { trainer, tally }
    }
}

impl Trainer for Recorded {
    fn describe(&self) -> String {
        self.trainer.describe()
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        let report = self.trainer.step(engine, network, batch, progress)?;
        if let (Some(before), Some(after)) = (report.energy_before, report.energy) {
            let mut tally = self.tally.get();
            tally.steps += 1;
            tally.rises += usize::from(after > before + ROUNDING * before.abs());
            self.tally.set(tally);
        }
        Ok(report)
    }

    fn save(&self, state: &mut Snapshot) {
        self.trainer.save(state);
    }

    fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.trainer.restore(state)
    }
}
