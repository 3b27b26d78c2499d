//! # Exponential mechanism on a line
//! **Definition.** The options are the points `g` of a public grid, `low <= g <= high`, of which there may be `2^62`. The secret score is
//!   linear on pieces, with breaks anywhere: `q(g) = score + slope · (g - start)`. `Pr[g] ∝ exp(ε q(g)/S)`. \[MT07\]
//! **Requires.** For neighbours the differences `q'(g) - q(g)` of all points lie in an interval of length `S`: `2Δ`, or `Δ` if monotone. Breaks
//!   and slopes may differ.
//! **Guarantee.** Range `ε`, as the [exponential mechanism](crate::exponential), which this is.
//! **Sampler.** Exact, and without going through all points: each piece is cut, from its better end on, into a block of `l` points,
//!   another of `l`, one of `2l`, of `4l` and so on, where `l` is about the number of points on which the exponent falls by one. A
//!   block is chosen with weight `length · exp(-ε d/S)`, `d` the distance of its best point from the best of all; in it a point,
//!   uniformly; and the point is kept with probability `exp(-ε d'/S)`, `d'` its distance from the block's best. Else all is drawn again.
//! **Proof.** In one round a point is chosen and kept with probability `∝ exp(-ε (d + d')/S)`, and `d + d'` is its distance from
//!   the best of all. Given that something is kept, that is the law above. With `x` the fall of the exponent on `l` points, either
//!   `1/2 < x <= 1` or `l = 1`, or one block is the whole piece and `x <= 1`. So the first block keeps at least `l/e` of its weight `l`, and those after it
//!   weigh at most `l Σ 2^k exp(-2^k/2) < 2.1 l`: at least one round in nine keeps its point.
//! **Error.** With probability at least `1 - β` less than `(S/ε) ln(n/β)` below the best of the `n` points.

use std::marker::PhantomData;

use dashu_ratio::RBig;
use whit_core::{
    AddRemove, Bits, Confidence, Entropy, Event, Linf, Mechanism, Ratio, Relation, Secret,
    Sensitivity, round,
};

use crate::sample::{ExpCoin, Weight, Weighted, uniform_below};
use crate::score::Scores;
use crate::{Error, Release, Result};

/// From `start` up to where the next piece starts, the score is `score + slope · (g - start)`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The first point. A piece that starts outside of the range is left out, wherever it would end.
    pub start: i64,
    /// The score there.
    pub score: i64,
    /// What each further point adds.
    pub slope: i64,
}

/// Chooses a point of a line with a probability that grows exponentially with its score.
pub struct PiecewiseExponential<R: Relation> {
    epsilon: Ratio,
    rate: Ratio,
    coin: ExpCoin,
    low: i64,
    high: i64,
    relation: PhantomData<fn() -> R>,
}

/// So that no score leaves 128 bits: `2^63 · 2^62 + 2^63 < 2^126`.
const POINTS_MAX: u64 = 1 << 62;

impl<R: Relation> PiecewiseExponential<R> {
    /// For points from `low` to `high`, both included, and scores that move by at most the sensitivity, up or down.
    pub fn new(
        epsilon: Ratio,
        sensitivity: &Sensitivity<Linf, R>,
        low: i64,
        high: i64,
    ) -> Result<Self> {
        Self::with_scores(epsilon, &Scores::new(1, sensitivity)?, low, high)
    }

    fn with_scores(epsilon: Ratio, scores: &Scores<R>, low: i64, high: i64) -> Result<Self> {
        if low > high || high.abs_diff(low) >= POINTS_MAX {
            return Err(Error::CountOutOfRange {
                what: "the number of points",
                given: if low > high { 0 } else { high.abs_diff(low) },
                min: 1,
                max: POINTS_MAX,
            });
        }
        let rate = scores.rate(&epsilon);
        Ok(Self {
            coin: ExpCoin::new(&rate),
            epsilon,
            rate,
            low,
            high,
            relation: PhantomData,
        })
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let mechanism = Mechanism::BoundedRange {
            epsilon: self.epsilon.clone(),
        };
        Event::new(R::NEIGHBOURS, mechanism)
    }

    /// Spends one `event` and tells a point. Pieces may come in any order; of two with the same start the later counts. Before
    /// the first piece the score is zero.
    pub fn release(
        &self,
        pieces: Secret<Vec<Piece>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<i64>> {
        let mut bits = entropy.open()?;
        let (blocks, weights) = self.blocks(pieces);
        let choice = Weighted::new(&self.rate, weights);
        // At least one round in nine ends this.
        loop {
            let block = &blocks[choice.sample(&mut bits)];
            if let Some(point) = self.keep(block, &mut bits) {
                return Ok(Release::new(point, self.event()));
            }
        }
    }

    fn keep<B: Bits>(&self, block: &Block, bits: &mut B) -> Option<i64> {
        let inside = uniform_below(block.length, bits);
        let below = u128::from(inside) * u128::from(block.slope.unsigned_abs());
        // Away from the better end: with the slope's sign turned.
        let steps = (block.skip + inside) as i64;
        let point = block.best + if block.slope > 0 { -steps } else { steps };
        self.coin.heads(below, bits).then_some(point)
    }

    fn blocks(&self, pieces: Secret<Vec<Piece>>) -> (Vec<Block>, Vec<Weight>) {
        let mut pieces = pieces.expose();
        pieces.retain(|piece| (self.low..=self.high).contains(&piece.start));
        pieces.insert(
            0,
            Piece {
                start: self.low,
                score: 0,
                slope: 0,
            },
        );
        pieces.sort_by_key(|piece| piece.start);
        // With the number of points of each, and none of those without.
        let points = |place: usize, piece: &Piece| match pieces.get(place + 1) {
            Some(next) => next.start.abs_diff(piece.start),
            None => self.high.abs_diff(piece.start) + 1,
        };
        let spans: Vec<(Piece, u64)> = pieces
            .iter()
            .enumerate()
            .map(|(place, piece)| (*piece, points(place, piece)))
            .filter(|(_, points)| *points > 0)
            .collect();
        let best_of = |(piece, points): &(Piece, u64)| {
            let climb = i128::from(piece.slope.max(0)) * i128::from(points - 1);
            i128::from(piece.score) + climb
        };
        let best = spans.iter().map(best_of).max().unwrap_or(0);
        let (mut blocks, mut weights) = (Vec::new(), Vec::new());
        for span in &spans {
            let (piece, points) = *span;
            let slope = u128::from(piece.slope.unsigned_abs());
            let distance = best.abs_diff(best_of(span));
            let (mut skip, mut length) = (0, self.first_length(slope, points));
            // The lengths double, so there are at most 64 blocks to a piece.
            while skip < points {
                length = length.min(points - skip);
                blocks.push(Block {
                    best: piece.start
                        + if piece.slope > 0 {
                            (points - 1) as i64
                        } else {
                            0
                        },
                    slope: piece.slope,
                    skip,
                    length,
                });
                weights.push(Weight {
                    multiplicity: length.into(),
                    distance: distance + slope * u128::from(skip),
                });
                skip += length;
                length = skip;
            }
        }
        (blocks, weights)
    }

    /// `floor(1 / (rate · slope))`, from 1 to all points.
    fn first_length(&self, slope: u128, points: u64) -> u64 {
        let fall = self.rate.as_rbig() * RBig::from(slope);
        let Some(length) = Ratio::from_rbig(fall).and_then(|fall| Ratio::one().checked_div(&fall))
        else {
            return points;
        };
        u64::try_from(length.floor()).map_or(points, |length| length.clamp(1, points))
    }

    /// How far below the best the chosen point's score is at most, with the given probability. Rounded up; infinite if epsilon is
    /// zero.
    pub fn error(&self, confidence: Confidence) -> f64 {
        let miss = round::sub_down(1.0, confidence.value());
        let points = Ratio::from(self.high.abs_diff(self.low) + 1).to_f64_up();
        let exponent = round::ln_up(round::div_up(points, miss));
        round::div_up(exponent, self.rate.to_f64_down())
    }
}

impl PiecewiseExponential<AddRemove> {
    /// For scores that all move the same way when a row is added.
    pub fn monotone(
        epsilon: Ratio,
        sensitivity: &Sensitivity<Linf, AddRemove>,
        low: i64,
        high: i64,
    ) -> Result<Self> {
        Self::with_scores(epsilon, &Scores::monotone(1, sensitivity)?, low, high)
    }
}

/// `length` points of a piece, `skip` points away from its better end.
struct Block {
    best: i64,
    slope: i64,
    skip: u64,
    length: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, TapeEntropy, confidence, judge, seed};
    use crate::score::tests::ratio;
    use whit_audit::{enumerate, g_test};
    use whit_core::ReplaceOne;
    use whit_testkit::{FailingEntropy, Seeded};

    fn piece(start: i64, score: i64, slope: i64) -> Piece {
        Piece {
            start,
            score,
            slope,
        }
    }

    fn on(
        low: i64,
        high: i64,
        epsilon: Ratio,
        sensitivity: u64,
    ) -> PiecewiseExponential<ReplaceOne> {
        let sensitivity = Sensitivity::new(Ratio::from(sensitivity));
        PiecewiseExponential::new(epsilon, &sensitivity, low, high).expect("a range")
    }

    fn point(
        mechanism: &PiecewiseExponential<ReplaceOne>,
        pieces: &[Piece],
        entropy: &mut impl Entropy,
    ) -> i64 {
        *mechanism
            .release(Secret::new(pieces.to_vec()), entropy)
            .expect("entropy")
            .value()
    }

    /// Point by point, as the definition says.
    fn probabilities(mechanism: &PiecewiseExponential<ReplaceOne>, pieces: &[Piece]) -> Vec<f64> {
        let rate = mechanism.rate.to_f64_up();
        let score = |g: i64| {
            let piece = pieces.iter().rfind(|piece| piece.start <= g);
            piece.map_or(0, |piece| piece.score + piece.slope * (g - piece.start))
        };
        let scores: Vec<i64> = (mechanism.low..=mechanism.high).map(score).collect();
        let best = scores.iter().max().expect("a point");
        let w: Vec<f64> = scores
            .iter()
            .map(|q| (rate * (q - best) as f64).exp())
            .collect();
        let total: f64 = w.iter().sum();
        w.iter().map(|w| w / total).collect()
    }

    fn examples() -> Vec<(PiecewiseExponential<ReplaceOne>, Vec<Piece>)> {
        vec![
            (
                on(0, 5, ratio(1, 1), 1),
                vec![piece(0, 0, 1), piece(3, 5, -2)],
            ),
            (
                on(-3, 4, ratio(1, 1), 1),
                vec![piece(-1, 2, 0), piece(1, 2, -1)],
            ),
            (on(0, 6, ratio(1, 2), 1), vec![piece(0, 0, 0)]),
            (on(0, 7, ratio(8, 1), 1), vec![piece(0, 9, -1)]),
            (
                on(0, 7, Ratio::zero(), 1),
                vec![piece(0, 9, -1), piece(4, 0, 1000)],
            ),
        ]
    }

    /// Every tape of the whole mechanism against the definition.
    #[test]
    fn enumeration() {
        for (mechanism, pieces) in examples() {
            let found = enumerate::<1, _>(18, |tape| {
                point(&mechanism, &pieces, &mut TapeEntropy(Some(tape)))
            });
            let (unit, p) = (2_f64.powi(-18), probabilities(&mechanism, &pieces));
            let open = found.unresolved() as f64 * unit;
            assert!(open < 0.3, "{open} is unresolved");
            for (p, g) in p.iter().zip(mechanism.low..) {
                let mass = found.mass(&g) as f64 * unit;
                assert!(
                    mass <= p + 1e-12 && *p <= mass + open + 1e-12,
                    "{g}: {mass} {p} {open}"
                );
            }
        }
    }

    #[test]
    fn distribution() {
        let mut many = examples();
        many.push((
            on(-500, 499, ratio(1, 1), 50),
            vec![
                piece(-500, -800, 3),
                piece(-100, 400, -1),
                piece(200, 100, 2),
                piece(201, 0, 0),
            ],
        ));
        many.push((
            on(0, 999, ratio(3, 1), 10),
            vec![piece(0, 0, 1), piece(500, 500, -7)],
        ));
        for (mechanism, pieces) in many {
            let mut entropy = Seeded::new(seed(371));
            let p = probabilities(&mechanism, &pieces);
            let mut seen = vec![0; p.len()];
            for _ in 0..200_000 {
                seen[(point(&mechanism, &pieces, &mut entropy) - mechanism.low) as usize] += 1;
            }
            let fit = g_test(&seen, &p).expect("probabilities").p_value;
            assert!(fit >= doubt::ALPHA, "p = {fit:e}");
        }
    }

    /// Revenue from bids 1, 1, 1 and 4.01 at all prices up to 4.02 (A2), in steps of 1e-4: `price · (bids at or above it)`. On the grid
    /// it is the continuous version to 1e-3.
    #[test]
    fn prices_on_a_fine_grid() {
        let pieces = [
            piece(0, 0, 4),
            piece(10_001, 10_001, 1),
            piece(40_101, 0, 0),
        ];
        let mechanism = on(0, 40_200, ratio(5, 1), 40_200);
        // Each interval's integral of exp(k r) is (exp(k b) - exp(k a))/k.
        let k = |slope: f64| slope * 5.0 / (2.0 * 4.02);
        let integral =
            |slope: f64, a: f64, b: f64| ((k(slope) * b).exp() - (k(slope) * a).exp()) / k(slope);
        let masses = [integral(4.0, 0.0, 1.0), integral(1.0, 1.0, 4.01), 0.01];
        let total: f64 = masses.iter().sum();
        let p = probabilities(&mechanism, &pieces);
        let on_grid = [
            p[..=10_000].iter().sum::<f64>(),
            p[10_001..=40_100].iter().sum(),
            p[40_101..].iter().sum(),
        ];
        for (grid, continuous) in on_grid.iter().zip(masses) {
            assert!(
                (grid - continuous / total).abs() < 1e-3,
                "{grid} {}",
                continuous / total
            );
        }
        let mut entropy = Seeded::new(seed(372));
        let mut seen = [0; 3];
        for _ in 0..100_000 {
            let price = point(&mechanism, &pieces, &mut entropy);
            seen[usize::from(price > 10_000) + usize::from(price > 40_100)] += 1;
        }
        let fit = g_test(&seen, &on_grid).expect("probabilities").p_value;
        assert!(fit >= doubt::ALPHA, "p = {fit:e}");
    }

    /// A hill that moves up where all else moves down: the event is that the hill is chosen.
    fn epsilon_seen(epsilon: Ratio) -> whit_audit::Verdict {
        let mechanism = on(0, 999, epsilon, 3);
        let world = |by: i64| [piece(0, -by, 0), piece(500, by, 0), piece(550, -by, 0)];
        let (mut entropy, mut other) = (Seeded::new(seed(373)), Seeded::new(seed(374)));
        let event = |by: i64, entropy: &mut Seeded| {
            (500..550).contains(&point(&mechanism, &world(by), entropy))
        };
        judge(
            1.0,
            0.0,
            200_000,
            || event(0, &mut entropy),
            || event(3, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = epsilon_seen(Ratio::one());
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.78,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(epsilon_seen(ratio(5, 4)).convicted);
        assert!(epsilon_seen(ratio(2, 1)).convicted, "twice the rate");
    }

    #[test]
    fn closed_form() {
        let mechanism = on(0, 99, ratio(1, 1), 1);
        assert!(
            matches!(mechanism.event().mechanism(), Mechanism::BoundedRange { epsilon } if *epsilon == Ratio::one())
        );
        assert!((mechanism.error(confidence(0.9)) - 2.0 * 1000_f64.ln()).abs() < 1e-9);
        let one = Sensitivity::<Linf, AddRemove>::new(Ratio::one());
        let monotone = PiecewiseExponential::monotone(Ratio::one(), &one, 0, 99).expect("a range");
        assert!((monotone.error(confidence(0.9)) - 1000_f64.ln()).abs() < 1e-9);
        for (low, high) in [(1, 0), (i64::MIN, i64::MAX), (0, 1 << 62)] {
            assert!(PiecewiseExponential::new(Ratio::one(), &one, low, high).is_err());
        }
    }

    /// A piece that starts outside of the range changes nothing, in whatever order it comes.
    #[test]
    fn pieces_outside_of_the_range_are_left_out() {
        let mechanism = on(0, 99, Ratio::one(), 1);
        let laws = |pieces: &[Piece]| {
            let (blocks, weights) = mechanism.blocks(Secret::new(pieces.to_vec()));
            let blocks: Vec<_> = blocks
                .iter()
                .map(|b| (b.best, b.slope, b.skip, b.length))
                .collect();
            let weights: Vec<_> = weights
                .iter()
                .map(|w| (w.multiplicity, w.distance))
                .collect();
            (blocks, weights)
        };
        let within = [piece(10, 3, 1), piece(50, 50, 0)];
        for outside in [
            piece(-100, 0, 0),
            piece(-10, 100, 7),
            piece(100, -5, 0),
            piece(i64::MAX, 9, 9),
        ] {
            assert_eq!(laws(&[outside, within[0], within[1]]), laws(&within));
            assert_eq!(laws(&[within[1], outside, within[0]]), laws(&within));
        }
        // Where two start at the same point, the later one holds.
        assert_eq!(
            laws(&[piece(10, 9, 9), within[0], within[1]]),
            laws(&within)
        );
    }

    #[test]
    fn edges() {
        let mut entropy = Seeded::new(375);
        let (min, max) = (i64::MIN, i64::MAX);
        for epsilon in [
            Ratio::zero(),
            ratio(1, 1 << 100),
            Ratio::one(),
            ratio(1 << 100, 1),
        ] {
            for (low, high) in [
                (0, 0),
                (min, min + (1 << 62) - 1),
                (max - (1 << 62) + 1, max),
            ] {
                let mechanism = on(low, high, epsilon.clone(), 1);
                for pieces in [
                    &[][..],
                    &[piece(min, max, max), piece(max, min, min)],
                    &[
                        piece(max, max, min),
                        piece(0, min, max),
                        piece(0, 5, 5),
                        piece(min, 1, -1),
                    ],
                ] {
                    assert!((low..=high).contains(&point(&mechanism, pieces, &mut entropy)));
                }
            }
        }
        let sharp = on(-10, 10, ratio(1 << 40, 1), 1);
        assert_eq!(
            point(&sharp, &[piece(0, 7, -1), piece(-5, 0, 2)], &mut entropy),
            -1
        );
        assert!(
            sharp
                .release(Secret::new(Vec::new()), &mut FailingEntropy)
                .is_err()
        );
    }
}
