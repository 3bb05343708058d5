//! From courses to panels: which number goes along which axis.

use super::results::{Course, Point};
use crate::chart::{Axis, Line, Panel, Scale, Style};

/// What the horizontal axis is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Seconds of training on one thread.
    Time,
    /// Passes over the patches.
    Epochs,
}

/// What the vertical axis is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The feed-forward loss on the training patches.
    Loss,
    /// PSNR on the test images.
    Psnr,
}

/// A panel of several courses.
pub fn panel(title: impl Into<String>, along: Along, of: Of, courses: &[(Style, Course)]) -> Panel {
    let x = match along {
        Along::Time => Axis::new("training time in seconds, one thread", Scale::Log),
        Along::Epochs => Axis::new("epochs", Scale::Linear),
    };
    let y = match of {
        Of::Loss => Axis::new("loss of a patch", Scale::Log),
        Of::Psnr => Axis::new("PSNR in dB", Scale::Linear),
    };
    let lines = courses.iter().map(|(style, course)| line(*style, course, along, of)).collect();
    Panel { title: title.into(), x, y, lines, level: None }
}

/// The paper's pair: the loss of several courses against time, and against epochs.
pub fn loss_panels(courses: &[(Style, Course)]) -> Vec<Panel> {
    vec![
        panel("against computation time", Along::Time, Of::Loss, courses),
        panel("against epochs", Along::Epochs, Of::Loss, courses),
    ]
}

fn line(style: Style, course: &Course, along: Along, of: Of) -> Line {
    let x = |p: &Point| match along {
        Along::Time => p.seconds,
        Along::Epochs => p.epoch as f64,
    };
    let y = |p: &Point| match of {
        Of::Loss => Some(p.loss),
        Of::Psnr => p.psnr,
    };
    // Nothing has been learnt at epoch 0; it would only stretch the axis of PSNR, and has no time to stand at.
    let shown = course.points.iter().filter(|p| p.epoch > 0 || (of == Of::Loss && along == Along::Epochs));
    let points: Vec<(f64, (f64, f64, f64))> = shown.filter_map(|p| Some((x(p), y(p)?))).collect();
    let several = points.iter().any(|(_, v)| v.1 < v.2);
    let band = points.iter().filter(|_| several).map(|(x, v)| (*x, v.1, v.2)).collect();
    Line { band, ..Line::new(style, points.iter().map(|(x, v)| (*x, v.0)).collect()) }
}
