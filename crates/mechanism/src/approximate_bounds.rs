//! # Approximate bounds
//! **Definition.** A range `[lower, upper]` for values of which no range is known. Values are counted in `2B` bins that grow like
//!   powers: `[0, s]`, `(s, sb]`, …, `(sb^(B-2), sb^(B-1)]` and the mirror images `[-s, 0)`, `[-sb, -s)`, …; zero, of either sign,
//!   is in `[0, s]`. Values beyond the last edge count in the last bin; what is no number is in none. Each count gets discrete
//!   Laplace noise of scale `a`. Bins whose noisy count is *above* a threshold `t` are believed not to be empty; the range goes
//!   from the lower end of the first of them to the upper end of the last. If there is none, the accepted probability of failure
//!   is multiplied by ten, up to a limit, with the same noisy counts; if there is still none, that is the answer. \[Wil20\]
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with. Scale, base and number of bins are public.
//! **Guarantee.** `ε`-DP with `ε = Δ/a`, where one unit has at most `k` rows: `Δ = k` for add/remove, `2k` for replace-one.
//! **Proof.** The counts are a histogram, and `Δ` is its L1 sensitivity as in [`Histogram`](crate::Histogram). The thresholds are
//!   functions of public numbers and all comparisons are made on the noisy counts: post-processing, however often it is tried.
//!   Edges are `s` times powers of two, hence exact floats, and comparing floats does not round.
//! **Sampler.** That of [`DiscreteLaplace`], exact.
//! **Error.** With probability at least `c` no empty bin passes, where `t` is the smallest integer, zero or more, with
//!   `(1 - Pr[Z > t])^(2B) >= c` and `Pr[Z > t] = exp(-(t+1)/a)/(1 + exp(-1/a))`. For continuous noise this is
//!   `t = -a ln(2 - 2c^(1/(2B)))`; [`Threshold`] has it too, and the older form with `2B - 1`.
//!
//! The example of the seed, with the threshold of the documentation it was taken from:
//!
//! ```
//! use whit_core::{AddRemove, Confidence, Ratio, Scale};
//! use whit_mechanism::{LogBins, Threshold};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (noise, success) = (Scale::new(Ratio::one())?, Confidence::new(0.9)?);
//! let older = Threshold::LaplaceOneBinLess.value(8, &noise, success);
//! let current = Threshold::Laplace.value(8, &noise, success);
//! assert_eq!((format!("{older:.4}"), format!("{current:.4}")), ("3.5106".into(), "3.6432".into()));
//! // [0,1] has five values, (1,2] none, (2,4] one and (4,8] four. Before noise, the first and the last pass.
//! let bins = LogBins::new(1.0, 4)?;
//! let counts = bins.count([0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 7.0, 8.0, 8.0, 8.0]);
//! assert_eq!(counts, [0, 0, 0, 0, 5, 0, 1, 4]);
//! assert_eq!(bins.range_above(&counts, current.floor() as i128), Some((0.0, 8.0)));
//! # Ok(())
//! # }
//! ```

use whit_core::{Confidence, Entropy, Event, L1, Ratio, Relation, Scale, Secret, Sensitivity};

use crate::{Bounds, Contribution, DiscreteLaplace, LogBins, Release, Result, Success, Threshold};

/// The search for a range.
#[derive(Clone, Debug)]
pub struct ApproximateBounds<R: Relation> {
    bins: LogBins,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

impl<R: Relation> ApproximateBounds<R> {
    /// A search in these bins, over rows that were bounded so.
    pub fn new(bins: LogBins, contribution: Contribution) -> Self {
        Self {
            bins,
            contribution,
            relation: std::marker::PhantomData,
        }
    }

    /// The most that one unit changes all bins together.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        let sides = Ratio::from(R::pick(1_u64, 2));
        Sensitivity::new(&Ratio::from(u64::from(self.contribution.rows_max())) * &sides)
    }

    /// Counts, in secret.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> Secret<Vec<i64>> {
        Secret::new(self.bins.count(rows))
    }

    /// Prepares the noise and the thresholds. No data is needed, so the event can be paid for first.
    pub fn with_noise(
        &self,
        noise: Scale,
        threshold: Threshold,
        success: Success,
    ) -> NoisyApproximateBounds<R> {
        let bins = self.bins.total();
        let thresholds = success
            .steps()
            .map(|success| (success, threshold.integer(bins, &noise, success)))
            .collect();
        NoisyApproximateBounds {
            bins: self.bins.clone(),
            thresholds,
            mechanism: DiscreteLaplace::new(noise, self.sensitivity_l1()),
        }
    }
}

/// A range that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundRange {
    /// The lower end of the first bin that passed.
    pub lower: f64,
    /// The upper end of the last bin that passed.
    pub upper: f64,
    /// No empty bin passes with at least this probability (up to the difference between discrete and continuous noise, for the
    /// thresholds that are made for the latter),
    pub success: Confidence,
    /// since this was the threshold.
    pub threshold: i128,
}

impl FoundRange {
    /// The range as bounds for another statistic.
    pub fn bounds(&self) -> Result<Bounds> {
        Bounds::new(self.lower, self.upper)
    }
}

/// A search with its noise, ready to release as often as its event is paid for.
pub struct NoisyApproximateBounds<R: Relation> {
    bins: LogBins,
    /// Falling, with the probability that each of them stands for.
    thresholds: Vec<(Confidence, i128)>,
    mechanism: DiscreteLaplace<R>,
}

impl<R: Relation> NoisyApproximateBounds<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.mechanism.event_of(self.bins.total())
    }

    /// Spends one `event`. Nothing is found if no bin passes the lowest threshold; this too is an answer, and private. Bins that
    /// are missing count as empty, further ones are dropped.
    pub fn release(
        &self,
        counts: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Option<FoundRange>>> {
        let total = self.bins.total() as usize;
        let counts = counts.map(|mut counts| {
            counts.resize(total, 0);
            counts
        });
        let noisy = self.mechanism.release_vector(counts, entropy)?;
        Ok(noisy.map(|counts| {
            self.thresholds.iter().find_map(|&(success, threshold)| {
                let (lower, upper) = self.bins.range_above(&counts, threshold)?;
                Some(FoundRange {
                    lower,
                    upper,
                    success,
                    threshold,
                })
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{TapeEntropy, confidence, judge, scale, seed};
    use whit_audit::{clopper_pearson_lower, clopper_pearson_upper, enumerate};
    use whit_core::{AddRemove, Mechanism, ReplaceOne};
    use whit_testkit::{FailingEntropy, NeighbourPair, Seeded, SeededBits};

    const SEED_ROWS: [f64; 10] = [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 7.0, 8.0, 8.0, 8.0];

    fn search<R: Relation>(bins: u32, rows_max: u32) -> ApproximateBounds<R> {
        let bins = LogBins::new(1.0, bins).expect("some bins");
        ApproximateBounds::new(bins, Contribution::RowsPerUnit(rows_max))
    }

    #[test]
    fn closed_form() {
        let bound = |s: Sensitivity<L1, _>| s.bound().clone();
        assert_eq!(
            bound(search::<AddRemove>(4, 3).sensitivity_l1()),
            Ratio::from(3_u64)
        );
        let replaced = search::<ReplaceOne>(4, 3).sensitivity_l1();
        assert_eq!(replaced.bound(), &Ratio::from(6_u64));
        let noisy = search::<AddRemove>(4, 1).with_noise(
            scale(1, 1),
            Threshold::Discrete,
            Success::exactly(confidence(0.9)),
        );
        let event = noisy.event();
        assert!(
            matches!(event.mechanism(), Mechanism::DiscreteLaplace { coordinates: 8, sensitivity_l1, .. } if *sensitivity_l1 == Ratio::one())
        );
    }

    #[test]
    fn the_seeds_example() {
        let bins = LogBins::new(1.0, 4).expect("bins");
        let counts = bins.count(SEED_ROWS);
        assert_eq!(counts, [0, 0, 0, 0, 5, 0, 1, 4]);
        for form in [Threshold::Laplace, Threshold::LaplaceOneBinLess] {
            let t = form.integer(8, &scale(1, 1), confidence(0.9));
            assert_eq!((t, bins.range_above(&counts, t)), (3, Some((0.0, 8.0))));
        }
        // What discrete noise needs is one more.
        let t = Threshold::Discrete.integer(8, &scale(1, 1), confidence(0.9));
        assert_eq!((t, bins.range_above(&counts, t)), (4, Some((0.0, 1.0))));
        // Mirrored: zeros stay in the positive bin.
        let counts = bins.count(SEED_ROWS.map(|x| -x));
        assert_eq!(counts, [4, 1, 0, 1, 4, 0, 0, 0]);
        assert_eq!(bins.range_above(&counts, 3), Some((-8.0, 1.0)));
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        fn check<R: Relation>(pair: impl Fn(&mut SeededBits) -> NeighbourPair) {
            let mut bits = SeededBits::new(seed(501));
            let search = search::<R>(20, 1);
            for _ in 0..200 {
                let NeighbourPair { one, other } = pair(&mut bits);
                let (a, b) = (
                    search.aggregate(one).expose(),
                    search.aggregate(other).expose(),
                );
                let distance = a.iter().zip(&b).map(|(a, b)| a.abs_diff(*b)).sum::<u64>();
                assert!(Ratio::from(distance) <= *search.sensitivity_l1().bound());
            }
        }
        check::<AddRemove>(NeighbourPair::add_remove);
        check::<ReplaceOne>(NeighbourPair::replace_one);
    }

    #[test]
    fn less_sure_until_something_is_found_or_the_limit_is_reached() {
        let release = |rows: &[f64], least: f64| {
            let success = Success::exactly(confidence(1.0 - 1e-9)).relaxed_to(confidence(least));
            let search = search::<AddRemove>(8, 1);
            let noisy = search.with_noise(scale(1, 1000), Threshold::Discrete, success);
            let rows = search.aggregate(rows.iter().copied());
            noisy
                .release(rows, &mut Seeded::new(1))
                .expect("entropy")
                .into_value()
        };
        // Noise this small is zero: one value is above the threshold of zero, none is not.
        assert_eq!(release(&[], 0.5), None);
        assert_eq!(release(&[f64::NAN], 0.5), None);
        let found = release(&[3.0], 0.5).expect("a value");
        assert_eq!((found.lower, found.upper, found.threshold), (2.0, 4.0, 0));
        let search = search::<AddRemove>(8, 1);
        let release = |least: f64| {
            let success = Success::exactly(confidence(1.0 - 1e-12)).relaxed_to(confidence(least));
            let noisy = search.with_noise(scale(1, 1), Threshold::Discrete, success);
            let rows = search.aggregate([100.0; 12]);
            noisy
                .release(rows, &mut Seeded::new(2))
                .expect("entropy")
                .into_value()
        };
        assert_eq!(release(1.0 - 1e-12), None);
        let found = release(0.5).expect("twelve are enough in the end");
        assert_eq!((found.lower, found.upper), (64.0, 128.0));
        assert!(found.success.value() < 1.0 - 1e-9 && found.bounds().is_ok());
        let noisy = search.with_noise(
            scale(1, 1),
            Threshold::Discrete,
            Success::exactly(confidence(0.9)),
        );
        assert!(
            noisy
                .release(Secret::new(vec![]), &mut FailingEntropy)
                .is_err()
        );
    }

    /// How often something is found in no data; at most `1 - c`. A twin that asks for `>=` is the same with a threshold one less.
    #[test]
    fn empty_bins_pass_as_rarely_as_promised() {
        let rate = |less: i128| {
            let search = search::<AddRemove>(4, 1);
            let success = Success::exactly(confidence(0.9));
            let mut noisy = search.with_noise(scale(1, 1), Threshold::Discrete, success);
            noisy.thresholds[0].1 -= less;
            let mut entropy = Seeded::new(seed(502));
            let found = (0..20_000)
                .filter(|_| {
                    let empty = search.aggregate([]);
                    noisy
                        .release(empty, &mut entropy)
                        .expect("entropy")
                        .value()
                        .is_some()
                })
                .count() as u64;
            let alpha = whit_audit::Alpha::new(1e-6).expect("a level");
            (
                clopper_pearson_lower(found, 20_000, alpha).expect("trials"),
                clopper_pearson_upper(found, 20_000, alpha).expect("trials"),
            )
        };
        // 1 - (1 - e^-5/(1+1/e))^8 = 0.0387 and 1 - (1 - e^-4/(1+1/e))^8 = 0.1022.
        let (low, high) = rate(0);
        assert!(low < 0.0387 && 0.0387 < high && high < 0.1, "{low} {high}");
        let (low, high) = rate(1);
        assert!(low < 0.1022 && 0.1022 < high, "{low} {high}");
        let exact = |t: f64| 1.0 - (1.0 - (-t).exp() / (1.0 + (-1_f64).exp())).powi(8);
        assert!(
            exact(5.0) < 0.1 && exact(4.0) > 0.1,
            "the twin breaks its promise"
        );
    }

    /// A row that changes its sign: one bin loses it, another gains it. Threshold zero: the first passes and the other does not.
    fn seen(noise: (u128, u128)) -> whit_audit::Verdict {
        let search = search::<ReplaceOne>(1, 1);
        let success = Success::exactly(confidence(1e-3));
        let noisy = search.with_noise(scale(noise.0, noise.1), Threshold::Discrete, success);
        let (mut one, mut other) = (Seeded::new(seed(503)), Seeded::new(seed(504)));
        let event = |row: f64, entropy: &mut Seeded| {
            let release = noisy
                .release(search.aggregate([row]), entropy)
                .expect("entropy");
            release
                .value()
                .is_some_and(|range| (range.lower, range.upper) == (0.0, 1.0))
        };
        judge(
            1.0,
            0.0,
            150_000,
            || event(0.5, &mut one),
            || event(-0.5, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((2, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.9,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 5)).convicted, "noise a tenth too small");
        assert!(
            seen((1, 1)).convicted,
            "the sensitivity of add/remove under replace-one"
        );
    }

    /// Every tape of the whole search on both neighbours.
    #[test]
    fn enumeration_of_neighbours() {
        let run = |noise: (u128, u128), rows: &[f64]| {
            let search = search::<AddRemove>(1, 1);
            let success = Success::exactly(confidence(0.5)).relaxed_to(confidence(1e-3));
            let noisy = search.with_noise(scale(noise.0, noise.1), Threshold::Discrete, success);
            enumerate::<1, _>(18, |tape| {
                let rows = search.aggregate(rows.iter().copied());
                let release = noisy
                    .release(rows, &mut TapeEntropy(Some(tape)))
                    .expect("once");
                release
                    .into_value()
                    .map(|range| (range.lower == 0.0, range.upper == 0.0, range.threshold))
            })
        };
        let honest = run((1, 1), &[]).max_log_ratio_lower(&run((1, 1), &[0.5]));
        assert!(honest <= 1.0 && honest > 0.9, "{honest}");
        let twin = run((9, 10), &[]).max_log_ratio_lower(&run((9, 10), &[0.5]));
        assert!(twin > 1.0, "{twin}");
    }
}
