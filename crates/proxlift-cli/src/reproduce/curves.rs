//! From courses to panels and tables: which number goes along which axis.

use super::folder::{Folder, cell};
use super::results::{Course, Point, Spread};
use super::runs::Method;
use crate::chart::{Axis, Line, Panel, Style};
use proxlift::Result;

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

/// Writes courses as a table: who trained, the `size` of the batch or the network, and the numbers of each epoch.
pub fn write_courses(
    folder: &Folder,
    name: &str,
    size: &str,
    courses: impl Iterator<Item = (Method, usize, Course)>,
    with_psnr: bool,
) -> Result<()> {
    let mut rows = Vec::new();
    for (method, size, course) in courses {
        for Point { epoch, seconds, loss, psnr } in course.points {
            let mut row = vec![method.label().to_string(), size.to_string(), epoch.to_string()];
            row.extend([seconds, loss.0, loss.1, loss.2].map(cell));
            if with_psnr {
                row.extend(psnr.map_or(Default::default(), |v| [v.0, v.1, v.2].map(cell)));
            }
            rows.push(row);
        }
    }
    let more = if with_psnr { " psnr_mean psnr_min psnr_max" } else { "" };
    folder.csv(name, &format!("method {size} epoch seconds loss_mean loss_min loss_max{more}"), rows)
}
