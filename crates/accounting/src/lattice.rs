//! # Compositions on a lattice
//! **Setting.** Pairs with losses on lattices whose units are multiples of one unit. The sum of their indices is a lattice again,
//! and its profile is `δ(ε) = infinite + Σ_n P_n (1 - e^(ε-l_n))_+`, exactly: nothing is rounded onto a grid.
//!
//! **How.** `lattice_sum.rs` gives `A_J` and `D_J` for the first `l_J` at or above `ε`, under the tilt where the integrand has its
//! saddle point (`lattice_tilt.rs`); there every delta has the same relative accuracy, 1e-300 as well as 0.1, and
//! every number of steps the same cost. One tilt serves all `J` nearby.
//!
//! **Bounds that always hold** serve where that sum is not worth while. With `Λ(0) = ln(1 - infinite)`, for the finite part `F`:
//! - `F <= e^(Λ(c) - cε) c^c/(1+c)^(1+c)` for `c > 0`, by `(1 - e^-x)_+ <= e^(cx) c^c/(1+c)^(1+c)`;
//! - `F >= e^Λ(0) - e^(Λ(-a) + aε)` for `0 <= a <= 1`, by `min(1, e^x) <= e^(ax)`;
//! - `e^Λ(0) - e^ε e^Λ(-1) <= F`, since `(x)_+ >= x`, and it exceeds this by `E[(e^(ε-L) - 1)_+] <= e^(Λ(-1-λ) + (1+λ)ε)`.
//!
//! **Commensurable units.** If `unit_i = n_i g (1 + e_i)` with tiny `e_i`, losses are moved by at most
//! `slack = Σ k_i max|multiple| |unit_i - n_i g|`. Moving all losses up by the slack gives an upper bound and down a lower one:
//! `δ_g(ε + slack) <= δ(ε) <= δ_g(ε - slack)`.

use whit_core::round;

use crate::Bracket;
use crate::curve::{self, Curve};
use crate::lattice_pair::{LatticePair, integer};
use crate::lattice_tilt::{Estimate, TiltedSum};

/// Losses of more units are not told apart.
const UNITS_MAX: f64 = 1e30;
/// Chernoff bounds below this are good enough as errors: `e^-30`.
const SMALL: f64 = 1e-13;
/// Remembered places where the sum over nodes did not work.
const FAILURES_MAX: usize = 64;

/// So many steps of one pair.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// One step.
    pub(crate) pair: LatticePair,
    /// How many, at most 2^53.
    pub(crate) count: u64,
    /// Its unit, as a multiple of the common one.
    pub(crate) multiple: i64,
}

/// A composition on one lattice.
pub(crate) struct Lattice {
    parts: Vec<Part>,
    unit: Bracket,
    base: Bracket,
    slack: f64,
    /// The loss of index 0, and of one step, in units.
    first: i128,
    stride: i128,
    /// The last index, if both ends are finite.
    top: Option<i128>,
    infinite: Bracket,
    /// `Λ(0)` and `Λ(-1)`.
    ln_finite: Bracket,
    ln_finite_other: Bracket,
    /// The law of `P` and of `Q`.
    ahead: Estimate,
    behind: Estimate,
    tilt: Option<TiltedSum>,
    /// Indices around which the sum is not tried again.
    failed: Vec<(i128, i128)>,
    cells: Vec<(i128, Cell)>,
}

/// `A_J` and `D_J`.
#[derive(Clone, Copy, Debug)]
struct Cell {
    tail: Bracket,
    excess: Bracket,
}

impl Lattice {
    /// All parts together; `slack` is by how much losses may be off their multiples of `unit`. None without a loss.
    pub(crate) fn new(parts: Vec<Part>, unit: Bracket, slack: f64) -> Option<Self> {
        let stride = parts
            .iter()
            .filter(|part| part.pair.span() != Some(0))
            .map(|part| i128::from(part.pair.stride) * i128::from(part.multiple))
            .fold(0, gcd);
        if parts.is_empty() || stride == 0 || unit.lower() <= 0.0 {
            return None;
        }
        let (mut first, mut top) = (0, Some(0));
        let (mut ln_finite, mut ln_finite_other) = (Bracket::ZERO, Bracket::ZERO);
        let mut base = Bracket::ZERO;
        for Part {
            pair,
            count,
            multiple,
        } in &parts
        {
            let (times, multiple) = (i128::from(*count), i128::from(*multiple));
            first += times * i128::from(pair.first) * multiple;
            let steps = i128::from(pair.stride) * multiple / stride;
            top = top
                .zip(pair.span())
                .map(|(top, span)| top + times * i128::from(span) * steps);
            let count = Bracket::exact(*count as f64);
            base = base + count * pair.base;
            ln_finite = ln_finite + count * (-pair.infinite).ln_1p();
            ln_finite_other = ln_finite_other + count * (-pair.missing).ln_1p();
        }
        let mut found = Self {
            parts,
            unit,
            base,
            slack,
            first,
            stride,
            top,
            infinite: (-ln_finite.exp_m1()).clamp(0.0, 1.0),
            ln_finite,
            ln_finite_other,
            ahead: Estimate::default(),
            behind: Estimate::default(),
            tilt: None,
            failed: Vec::new(),
            cells: Vec::new(),
        };
        (found.ahead, found.behind) = (found.estimate(0.0), found.estimate(-1.0));
        Some(found)
    }

    /// One pair, `count` times.
    pub(crate) fn power(pair: LatticePair, count: u64) -> Option<Self> {
        let unit = pair.unit;
        let part = Part {
            pair,
            count,
            multiple: 1,
        };
        Self::new(vec![part], unit, 0.0)
    }

    /// `ε(δ)`; at `δ = 0` the largest loss itself, also where its probability is no float.
    pub(crate) fn epsilon(&mut self, delta: f64) -> Bracket {
        if self.infinite.upper() <= delta
            && let Some(top) = self.top
            && delta == 0.0
        {
            let most = self.loss(top) + Bracket::new(-self.slack, self.slack);
            return most.max(Bracket::ZERO);
        }
        curve::epsilon(self, delta)
    }

    /// What it is made of.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The last index, if both ends are finite.
    pub(crate) fn top(&self) -> Option<i128> {
        self.top
    }

    /// The law of `P`.
    pub(crate) fn ahead(&self) -> &Estimate {
        &self.ahead
    }

    /// Lattice steps per index of a part.
    pub(crate) fn ratio(&self, part: &Part) -> i128 {
        i128::from(part.pair.stride) * i128::from(part.multiple) / self.stride
    }

    /// The loss of an index.
    pub(crate) fn loss(&self, index: i128) -> Bracket {
        self.base + self.unit * integer(self.first + self.stride * index)
    }

    /// `h`.
    pub(crate) fn step(&self) -> Bracket {
        self.unit * integer(self.stride)
    }

    /// The finite part at `ε`, with all losses on the lattice.
    fn finite(&mut self, epsilon: f64) -> Bracket {
        if let Some(top) = self.top
            && self.loss(top).upper() <= epsilon
        {
            return Bracket::ZERO;
        }
        let whole = self.ln_finite.exp();
        let exact = Bracket::exact(epsilon);
        let linear = whole - (exact + self.ln_finite_other).exp();
        if self.top.is_some() && self.loss(0).lower() >= epsilon {
            return Bracket::new(linear.lower().max(0.0), linear.upper().max(0.0));
        }
        let (low, high) = match self.lower_tail(epsilon, whole, linear) {
            Tail::Enough(found) => return found,
            Tail::Bounds(low, high) => (low, high),
        };
        let cell = self
            .index(epsilon)
            .and_then(|index| Some((index, self.cell(index)?)));
        let found = match cell {
            // Should the true loss be just below ε, this is below the truth, and above it with the upper ends.
            Some((index, Cell { tail, excess })) => {
                let gap = exact - self.loss(index);
                let top = -gap.exp_m1();
                top * tail + gap.exp() * excess
            }
            None => Bracket::new(0.0, self.chernoff(epsilon)),
        };
        let (lower, upper) = (found.lower().max(low), found.upper().min(high));
        Bracket::new(lower.min(upper), upper)
    }

    /// The simple bounds, which are all there is to know far below the mean.
    fn lower_tail(&self, epsilon: f64, whole: Bracket, linear: Bracket) -> Tail {
        let (mut low, mut high) = (linear.lower().max(0.0), whole.upper());
        let far = |law: &Estimate| self.away(law, epsilon) < -5.0 * law.variance.sqrt();
        if far(&self.ahead) {
            let share = self.tilt_down(0.0, epsilon).max(-1.0);
            let lost = self.ln_moment_at(share, epsilon).exp();
            low = low.max((whole - lost).lower());
            if lost.upper() < SMALL * whole.lower() {
                return Tail::Enough(Bracket::new(low.min(high), high));
            }
        }
        if far(&self.behind) {
            let over = self.ln_moment_at(self.tilt_down(-1.0, epsilon), epsilon);
            let over = over.exp().upper();
            high = high.min(round::add_up(linear.upper().max(0.0), over));
            if over < SMALL * low {
                return Tail::Enough(Bracket::new(low.min(high), high));
            }
        }
        Tail::Bounds(low, high)
    }

    /// The first index whose loss may be at or above `ε`: the one before is below. None where floats cannot tell.
    fn index(&self, epsilon: f64) -> Option<i128> {
        let reaches = |index: i128| self.loss(index).upper() >= epsilon;
        let near = self.index_near(epsilon);
        // Off by a few, or by more where a loss has more units than floats have digits.
        let (mut below, mut above) = (near, near);
        for reach in (0..50).map(|power| 1_i128 << power) {
            if reaches(below) {
                below = near - reach;
            } else if !reaches(above) {
                above = near + reach;
            } else {
                break;
            }
        }
        if reaches(below) || !reaches(above) {
            return None;
        }
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if reaches(middle) {
                above = middle;
            } else {
                below = middle;
            }
        }
        Some(above)
    }

    /// An index with a loss near `ε`.
    pub(crate) fn index_near(&self, epsilon: f64) -> i128 {
        let units = ((epsilon - self.base.estimate()) / self.unit.estimate()).floor();
        let units = units.clamp(-UNITS_MAX, UNITS_MAX) as i128;
        (units - self.first).div_euclid(self.stride)
    }

    /// `A_J` and `D_J`.
    fn cell(&mut self, index: i128) -> Option<Cell> {
        if let Some((_, cell)) = self.cells.iter().find(|(known, _)| *known == index) {
            return Some(*cell);
        }
        if !self.tilt.as_ref().is_some_and(|tilt| tilt.serves(index)) {
            let known = |&(low, high): &(i128, i128)| low <= index && index <= high;
            if self.failed.iter().any(known) {
                return None;
            }
            match self.tilted_sum(index) {
                Ok(tilt) => self.tilt = Some(tilt),
                Err(around) => {
                    if self.failed.len() < FAILURES_MAX {
                        self.failed.push(around);
                    }
                    return None;
                }
            }
        }
        let tilt = self.tilt.as_ref()?;
        let (tail, excess) = tilt.tail_and_excess(self.step(), index);
        let cell = Cell { tail, excess };
        if self.cells.len() >= 64 {
            self.cells.clear();
        }
        self.cells.push((index, cell));
        Some(cell)
    }
}

enum Tail {
    Enough(Bracket),
    Bounds(f64, f64),
}

impl Curve for Lattice {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        let finite = if self.slack == 0.0 {
            self.finite(epsilon)
        } else {
            let upper = self.finite(round::sub_down(epsilon, self.slack)).upper();
            let lower = self.finite(round::add_up(epsilon, self.slack)).lower();
            // One step outward for the mass of what moves by more than the slack: it is no float.
            Bracket::new(lower.next_down().max(0.0), upper.next_up())
        };
        (finite + self.infinite).clamp(0.0, 1.0)
    }

    fn infinite(&self) -> Bracket {
        self.infinite
    }

    fn epsilon_max(&self) -> Option<f64> {
        let top = self.loss(self.top?).upper();
        Some(round::add_up(top, self.slack).max(0.0))
    }

    fn guess(&mut self, delta: f64) -> f64 {
        self.saddle_guess(delta - self.infinite.estimate())
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discrete_pair as pair;

    /// Golden: the value within the bracket, which is at most this wide. (Vectors of the accounting corpus, by number.)
    fn check(name: &str, pair: LatticePair, count: u64, delta: f64, truth: f64) {
        let found = Lattice::power(pair, count)
            .expect("has losses")
            .epsilon(delta);
        let room = 1e-14 * truth;
        assert!(
            found.lower() <= truth + room && truth - room <= found.upper(),
            "{name}: {found:?} {truth}"
        );
        assert!(found.relative_width() < 1e-9, "{name}: {found:?}");
    }

    #[test]
    fn golden_randomized_response() {
        let two = |epsilon| pair::randomized_response(epsilon, 2);
        check("pub-017", two(0.1), 500, 1e-6, 12.517879962510287);
        check("pub-018", two(1.0), 20, 1e-5, 19.994_726_474_213_67);
        check("pub-019", two(0.02), 10_000, 1e-8, 12.74438247648878);
        check("pub-020", two(0.5), 64, 1e-15, 31.984858076612486);
        let many = pair::randomized_response;
        check("pub-021", many(1.0, 10), 30, 1e-5, 16.649957398484375);
        check("pub-022", many(2.0, 4), 12, 1e-6, 23.99994031592175);
    }

    #[test]
    fn golden_black_boxes() {
        let one = pair::approximate(0.1, 1e-8);
        check("pub-023", one, 100, 1e-5, 4.3296367140166065);
        let one = pair::approximate(0.5, 1e-7);
        check("pub-024", one, 30, 1e-4, 11.970781016974067);
    }

    #[test]
    fn golden_discrete_noise() {
        let gaussian = pair::discrete_gaussian;
        check(
            "pub-048",
            gaussian(10.0, 1),
            100,
            1e-6,
            4.886_570_745_861_785_5,
        );
        check("pub-049", gaussian(2.0, 1), 16, 1e-8, 12.737124341436736);
        check("pub-050", gaussian(4.0, 3), 20, 1e-5, 19.286086259114924);
        let laplace = |rate, shift| pair::discrete_laplace(rate, shift).expect("few atoms");
        check("pub-051", laplace(0.1, 1), 200, 1e-6, 7.185594457672308);
        check("pub-052", laplace(0.2, 3), 40, 1e-5, 18.684345442959803);
        check("pub-053", laplace(0.05, 4), 100, 1e-9, 12.500716199634856);
    }

    /// Tilts are so small then that there is no float below them to search from.
    #[test]
    fn losses_at_the_end_of_floats_are_answered() {
        let half = Bracket::exact(0.5).ln();
        for unit in [
            Bracket::exact(1e300),
            Bracket::exact(1e308),
            Bracket::exact(f64::MAX),
            Bracket::new(f64::MAX, f64::INFINITY),
        ] {
            let masses = vec![half - unit, half, half];
            for count in [1, 3, 300, 1 << 40] {
                let pair = LatticePair::symmetric(unit, -1, 1, masses.clone());
                let mut lattice = Lattice::power(pair, count).expect("has losses");
                for delta in [1e-300, 1e-5, 0.4] {
                    let found = lattice.epsilon(delta);
                    // Half of the losses are one unit, the others next to none.
                    assert!(
                        found.upper() >= 0.4 * unit.lower(),
                        "{unit:?} {count}: {found:?}"
                    );
                    assert!(found.lower().is_finite(), "{unit:?} {count}: {found:?}");
                }
            }
        }
    }

    fn response(epsilon: f64, categories: u64) -> LatticePair {
        pair::randomized_response(epsilon, categories)
    }

    fn laplace(rate: f64, shift: u64) -> LatticePair {
        pair::discrete_laplace(rate, shift).expect("few masses")
    }

    fn black_box(epsilon: f64, delta: f64) -> LatticePair {
        pair::approximate(epsilon, delta)
    }

    fn gaussian(sigma: f64, shift: u32) -> LatticePair {
        pair::discrete_gaussian(sigma, shift)
    }

    fn known(pair: LatticePair, count: u64, epsilon: f64, truth: f64) {
        let name = format!("{pair:?} {count} {epsilon}");
        let mut all = Lattice::power(pair, count).expect("has losses");
        let found = all.delta(epsilon);
        assert!(
            found.lower() <= truth.next_up() && truth.next_down() <= found.upper(),
            "{name}: {found:?} {truth}"
        );
        assert!(found.relative_width() < 2e-10, "{name}: {found:?}");
    }

    /// Profiles from exact convolution in 50 digits (mpmath), rounded to floats.
    #[test]
    fn profiles_hold_the_truth() {
        known(response(1e-06, 10), 7, -7e-06, 6.999975500057167e-06);
        known(response(1e-06, 10), 7, 0.0, 4.3302850942510397e-07);
        known(response(1e-06, 10), 7, 3e-06, 2.1130061039083303e-09);
        known(response(0.1, 3), 64, -0.5, 0.4574018840985041);
        known(response(0.1, 3), 64, 1.0, 0.02889924738296426);
        known(response(0.1, 3), 64, 4.7, 1.0131402466027634e-14);
        known(response(3.0, 2), 20, 10.0, 0.9999996224875057);
        known(response(3.0, 2), 20, 59.9, 0.036011552381436086);
        known(laplace(0.0001, 3), 20, 0.0, 0.0005285910811643734);
        known(laplace(0.0001, 3), 20, 0.002, 3.996184066358483e-05);
        known(laplace(0.01, 10), 64, 0.3, 0.20937391401158767);
        known(laplace(0.01, 10), 64, 3.0, 3.828043211071132e-05);
        known(laplace(2.0, 10), 3, 30.0, 0.9999948549127206);
        known(laplace(2.0, 10), 3, 59.0, 0.43194406490144976);
        known(black_box(2.0, 1e-07), 64, 60.0, 0.9989007938664314);
        known(black_box(2.0, 1e-07), 64, 127.0, 0.0001938357646668202);
        known(black_box(0.001, 1e-12), 150, 0.0, 0.004877858249062846);
        known(black_box(0.001, 1e-12), 150, 0.1, 1.4999999999745239e-10);
        known(gaussian(0.4, 1), 7, 5.0, 0.9979743563458237);
        known(gaussian(0.4, 1), 7, 40.0, 0.0008461045189321826);
        known(gaussian(1.5, 2), 20, -3.0, 0.9994289227241937);
        known(gaussian(1.5, 2), 20, 30.0, 0.014333060031207727);
        known(gaussian(7.5, 5), 20, 3.0, 0.5601831034349365);
        known(gaussian(7.5, 5), 20, 25.0, 7.96987930461296e-13);
        known(gaussian(9.0, 1), 40, 0.2, 0.2061190460280271);
        known(gaussian(9.0, 1), 40, 7.0, 2.4240104829752595e-23);
    }

    /// No NaN, no panic, and lower below upper; the profile falls and epsilon rises as delta falls.
    #[test]
    fn extremes_are_answered() {
        let pairs = [
            response(1e-12, 2),
            response(0.3, 1_000_000),
            response(700.0, 3),
            laplace(1e-9, 1),
            laplace(3.0, 40),
            gaussian(0.05, 1),
            gaussian(0.7, 3),
            gaussian(1e5, 1),
        ];
        for pair in pairs {
            for count in [1, 1000, 1 << 53] {
                // Beyond, floats cannot tell losses apart.
                if pair.unit.upper() > 1.0 && count > 1_000_000 {
                    continue;
                }
                let mut all = Lattice::power(pair.clone(), count).expect("has losses");
                let (mut last, name) = (Bracket::ZERO, format!("{pair:?} {count}"));
                for delta in [0.5, 1e-9, 1e-300] {
                    let found = all.epsilon(delta);
                    assert!(found.lower() <= found.upper() && found.lower() >= 0.0);
                    assert!(found.upper() < f64::INFINITY, "{name} {delta}: {found:?}");
                    assert!(
                        found.upper() >= last.lower(),
                        "{name} {delta}: {found:?} {last:?}"
                    );
                    let width = found.relative_width();
                    assert!(
                        width < 1e-5 || found.upper() < 1e-9,
                        "{name} {delta}: {found:?}"
                    );
                    last = found;
                }
                for epsilon in [f64::MIN, -1.0, 0.0, 1e-300, f64::MAX] {
                    let found = all.delta(epsilon);
                    assert!(
                        found.lower() >= 0.0 && found.upper() <= 1.0,
                        "{name} {epsilon}"
                    );
                }
            }
        }
    }

    /// At `δ = 0` the largest loss, though its probability is no float; infinity only for what is infinite.
    #[test]
    fn the_largest_loss_is_exact() {
        let mut all = Lattice::power(response(0.1, 2), 10_000).expect("has losses");
        let found = all.epsilon(0.0);
        assert!(found.lower() <= 1000.0 && 1000.0 <= found.upper());
        assert!(found.relative_width() < 1e-15);
        let mut single = Lattice::power(response(0.1, 2), 1).expect("has losses");
        assert_eq!(single.epsilon(0.0), Bracket::exact(0.1));
        let mut smooth = Lattice::power(gaussian(3.0, 1), 2).expect("has losses");
        assert_eq!(smooth.epsilon(0.0).upper(), f64::INFINITY);
        let mut boxes = Lattice::power(black_box(0.1, 1e-8), 100).expect("has losses");
        assert_eq!(boxes.epsilon(1e-10), Bracket::exact(f64::INFINITY));
        assert!(boxes.epsilon(2e-6).upper() < 10.1);
    }
}
