//! Steps of training, with a white-box canary: an adversary who sees every release, and whose gradient is the clip norm in one direction whatever happens.
//!
//! One run has many canaries that do not know of each other, each a trial. Noise is Gaussian, so that both probabilities of the event are known.

use std::rc::Rc;

use whit::Neighbours;
use whit_learn::audit::canary::Canaries;
use whit_learn::{Draft, NoiseDraft, Plan, SamplerDraft};
use whit_trial::{Case, Claim, Cost, Draws, Share, Untried, upper_tail};

use super::untried;

/// Canaries of a run.
const CANARIES: usize = 256;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for multiplier in [0.5, 1.0] {
        // Half way to the canary, over half of the samples that have it: below in as many as above.
        let poisson = SamplerDraft::Poisson { rate: 0.5 };
        cases.push(case(
            "Poisson samples",
            multiplier,
            |multiplier| [0.5, upper_tail(0.5 / multiplier)],
            (poisson, 1),
        ));
        // Four steps are one of half the noise.
        cases.push(case(
            "everybody, 4 steps",
            multiplier,
            |multiplier| [-1.0, 1.0].map(|half_way| upper_tail(half_way / multiplier)),
            (SamplerDraft::All, 4),
        ));
    }
    cases
}

/// The event: the releases are likelier with the canary than without.
fn case(
    name: &str,
    multiplier: f64,
    chances: fn(f64) -> [f64; 2],
    (sampler, steps): (SamplerDraft, u64),
) -> Case {
    let [likely, unlikely] = chances(multiplier);
    let name = format!("{name}, noise multiplier {multiplier}");
    // The canary's gradient is a millionth short of the clip norm, and the grid is fine.
    let claim = Claim::of(likely, unlikely, 1e-4);
    Case::of(
        "training, a white-box canary",
        name,
        claim,
        Cost::Statistic,
        move |share| {
            let plan = Rc::new(plan(multiplier * share.value(), sampler, steps)?);
            let mut trials = Vec::new();
            Ok(Draws::new(true, false, move |is_in, coins| {
                if trials.is_empty() {
                    let canaries = Canaries::new(&plan, CANARIES).map_err(untried)?;
                    let scores = canaries.scores(&[*is_in; CANARIES], coins);
                    let scores = scores.map_err(untried)?;
                    trials.extend(scores.iter().map(|score| *score > 0.0));
                }
                trials.pop().ok_or_else(|| Untried::new("no canaries"))
            }))
        },
    )
    .with_chances(move |share: Share| chances(multiplier * share.value()))
}

fn plan(multiplier: f64, sampler: SamplerDraft, steps: u64) -> Result<Plan, Untried> {
    let draft = Draft {
        sampler,
        steps,
        clip_norm: 1.0,
        adaptive: None,
        noise: NoiseDraft::Multiplier(multiplier),
        delta: 1e-5,
        relation: Neighbours::AddRemove,
        examples_public: CANARIES as u64,
    };
    Plan::new(&draft).map_err(untried)
}
