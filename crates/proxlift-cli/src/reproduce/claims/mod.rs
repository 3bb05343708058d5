//! What the paper says of its experiments, each with a verdict from the data.

pub mod batches;
mod convergence;
mod energy;
mod robustness;

use self::batches::trade_off;
use self::convergence::{FEWER_EPOCHS, NO_OSCILLATION, depth_rule, fewer_epochs, no_oscillation, stable};
use self::robustness::Robustness;
use super::report::{Material, Section, links};
use super::runs::Method;
use crate::html::table;
use maud::{Markup, html};
use proxlift::Result;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Holds,
    Mixed,
    DoesNotHold,
    NoData,
}

impl Verdict {
    fn all_or_some(tests: &[bool]) -> Self {
        match tests.iter().filter(|test| **test).count() {
            _ if tests.is_empty() => Self::NoData,
            0 => Self::DoesNotHold,
            n if n == tests.len() => Self::Holds,
            _ => Self::Mixed,
        }
    }

    fn badge(self) -> Markup {
        let (class, words) = match self {
            Self::Holds => ("yes", "holds"),
            Self::Mixed => ("part", "mixed"),
            Self::DoesNotHold => ("no", "does not hold"),
            Self::NoData => ("none", "no data"),
        };
        html! { span.badge.(class) { (words) } }
    }
}

/// What the data say of a claim: for the reader, and for programs.
pub struct Finding {
    verdict: Verdict,
    evidence: Markup,
    numbers: Value,
}

/// Where links lead, what is claimed, by whom and where the line between the verdicts is, and what the data say.
type Claim = (String, String, String, Finding);

fn claims(all: &Material<'_>, robustness: &Robustness, method: Method) -> Result<Vec<Claim>> {
    // A star stands for the method.
    let claim = |id: &str, statement: &str, rule: &str, finding: Finding| {
        (id.replace('*', method.slug()), statement.replace('*', method.label()), rule.to_string(), finding)
    };
    let sooner = |id: &str, baseline: Method| {
        let statement = format!("* needs fewer epochs than {}", baseline.label());
        claim(id, &statement, FEWER_EPOCHS, fewer_epochs(all, method, baseline))
    };
    let robust = "Networks trained by * are no less robust than those by SGD";
    let robustness = (robustness::rule(all.scale), robustness.no_less_than_sgd(all.scale, method));
    Ok(vec![
        sooner("fewer-epochs-*-paper", Method::Sgd),
        sooner("fewer-epochs-*-wide", Method::SgdWide),
        claim("no-oscillation-*", "* does not oscillate", NO_OSCILLATION, no_oscillation(all, method)),
        claim("depth-*", "* stays stable in deeper networks", &depth_rule(all.scale), stable(all, method)),
        claim(
            "batches-*",
            "*: batch size trades epochs against time",
            &batches::rule(),
            trade_off(all, method),
        ),
        claim("energy-*", "*: E never rises on a batch", energy::RULE, energy::monotone(all, method)?),
        claim("robustness-*", robust, &robustness.0, robustness.1),
    ])
}

pub fn write(all: &Material<'_>) -> Result<Section> {
    let robustness = Robustness::measure(all)?;
    let [paper, sweep] = Method::LB_FB.map(|method| claims(all, &robustness, method));
    let claims: Vec<Claim> = paper?.into_iter().chain(sweep?).collect();
    let data = claims.iter().map(|(id, statement, rule, Finding { verdict, numbers, .. })| {
        json!({"claim": id, "statement": statement, "rule": rule, "verdict": verdict, "numbers": numbers})
    });
    all.folder.json("claims.json", &data.collect::<Vec<_>>())?;
    let overview = claims.iter().map(|(id, statement, _, finding)| {
        vec![html! { a href={ "#" (id) } { (statement) } }, finding.verdict.badge()]
    });
    let body = html! {
        (all.caution())
        p {
            "The verdicts are computed from the data of this report by the rule below each heading, without a hand in \
             between. The numbers are in " (links(&["claims.json"])) "."
        }
        (table(&["claim", "verdict"], &overview.collect::<Vec<_>>()))
        @for (id, statement, rule, finding) in &claims {
            h3 id=(id) { (statement) " " (finding.verdict.badge()) }
            p.faint { (rule) }
            (finding.evidence)
        }
    };
    let held = claims.iter().filter(|claim| claim.3.verdict == Verdict::Holds).count();
    let short = format!("what the paper says, judged by the data: {held} of {} hold", claims.len());
    Ok(Section { id: "claims", title: "Claims", short, body })
}
