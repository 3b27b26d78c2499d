//! # Two-sided exponentials
//! **Definition.** `K(d) = exp(-g|d - τ|)` for `d = 0, 1, …`, a rate `g >= 0` and a target `τ >= 0`; and for a row of numbers `A(l)` the sums
//!   `C(i) = Σ_(l<i) A(l) K(i-l)`, in a few operations for each `i`.
//! **Method.** With `f = floor(τ)`, what is at most `f` away contributes `K(0) e^(gi) Σ_(l=i-f)^(i-1) A(l) e^(-gl)`, a sum over a window, and what
//!   is further away a sum that shrinks by `e^-g` in each step and takes in `A(i-f-1)`. The window is the end of one block of `f` cells and
//!   the beginning of the next: the sums from each cell to the end of its block are made when the block is full, and those from
//!   its beginning grow on the way. So nothing is ever subtracted.
//! **Error.** All numbers are [`Scaled`], so nothing vanishes and everything is cut. With `u = 2^-62` and `i <= n`, `K(d)` from a [`Walk`] is below
//!   the truth by at most `(2d + 1)u` of it: one for where it begins, two for each step. `C(i)` is below its formula by at most
//!   `(5n + 10)u`: `2l` and `2i` for the powers, `f + 1` for the window, six for the rest; or `3n + 3` for what is far.

use dashu_ratio::RBig;

use super::scaled::Scaled;

/// How far apart two cells next to each other on a path should be.
pub(super) struct Kernel {
    /// `τ`, and the last whole number that is not above it.
    pub(super) target: RBig,
    floor: usize,
    /// `K(0)`, `K(1)` and `K(floor + 1)`.
    pub(super) at_zero: Scaled,
    at_one: Scaled,
    beyond: Scaled,
}

impl Kernel {
    pub(super) fn new(rate: &RBig, target: RBig) -> Self {
        let floor = usize::try_from(target.floor()).expect("a target is not negative");
        let at = |distance: usize| {
            let off = RBig::from(distance) - &target;
            Scaled::exp_neg(&(rate * off.clone().max(-off)))
        };
        Self {
            floor,
            at_zero: at(0),
            at_one: at(1),
            beyond: at(floor + 1),
            target,
        }
    }

    /// Its values, from a distance of zero or one on.
    pub(super) fn walk(&self, distance: usize, step: Step) -> Walk {
        Walk {
            distance,
            floor: self.floor,
            value: if distance == 0 {
                self.at_zero
            } else {
                self.at_one
            },
            beyond: self.beyond,
            step,
        }
    }
}

/// `exp(-g)` and `exp(g)`.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) shrink: Scaled,
    pub(super) grow: Scaled,
}

impl Step {
    pub(super) fn new(rate: &RBig) -> Self {
        Self {
            shrink: Scaled::exp_neg(rate),
            grow: Scaled::exp(rate),
        }
    }
}

/// `K(d)` for `d` from zero or one on, one after the other.
pub(super) struct Walk {
    distance: usize,
    floor: usize,
    value: Scaled,
    beyond: Scaled,
    step: Step,
}

impl Walk {
    #[inline]
    pub(super) fn next(&mut self) -> Scaled {
        let value = self.value;
        self.value = match self.distance.cmp(&self.floor) {
            std::cmp::Ordering::Less => value.times(self.step.grow),
            std::cmp::Ordering::Equal => self.beyond,
            std::cmp::Ordering::Greater => value.times(self.step.shrink),
        };
        self.distance += 1;
        value
    }
}

/// What has arrived at a level, cell by cell.
pub(super) struct Inflow {
    /// For one block of `floor` cells: their entries so far, and behind these the sums to the end of the block before.
    block: Vec<Scaled>,
    offset: usize,
    /// The sum of the entries so far.
    begun: Scaled,
    /// The sum over the window.
    near: Scaled,
    /// What left the window.
    far: Scaled,
}

impl Inflow {
    pub(super) fn new(kernel: &Kernel) -> Self {
        Self {
            block: vec![Scaled::ZERO; kernel.floor],
            offset: 0,
            begun: Scaled::ZERO,
            near: Scaled::ZERO,
            far: Scaled::ZERO,
        }
    }

    /// `C(i)` of the next cell, by what has left the level before; with `e^(-g(i-1))` and `e^(gi)`.
    #[inline]
    pub(super) fn next(
        &mut self,
        kernel: &Kernel,
        step: Step,
        from: &[Scaled],
        (down, up): (Scaled, Scaled),
        cell: usize,
    ) -> Scaled {
        let Some(last) = cell.checked_sub(1) else {
            return Scaled::ZERO;
        };
        self.enter(from[last].times(down));
        self.far = self.far.times(step.shrink);
        if let Some(leaving) = last.checked_sub(kernel.floor) {
            self.far = self.far.plus(from[leaving]);
        }
        let near = self.near.times(up).times(kernel.at_zero);
        near.plus(self.far.times(kernel.beyond))
    }

    /// One cell enters the window, as `A(l) e^(-gl)`.
    #[inline]
    fn enter(&mut self, entry: Scaled) {
        if self.block.is_empty() {
            return;
        }
        self.block[self.offset] = entry;
        self.begun = self.begun.plus(entry);
        self.offset += 1;
        if self.offset < self.block.len() {
            self.near = self.begun.plus(self.block[self.offset]);
            return;
        }
        self.near = self.begun;
        self.begun = Scaled::ZERO;
        self.offset = 0;
        let mut sum = Scaled::ZERO;
        for entry in self.block.iter_mut().rev() {
            sum = sum.plus(*entry);
            *entry = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_int::UBig;

    #[test]
    fn walks_are_near() {
        let unit = RBig::from_parts(1.into(), UBig::ONE << 62);
        let ratio = |n: u64, d: u64| RBig::from_parts(n.into(), d.into());
        for rate in [ratio(0, 1), ratio(1, 10), ratio(5, 1), ratio(1000, 1)] {
            for target in [
                ratio(0, 1),
                ratio(1, 3),
                ratio(1, 1),
                ratio(29, 2),
                ratio(40, 1),
            ] {
                let kernel = Kernel::new(&rate, target.clone());
                for from in [0, 1] {
                    let mut walk = kernel.walk(from, Step::new(&rate));
                    for distance in from..60_usize {
                        let off = RBig::from(distance) - &target;
                        let exact = Scaled::exp_neg(&(&rate * off.clone().max(-off))).exact();
                        let found = walk.next().exact();
                        let error = RBig::from(2 * distance + 1) * &unit;
                        assert!(found >= &exact * (RBig::ONE - error), "{target} {distance}");
                        assert!(found <= exact * (RBig::ONE + &unit), "{target} {distance}");
                    }
                }
            }
        }
    }

    /// The rounding of `Scaled` aside, whole numbers at a rate of zero are sums that anybody can check.
    #[test]
    fn sums_without_a_rate_are_plain() {
        let rate = RBig::ZERO;
        let one = Scaled::from_integer(1);
        let from: Vec<Scaled> = (1..=50).map(Scaled::from_integer).collect();
        for floor in [0_u64, 1, 2, 7, 49, 50, 80] {
            let kernel = Kernel::new(&rate, RBig::from(floor));
            let mut inflow = Inflow::new(&kernel);
            for cell in 0..=50_u64 {
                let step = Step::new(&rate);
                let found = inflow.next(&kernel, step, &from, (one, one), cell as usize);
                assert_eq!(found.exact(), RBig::from(cell * (cell + 1) / 2), "{floor}");
            }
        }
    }
}
