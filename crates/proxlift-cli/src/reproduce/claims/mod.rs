//! What the paper says of its experiments, each with a verdict from the data.

mod batches;
mod convergence;
mod energy;
mod robustness;

use super::html::{Verdict, table};
use super::plan::Method;
use super::sections::{Material, Section};
use anyhow::Result;
use maud::{Markup, html};
use serde_json::{Value, json};

/// A statement, what the data say of it, and the numbers.
pub struct Claim {
    /// Where links lead.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// By whom, and where the line between the verdicts is.
    pub rule: String,
    /// What the data say.
    pub verdict: Verdict,
    /// The evidence, as HTML.
    pub evidence: String,
    /// The evidence, for programs.
    pub numbers: Value,
}

/// Judges all claims and writes what is behind them.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(all: &Material<'_>) -> Result<Section> {
    let robustness = robustness::Robustness::measure(all)?;
    let mut claims = Vec::new();
    for method in Method::LB_FB {
        claims.push(convergence::fewer_epochs(all, method, Method::Sgd));
        claims.push(convergence::fewer_epochs(all, method, Method::SgdWide));
        claims.push(convergence::no_oscillation(all, method));
        claims.push(convergence::stable_with_depth(all, method));
        claims.push(batches::trade_off(all, method));
        claims.push(energy::monotone(all, method)?);
        claims.push(robustness.no_less_than_sgd(all, method)?);
    }
    let data: Vec<Value> = claims
        .iter()
        .map(|c| json!({"claim": c.id, "statement": c.statement, "rule": c.rule, "verdict": c.verdict, "numbers": c.numbers}))
        .collect();
    all.folder.figure("claims.json", format!("{:#}\n", json!(data)).as_bytes())?;
    let overview: Vec<Vec<Markup>> = claims
        .iter()
        .map(|c| vec![html! { a href={ "#" (c.id) } { (c.statement) } }, c.verdict.badge()])
        .collect();
    let each: String = claims
        .iter()
        .map(|c| {
            format!(
                "<h3 id=\"{}\">{} {}</h3>\n<p class=\"faint\">{}</p>\n{}",
                c.id,
                c.statement,
                c.verdict.badge().into_string(),
                c.rule,
                c.evidence
            )
        })
        .collect();
    let caution = all.caution();
    let html = format!(
        "{caution}<p>The verdicts are computed from the data of this report by the rule below each heading, without a hand \
         in between. The numbers are in <a href=\"figures/claims.json\">claims.json</a>.</p>\n{}{each}",
        table(&["claim", "verdict"], &overview)
    );
    let held = claims.iter().filter(|c| c.verdict == Verdict::Holds).count();
    Ok(Section {
        id: "claims",
        title: "Claims",
        short: format!("what the paper says, judged by the data: {held} of {} hold", claims.len()),
        html,
    })
}

/// The form of LB-FB as a part of names and links.
fn slug(method: Method) -> &'static str {
    if method == Method::Paper { "paper" } else { "sweep" }
}

/// All, some or none of several tests.
pub fn all_or_some(tests: &[bool]) -> Verdict {
    match (tests.is_empty(), tests.iter().all(|t| *t), tests.iter().any(|t| *t)) {
        (true, ..) => Verdict::NoData,
        (_, true, _) => Verdict::Holds,
        (_, _, true) => Verdict::Mixed,
        _ => Verdict::DoesNotHold,
    }
}
