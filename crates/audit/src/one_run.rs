//! Audits in a single run: many canaries, each in or out by a coin, and guesses which are in.
//!
//! **Setting.** `m` canaries are put into the data with probability one half each, independently. Somebody who sees the output guesses
//!   of some of them whether they are in, and abstains from the others; `v` of `r` guesses are right.
//! **Guarantee.** If the mechanism is `(ε, δ)`-DP under adding and removing single canaries, then with `W ~ Bin(r, e^ε/(1+e^ε))`
//!   `Pr[at least v right] <= β + 2mδ · max_{1<=i<=v} (Pr[W >= v-i] - β)/i`, where `β = Pr[W >= v]` \[SNJ23\]. An `ε` for
//!   which the right-hand side is at most alpha is refuted.
//! **Why one may look for the largest such `ε`.** For `2mδ <= 1` the bound is a maximum of sums of tails of `W` with coefficients
//!   `1 - 2mδ/i` and `2mδ/i`, none of them negative, and each tail grows with `ε`. So the refuted `ε` are all those up to some point, and that
//!   point is above the truth only if the truth itself is refuted. For larger `2mδ` nothing is concluded.
//! **Requires.** Guesses are made by a rule that sees the output and not the coins. Their number may not be chosen by who is right: so
//!   scores become [`Guesses`] by a rule first, and only then meet the truth. Several rules share the level. With a delta, or a curve, the number may not be
//!   chosen by the output either: it is given beforehand, and another one is refused. Without a delta the theorem holds given the output, for any number.

use whit_core::{Delta, Epsilon, round};

use crate::binomial::{Coin, TAIL_ERROR, falling_tails, upper_tail};
use crate::bound::{EpsilonBound, REACH_FACTOR, REACH_POWER, Reach, quantile};
use crate::fdp_one_run::refuted_by_recursion;
use crate::interval::bisect;
use crate::{Alpha, Error, Result, TRIALS_MAX};

/// One score for each canary, larger where it looks as if it were in.
#[derive(Debug)]
pub struct CanaryScores(Vec<f64>);

/// How many of the highest scores are guessed to be in, and how many of the lowest to be out. The rest is abstained from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuessRule {
    /// So many canaries with the highest scores are said to be in.
    pub highest_in: usize,
    /// So many canaries with the lowest scores are said to be out.
    pub lowest_out: usize,
}

impl CanaryScores {
    /// Scores in the order of the canaries. A score that is no number is the lowest.
    pub fn new(scores: Vec<f64>) -> Self {
        Self(scores)
    }

    /// Guesses by one rule, which was fixed before.
    pub fn guess(self, rule: GuessRule) -> Result<Guesses> {
        self.guess_each(&[rule])
    }

    /// Guesses by each of several rules, which then share the level.
    pub fn guess_each(self, rules: &[GuessRule]) -> Result<Guesses> {
        if rules.is_empty() {
            return Err(Error::NoEvents);
        }
        let canaries = self.0.len();
        let mut order: Vec<usize> = (0..canaries).collect();
        let key = |at: usize| {
            let score = self.0[at];
            if score.is_nan() {
                f64::NEG_INFINITY
            } else {
                score
            }
        };
        order.sort_by(|a, b| key(*b).total_cmp(&key(*a)));
        let sheet = |rule: &GuessRule| {
            let guesses = rule.highest_in.saturating_add(rule.lowest_out);
            if guesses > canaries {
                return Err(Error::OutOfDomain {
                    what: "number of guesses",
                    given: guesses as f64,
                    domain: "at most the number of canaries",
                });
            }
            let mut sheet = vec![None; canaries];
            for at in &order[..rule.highest_in] {
                sheet[*at] = Some(true);
            }
            for at in &order[canaries - rule.lowest_out..] {
                sheet[*at] = Some(false);
            }
            Ok(sheet)
        };
        let sheets = rules.iter().map(sheet).collect::<Result<_>>()?;
        Ok(Guesses {
            sheets,
            number_is_fixed: true,
        })
    }
}

/// Guesses that have not met the truth.
#[derive(Debug)]
pub struct Guesses {
    sheets: Vec<Vec<Option<bool>>>,
    number_is_fixed: bool,
}

impl Guesses {
    /// So many guesses, a number that was fixed before the output was seen, by a rule of somebody else's: one for each canary, `None` to abstain. Refused if there are more or
    /// fewer of them.
    pub fn of_fixed_number(fixed: usize, guesses: Vec<Option<bool>>) -> Result<Self> {
        let made = guesses.iter().flatten().count();
        if made != fixed {
            return Err(Error::OtherNumberOfGuesses { made, fixed });
        }
        Ok(Self {
            sheets: vec![guesses],
            number_is_fixed: true,
        })
    }

    /// As many guesses as the output suggested. Only bounds without a delta follow from them: others are refused.
    pub fn of_any_number(guesses: Vec<Option<bool>>) -> Self {
        Self {
            sheets: vec![guesses],
            number_is_fixed: false,
        }
    }

    /// Counts which of them are right.
    pub fn reveal(self, is_in: &[bool]) -> Result<OneRun> {
        let mut tallies = Vec::with_capacity(self.sheets.len());
        for sheet in &self.sheets {
            if sheet.len() != is_in.len() {
                return Err(Error::CellsDiffer {
                    observed: sheet.len(),
                    expected: is_in.len(),
                });
            }
            let guesses = sheet.iter().flatten().count() as u64;
            let right = sheet
                .iter()
                .zip(is_in)
                .filter(|(guess, truth)| **guess == Some(**truth))
                .count() as u64;
            tallies.push((guesses, right));
        }
        let run = OneRun::of(is_in.len() as u64, tallies)?;
        Ok(OneRun {
            number_is_fixed: self.number_is_fixed,
            ..run
        })
    }
}

/// How many guesses were right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneRun {
    canaries: u64,
    /// Guesses, and how many of them are right, for each rule.
    tallies: Vec<(u64, u64)>,
    /// Was it known before the output how many guesses there would be?
    number_is_fixed: bool,
}

impl OneRun {
    /// Counts that were made elsewhere, by as many guesses as were fixed before the output was seen, which were made before the truth was known.
    pub fn of_fixed_guesses(canaries: u64, guesses: u64, right: u64) -> Result<Self> {
        Self::of(canaries, vec![(guesses, right)])
    }

    fn of(canaries: u64, tallies: Vec<(u64, u64)>) -> Result<Self> {
        if canaries > TRIALS_MAX {
            return Err(Error::TooManyTrials {
                trials: canaries,
                trials_max: TRIALS_MAX,
            });
        }
        for (guesses, right) in &tallies {
            for (successes, trials) in [(*right, *guesses), (*guesses, canaries)] {
                if successes > trials {
                    return Err(Error::TooManySuccesses { successes, trials });
                }
            }
        }
        Ok(Self {
            canaries,
            tallies,
            number_is_fixed: true,
        })
    }

    /// Refuses what was not fixed beforehand.
    pub(crate) fn check_fixed(&self) -> Result<()> {
        match self.number_is_fixed {
            true => Ok(()),
            false => Err(Error::GuessesNotFixed),
        }
    }

    /// Canaries.
    pub fn canaries(&self) -> u64 {
        self.canaries
    }

    /// Guesses and right guesses, for each rule.
    pub fn tallies(&self) -> &[(u64, u64)] {
        &self.tallies
    }

    /// The largest `ε` that the guesses refute at `delta`, which is refused above zero if the number of guesses was not fixed.
    pub fn epsilon_lower(&self, delta: Delta, alpha: Alpha) -> Result<EpsilonBound> {
        if delta != Delta::ZERO {
            self.check_fixed()?;
        }
        let share = alpha.split(self.tallies.len())?;
        let mut best = (0.0, self.tallies[0]);
        for (guesses, right) in &self.tallies {
            let epsilon = refuted(self.canaries, *guesses, *right, delta, share);
            if epsilon > best.0 {
                best = (epsilon, (*guesses, *right));
            }
        }
        let (epsilon_lower, (guesses, right)) = best;
        let canaries = self.canaries;
        let evidence = format!("{right} of {guesses} guesses right about {canaries} canaries");
        let reach = OneRunReach {
            canaries,
            guesses,
            delta,
            share,
            by_recursion: false,
        };
        Ok(EpsilonBound::new(
            epsilon_lower,
            delta,
            alpha,
            evidence,
            vec![Reach::OneRun(reach)],
        ))
    }
}

/// What one run could have shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OneRunReach {
    canaries: u64,
    guesses: u64,
    delta: Delta,
    share: Alpha,
    /// By the recursion of `fdp_one_run.rs`, which shows less than the plain bound at some deltas and more at others.
    by_recursion: bool,
}

impl OneRunReach {
    pub(crate) fn by_recursion(self) -> Self {
        Self {
            by_recursion: true,
            ..self
        }
    }

    /// Randomized response on each canary that loses the factor times the claim, guessed as well as can be.
    pub(crate) fn would_convict(&self, claimed: Epsilon) -> bool {
        let coin = fair_guess(REACH_FACTOR * claimed.value());
        let right = quantile(self.guesses, coin, REACH_POWER);
        if self.by_recursion {
            return refuted_by_recursion(
                (self.canaries, self.guesses, right),
                claimed.value(),
                self.delta,
                self.share,
            );
        }
        refuted(self.canaries, self.guesses, right, self.delta, self.share) > claimed.value()
    }
}

/// Right with probability `e^ε/(1+e^ε)`.
fn fair_guess(epsilon: f64) -> Coin {
    Coin::with_tails(1.0 / (1.0 + libm::exp(epsilon)))
}

/// The largest refuted `ε`, or zero.
fn refuted(canaries: u64, guesses: u64, right: u64, delta: Delta, alpha: Alpha) -> f64 {
    let slack = round::mul_up(2.0 * canaries as f64, delta.value());
    if right == 0 || slack > 1.0 {
        return 0.0;
    }
    let surprising = |epsilon: f64| p_value_up(guesses, right, epsilon, slack) <= alpha.value();
    if !surprising(0.0) {
        return 0.0;
    }
    // At 700 the rate of wrong guesses is e^-700, and no number of right ones is a surprise.
    bisect(0.0, 700.0, surprising).0
}

/// At least the probability of so many right guesses, under `(ε, slack/2m)`-DP.
fn p_value_up(guesses: u64, right: u64, epsilon: f64, slack: f64) -> f64 {
    // The coin's sides err by a few units in the last place, which the tail's error covers for less than 2^32 guesses:
    // it moves a tail by at most its relative error times the number of guesses within reach, below 1e-10.
    let coin = fair_guess(epsilon);
    let beta = upper_tail(right, guesses, coin) * (1.0 + TAIL_ERROR);
    if slack == 0.0 {
        return beta;
    }
    // Tails grow as v - i falls, until they are one; from there on the quotient can only fall.
    let mut steepest: f64 = 0.0;
    // At most `right` rounds of a few operations each, and about as many as the tail needs to reach one.
    for (i, tail) in (1..=right).zip(falling_tails(right - 1, guesses, coin)) {
        let tail = (tail * (1.0 + TAIL_ERROR)).min(1.0);
        steepest = steepest.max((tail - beta * (1.0 - 2.0 * TAIL_ERROR)) / i as f64);
        if tail >= 1.0 - TAIL_ERROR {
            break;
        }
    }
    round::add_up(beta, round::mul_up(slack, steepest * (1.0 + TAIL_ERROR)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{assert_false_alarms, coin, normal};
    use crate::{Claim, Ruling, binomial::tests::exact_tail};

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    fn delta(value: f64) -> Delta {
        Delta::new(value).expect("in range")
    }

    /// The published formula on exact rational tails, with no shortcut.
    fn p_value_by_hand(m: u64, r: u64, v: u64, epsilon: f64, delta: f64) -> f64 {
        let q = epsilon.exp() / (1.0 + epsilon.exp());
        let beta = exact_tail(v, r, q);
        let steepest = (1..=m)
            .map(|i| (exact_tail(v.saturating_sub(i), r, q) - beta) / i as f64)
            .fold(0.0, f64::max);
        beta + 2.0 * m as f64 * delta * steepest
    }

    #[test]
    fn p_value_agrees_with_the_formula_on_exact_tails() {
        for (m, r, v) in [(10, 6, 5), (40, 20, 17), (60, 60, 45), (12, 12, 12)] {
            for epsilon in [0.0, 0.5, 1.7] {
                for d in [0.0, 1e-5, 1e-3] {
                    let slack = 2.0 * m as f64 * d;
                    let expected = p_value_by_hand(m, r, v, epsilon, d);
                    let p = p_value_up(r, v, epsilon, slack);
                    assert!(
                        p >= expected * (1.0 - 1e-13) && p < expected * (1.0 + 1e-7),
                        "{m} {r} {v} {epsilon} {d}: {expected} {p}"
                    );
                }
            }
        }
    }

    /// The same with each tail summed on its own, which takes as long as there are guesses for each of them.
    fn p_value_by_single_tails(guesses: u64, right: u64, epsilon: f64, slack: f64) -> f64 {
        let coin = fair_guess(epsilon);
        let beta = upper_tail(right, guesses, coin) * (1.0 + TAIL_ERROR);
        let steepest = (1..=right).map(|i| {
            let tail = (upper_tail(right - i, guesses, coin) * (1.0 + TAIL_ERROR)).min(1.0);
            (tail - beta * (1.0 - 2.0 * TAIL_ERROR)) / i as f64
        });
        let steepest = steepest.fold(0.0, f64::max);
        round::add_up(beta, round::mul_up(slack, steepest * (1.0 + TAIL_ERROR)))
    }

    /// The quick form is as far up as the slow one, from a surprise that no float holds to none at all.
    #[test]
    fn p_value_agrees_with_tails_that_are_summed_on_their_own() {
        for (guesses, right) in [
            (1, 1),
            (30, 17),
            (1000, 1000),
            (2000, 1100),
            (20_000, 10_500),
        ] {
            for epsilon in [0.0, 0.1, 1.0, 5.0] {
                for slack in [1e-6, 0.3, 1.0] {
                    let slow = p_value_by_single_tails(guesses, right, epsilon, slack);
                    let quick = p_value_up(guesses, right, epsilon, slack);
                    assert!(
                        quick >= slow * (1.0 - 1e-11) && quick <= slow * (1.0 + 1e-9),
                        "{right} of {guesses} at {epsilon}, {slack}: {slow:e} {quick:e}"
                    );
                }
            }
        }
    }

    /// A million guesses, of which the slow form would sum a thousand million terms for each of fifty epsilons.
    #[test]
    fn a_million_guesses_are_few() {
        let run = OneRun::of_fixed_guesses(1 << 20, 1_000_000, 740_000).expect("valid");
        let bound = run.epsilon_lower(delta(1e-8), alpha(0.05)).expect("valid");
        // ln(0.74/0.26) = 1.046, less what chance leaves.
        assert!((1.03..1.046).contains(&bound.epsilon_lower()), "{bound:?}");
    }

    /// Brute force over every way in which a mechanism may be worst: among distributions of the number of right guesses that
    /// approximate DP allows, the theorem names the worst tail. Here m = 2 and all `(ε, 0)`-DP mechanisms that answer with a guess of
    /// both coins: their chance of two right guesses is largest, `q²`, for independent randomized responses.
    #[test]
    fn no_mechanism_on_two_canaries_beats_the_bound() {
        // A mechanism is a table of Pr[guess | coins]; the chance of both right is the mean of its diagonal. Walk over a grid of
        // tables that are constant on the distance between coins and guess, which loses nothing by symmetry.
        let epsilon = 0.9_f64;
        let q = epsilon.exp() / (1.0 + epsilon.exp());
        let mut best: f64 = 0.0;
        let steps = 400;
        for a in 0..=steps {
            for b in 0..=steps {
                // p0: both right, p1: each of the two ways with one right, p2: none right.
                let p0 = f64::from(a) / f64::from(steps);
                let p1 = f64::from(b) / f64::from(steps) * (1.0 - p0) / 2.0;
                let p2 = 1.0 - p0 - 2.0 * p1;
                let close = |x: f64, y: f64| {
                    x <= epsilon.exp() * y + 1e-12 && y <= epsilon.exp() * x + 1e-12
                };
                if close(p0, p1) && close(p1, p2) {
                    best = best.max(p0);
                }
            }
        }
        assert!(
            best <= q * q + 1e-9 && best > q * q - 0.01,
            "{best} {}",
            q * q
        );
        assert!((p_value_up(2, 2, epsilon, 0.0) - q * q).abs() < 1e-8);
    }

    #[test]
    fn published_example_is_reproduced() {
        // [SNJ23, section 5]: with delta 0 and all of m guesses right, e^ε/(1+e^ε) = alpha^(1/m).
        let bound = OneRun::of_fixed_guesses(100, 100, 100)
            .and_then(|run| run.epsilon_lower(Delta::ZERO, alpha(0.05)))
            .expect("valid");
        let q = 0.05_f64.powf(0.01);
        assert!((bound.epsilon_lower() - (q / (1.0 - q)).ln()).abs() < 1e-6);
        assert_eq!(
            bound.evidence(),
            "100 of 100 guesses right about 100 canaries"
        );
    }

    #[test]
    fn delta_only_lowers_the_bound() {
        let run = OneRun::of_fixed_guesses(1000, 200, 180).expect("valid");
        let at = |d: f64| {
            run.epsilon_lower(delta(d), alpha(0.05))
                .expect("valid")
                .epsilon_lower()
        };
        let bounds: Vec<f64> = [0.0, 1e-9, 1e-6, 1e-5, 1e-4, 4e-4].map(at).into();
        assert!(bounds.is_sorted_by(|a, b| a >= b), "{bounds:?}");
        assert!(bounds[0] > 1.6 && bounds[2] > 1.5, "{bounds:?}");
        assert_eq!(at(1e-3), 0.0, "2mδ above one concludes nothing");
    }

    /// Independent randomized responses: the tight case. Guesses are a fixed number of the surest.
    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        for true_epsilon in [0.0, 1.0, 4.0] {
            let truth = 1.0 / (1.0 + f64::exp(-true_epsilon));
            assert_false_alarms(0.05, |seed| {
                let (mut member, mut honest) = (coin(2 * seed, 0.5), coin(2 * seed + 1, truth));
                let is_in: Vec<bool> = (0..200).map(|_| member()).collect();
                let guesses = is_in.iter().map(|truth| Some(*truth == honest())).collect();
                Guesses::of_fixed_number(200, guesses)
                    .and_then(|guesses| guesses.reveal(&is_in))
                    .and_then(|run| run.epsilon_lower(delta(1e-6), alpha(0.05)))
                    .expect("valid")
                    .epsilon_lower()
                    > true_epsilon
            });
        }
    }

    fn gaussian_run(mu: f64, canaries: usize, rules: &[GuessRule], seed: u64) -> EpsilonBound {
        let (mut member, mut noise) = (coin(2 * seed, 0.5), normal(2 * seed + 1));
        let is_in: Vec<bool> = (0..canaries).map(|_| member()).collect();
        let scores = is_in
            .iter()
            .map(|present| if *present { mu } else { 0.0 } + noise())
            .collect();
        CanaryScores::new(scores)
            .guess_each(rules)
            .and_then(|guesses| guesses.reveal(&is_in))
            .and_then(|run| run.epsilon_lower(delta(1e-5), alpha(0.05)))
            .expect("valid")
    }

    /// Gaussian scores: epsilon of mu = 1 at delta 1e-5 is 4.377 (closed form of the Gaussian mechanism).
    #[test]
    fn gaussian_canaries_are_found_and_not_exaggerated() {
        let rules = [10, 50, 200].map(|count| GuessRule {
            highest_in: count,
            lowest_out: count,
        });
        assert_false_alarms(0.05, |seed| {
            gaussian_run(1.0, 1000, &rules, seed).epsilon_lower() > 4.377
        });
        let bound = gaussian_run(1.0, 5000, &rules[2..], 3);
        assert!(bound.epsilon_lower() > 1.0, "{bound:?}");
        let claimed = Claim::pure(Epsilon::new(0.5).expect("positive"));
        assert_eq!(bound.ruling(claimed), Ruling::Violated);
    }

    #[test]
    fn few_guesses_are_inconclusive() {
        let bound = |guesses, right| {
            OneRun::of_fixed_guesses(100, guesses, right)
                .and_then(|run| run.epsilon_lower(Delta::ZERO, alpha(0.05)))
                .expect("valid")
        };
        let claimed = Claim::pure(Epsilon::new(1.0).expect("positive"));
        assert_eq!(bound(3, 2).ruling(claimed), Ruling::Inconclusive);
        assert_eq!(bound(100, 50).ruling(claimed), Ruling::Consistent);
        assert_eq!(bound(0, 0).epsilon_lower(), 0.0);
    }

    /// Who guesses only where the output looks certain has a number of guesses that depends on it.
    #[test]
    fn a_number_of_guesses_that_the_output_chose_gives_no_bound_with_a_delta() {
        let sheet = || vec![Some(true), None, Some(false)];
        let truth = [true, true, false];
        let error = Guesses::of_fixed_number(3, sheet()).expect_err("two are made");
        assert_eq!(error, Error::OtherNumberOfGuesses { made: 2, fixed: 3 });
        let run = Guesses::of_any_number(sheet())
            .reveal(&truth)
            .expect("as many");
        let level = alpha(0.3);
        assert!(run.epsilon_lower(Delta::ZERO, level).is_ok());
        let refused = Err(Error::GuessesNotFixed);
        assert_eq!(run.epsilon_lower(delta(1e-9), level), refused);
        assert_eq!(run.epsilon_lower_by_recursion(Delta::ZERO, level), refused);
        assert_eq!(
            run.refutes_blow_up(level, |_| 0.0),
            Err(Error::GuessesNotFixed)
        );
        assert_eq!(run.mu_lower(level).err(), Some(Error::GuessesNotFixed));
        let fixed = Guesses::of_fixed_number(2, sheet()).and_then(|guesses| guesses.reveal(&truth));
        assert!(
            fixed
                .expect("two are made")
                .epsilon_lower(delta(1e-9), level)
                .is_ok()
        );
    }

    #[test]
    fn rejects_counts_that_are_none() {
        assert!(OneRun::of_fixed_guesses(10, 11, 3).is_err());
        assert!(OneRun::of_fixed_guesses(10, 9, 10).is_err());
        assert!(Guesses::of_any_number(vec![None]).reveal(&[]).is_err());
        let scores = || CanaryScores::new(vec![0.5, f64::NAN]);
        let rule = |highest_in, lowest_out| GuessRule {
            highest_in,
            lowest_out,
        };
        assert!(scores().guess(rule(2, 1)).is_err() && scores().guess_each(&[]).is_err());
        let run = scores()
            .guess(rule(1, 1))
            .and_then(|guesses| guesses.reveal(&[true, false]));
        assert_eq!(run, OneRun::of_fixed_guesses(2, 2, 2));
    }
}
