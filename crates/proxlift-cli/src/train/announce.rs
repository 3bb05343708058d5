//! What a training is going to do and need, told before it starts.

use super::data::Data;
use crate::output;
use proxlift::training::Session;

pub fn announce(session: &Session<'_>, data: &Data) {
    let (config, network, count) = (session.config, &session.network, session.patches.len());
    output::note(format_args!("network   {network}: {} parameters", network.parameters()));
    output::note(format_args!("trainer   {}", session.trainer.describe()));
    output::note(format_args!(
        "data      {}; {count} patches of {1} x {1} pixels, sigma {2:.4}{3}",
        data.described,
        config.patch,
        config.sigma,
        config.settings.sigma_range.map_or(String::new(), |[a, b]| format!(" (drawn from {a} to {b})"))
    ));
    let (batch, last) = (config.plan.batch, config.plan.last_batch);
    let growing = if last == batch { String::new() } else { format!(" to {last}") };
    output::note(format_args!("          {} epochs in batches of {batch}{growing}", config.plan.epochs));
    let kept = config.persistent_bytes(count);
    let kept_text = match kept {
        0 => String::new(),
        kept => format!(", of it {} for persistent u; a checkpoint takes as much on the disk", size(kept)),
    };
    output::note(format_args!(
        "memory    about {}{kept_text}",
        size(data.bytes + config.batch_bytes() + kept)
    ));
}

fn size(bytes: usize) -> String {
    match bytes as f64 {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b => format!("{:.0} MB", (b / 1e6).max(1.0)),
    }
}

pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
