//! From courses to panels and tables: which number goes along which axis.

use super::folder::cell;
use super::results::{Course, Point, Spread};
use crate::chart::{Axis, Line, Panel, Style};

/// What is drawn against what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    LossByTime,
    LossByEpochs,
    PsnrByTime,
}

impl View {
    fn axes(self) -> (Axis, Axis) {
        let (time, loss) = (Axis::log("training time in seconds, one thread"), Axis::log("loss of a patch"));
        match self {
            Self::LossByTime => (time, loss),
            Self::LossByEpochs => (Axis::linear("epochs"), loss),
            Self::PsnrByTime => (time, Axis::linear("PSNR in dB")),
        }
    }

    fn point(self, p: &Point) -> Option<(f64, Spread)> {
        match self {
            Self::LossByEpochs => Some((p.epoch as f64, p.loss)),
            // Nothing has been learnt at epoch 0: it has no time to stand at.
            _ if p.epoch == 0 => None,
            Self::LossByTime => Some((p.seconds, p.loss)),
            Self::PsnrByTime => Some((p.seconds, p.psnr?)),
        }
    }

    /// A panel of several courses.
    pub fn panel(self, title: impl Into<String>, courses: &[(Style, Course)]) -> Panel {
        let line = |(style, course): &(Style, Course)| {
            let points: Vec<(f64, Spread)> = course.points.iter().filter_map(|p| self.point(p)).collect();
            let several = points.iter().any(|(_, v)| v.1 < v.2);
            let band = points.iter().filter(|_| several).map(|(x, v)| (*x, v.1, v.2)).collect();
            Line { band, ..Line::new(*style, points.iter().map(|(x, v)| (*x, v.0)).collect()) }
        };
        let (x, y) = self.axes();
        Panel::new(title, x, y, courses.iter().map(line).collect())
    }
}

/// The paper's pair: the loss of several courses against time, and against epochs; `who` has them stands first.
pub fn loss_panels(who: &str, courses: &[(Style, Course)]) -> [Panel; 2] {
    [
        View::LossByTime.panel(format!("{who}against computation time"), courses),
        View::LossByEpochs.panel(format!("{who}against epochs"), courses),
    ]
}

/// The columns of [`rows`]: where a course comes from takes the first two.
pub const COLUMNS: &str = "epoch seconds loss_mean loss_min loss_max";

/// A course as rows of a table, each beginning with `names`.
pub fn rows(names: [String; 2], course: &Course) -> impl Iterator<Item = (Vec<String>, &Point)> {
    course.points.iter().map(move |p| {
        let numbers = [p.seconds, p.loss.0, p.loss.1, p.loss.2].map(cell);
        (names.iter().cloned().chain([p.epoch.to_string()]).chain(numbers).collect(), p)
    })
}
