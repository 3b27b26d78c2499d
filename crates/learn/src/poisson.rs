//! # Poisson samples
//! **Definition.** Each of `n` examples is in the sample with probability exactly `p`, a rational, independently of all others.
//! **Sampler.** Example `i` is in if its own uniform real `U_i` is below `p`. The binary digits of as many reals as a word has bits are drawn
//!   side by side: word `k` of a block holds digit `k` of each. Where digit `k` of `p` is one, those among the undecided whose digit is
//!   zero are in; where it is zero, those whose digit is one are out; the others go on.
//! **Proof.** The first digit in which `U_i` and `p` differ decides, since `p` is less than one unit of that digit above its own digits
//!   before. The digits of `U_i` are bits of the stream that no other example reads. A `p` whose digits end has all zeros from there on: who is
//!   undecided then has `U_i >= p`, and is out. What never ends has probability zero.
//! **Cost.** All 64 of a block are decided after about 7.3 words on average, a ninth of one word for each. How many it takes depends on
//!   coins alone.

use whit_core::{Bits, Probability, Ratio};

/// The digits of `p` that are kept; more are needed with probability below `2^-58` in a block, and are then computed.
const DIGITS: u32 = 64;

/// Independent coins of one exact probability.
pub(crate) struct Coins {
    p: Ratio,
    /// The first digits of `p`, the first one on top. All ones for `p = 1`, which is told apart.
    head: u64,
}

impl Coins {
    pub(crate) fn new(rate: &Probability) -> Self {
        let p = rate.ratio().clone();
        let head = (0..DIGITS).fold((0, Some(p.clone())), |(head, rest), _| {
            let (digit, rest) = next_digit(rest);
            (head << 1 | u64::from(digit), rest)
        });
        Self { p, head: head.0 }
    }

    /// The numbers below `rows` whose coins say so, in order.
    pub(crate) fn draw<B: Bits>(&self, rows: u32, bits: &mut B) -> Vec<u32> {
        if self.p == Ratio::one() {
            return (0..rows).collect();
        }
        // Room for the mean and six standard deviations; more is found when it is needed.
        let mean = f64::from(rows) * self.p.to_f64_up();
        let mut sample = Vec::with_capacity((mean + 6.0 * mean.sqrt() + 8.0) as usize);
        let mut first = 0;
        while first < rows {
            let lanes = B::WIDTH.min(rows - first);
            let mut chosen = self.block(lanes, bits);
            while chosen != 0 {
                sample.push(first + chosen.trailing_zeros());
                chosen &= chosen - 1;
            }
            first += lanes;
        }
        sample
    }

    /// One coin for each of the lowest `lanes` bits.
    #[inline]
    fn block<B: Bits>(&self, lanes: u32, bits: &mut B) -> u64 {
        let mut open = u64::MAX >> (64 - lanes);
        let mut chosen = 0;
        let mut head = self.head;
        for _ in 0..DIGITS {
            let word = bits.word();
            // All ones where the digit of p is one.
            let digit = 0_u64.wrapping_sub(head >> 63);
            chosen |= open & !word & digit;
            // Who agrees with p stays open.
            open &= !(word ^ digit);
            if open == 0 {
                return chosen;
            }
            head <<= 1;
        }
        chosen | self.block_on(open, bits)
    }

    /// Goes on behind the digits that are kept.
    #[cold]
    fn block_on<B: Bits>(&self, mut open: u64, bits: &mut B) -> u64 {
        let mut rest = Some(self.p.clone());
        for _ in 0..DIGITS {
            rest = next_digit(rest).1;
        }
        let mut chosen = 0;
        while open != 0 {
            if rest.as_ref().is_none_or(Ratio::is_zero) {
                return chosen;
            }
            let (digit, next) = next_digit(rest);
            rest = next;
            let word = bits.word();
            let digit = 0_u64.wrapping_sub(u64::from(digit));
            chosen |= open & !word & digit;
            open &= !(word ^ digit);
        }
        chosen
    }
}

/// The next binary digit of a number in `[0, 1)`, and what is left of it, times two.
fn next_digit(rest: Option<Ratio>) -> (bool, Option<Ratio>) {
    let Some(rest) = rest else {
        return (false, None);
    };
    let twice = &rest + &rest;
    match Ratio::from_rbig(twice.as_rbig() - Ratio::one().as_rbig()) {
        Some(left) => (true, Some(left)),
        None => (false, Some(twice)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_audit::enumerate::enumerate;
    use whit_testkit::SeededBits;

    fn coins(numerator: u128, denominator: u128) -> Coins {
        let p = Ratio::new(numerator, denominator).expect("not zero");
        Coins::new(&Probability::new(p).expect("a share"))
    }

    /// Every path of coins: a sample of `k` has `p^k (1-p)^(n-k)`, whatever its members, so inclusions are independent.
    fn check<const W: u32>(rows: u32, numerator: u128, denominator: u128) {
        let coins = coins(numerator, denominator);
        let found = enumerate::<W, _>(20, |tape| coins.draw(rows, tape));
        let p = Ratio::new(numerator, denominator).expect("not zero");
        let q = Ratio::new(denominator - numerator, denominator).expect("not zero");
        assert!(!found.masses().is_empty());
        let violations = found.violations(|sample| {
            let probability = (0..rows).fold(Ratio::one(), |product, row| {
                &product * if sample.contains(&row) { &p } else { &q }
            });
            let exact = probability.as_rbig().clone();
            (exact.clone(), exact)
        });
        assert!(
            violations.is_empty(),
            "width {W}, {rows} rows, {numerator}/{denominator}: {violations:?}"
        );
        // Most of the paths came to their end: otherwise nothing was checked.
        assert!(found.unresolved() < 1 << 17, "{}", found.unresolved());
    }

    #[test]
    fn enumeration() {
        for (numerator, denominator) in [(1, 3), (2, 3), (1, 4), (5, 7), (1, 2), (3, 1000)] {
            check::<1>(3, numerator, denominator);
            check::<2>(3, numerator, denominator);
            check::<4>(4, numerator, denominator);
        }
    }

    #[test]
    fn never_and_always() {
        let mut bits = SeededBits::new(1);
        assert!(coins(0, 1).draw(1000, &mut bits).is_empty());
        assert_eq!(
            coins(1, 1).draw(100, &mut bits),
            (0..100).collect::<Vec<_>>()
        );
        assert!(coins(1, 2).draw(0, &mut bits).is_empty());
    }

    /// Digits behind those that are kept: a tape that agrees with `1/3 = 0.0101…` for so long, and then is above or below.
    #[test]
    fn ties_are_broken_by_exact_digits() {
        struct Agreeing {
            read: u32,
            last: u64,
        }
        impl Bits for Agreeing {
            const WIDTH: u32 = 1;
            fn word(&mut self) -> u64 {
                self.read += 1;
                let agree = u64::from(self.read.is_multiple_of(2));
                if self.read < 101 { agree } else { self.last }
            }
        }
        // Digit 101 of 1/3 is zero: a one there is above. Digit 102 is one: a zero there is below.
        let at = |last| coins(1, 3).draw(1, &mut Agreeing { read: 0, last });
        assert_eq!((at(1), at(0)), (vec![], vec![0]));
        // 1/2^70 ends: who agrees with all of it is not below.
        struct Zeros(u32);
        impl Bits for Zeros {
            const WIDTH: u32 = 1;
            fn word(&mut self) -> u64 {
                self.0 += 1;
                u64::from(self.0 == 70)
            }
        }
        let tiny = Coins::new(&Probability::new(Ratio::power_of_two(-70)).expect("a share"));
        assert!(tiny.draw(1, &mut Zeros(0)).is_empty());
        assert_eq!(tiny.draw(1, &mut Zeros(100)), [0]);
    }

    /// Inclusion of each, and of each pair, also across blocks: within six standard deviations of their means.
    #[test]
    fn inclusions_and_pairs_have_their_frequencies() {
        const ROWS: usize = 130;
        const DRAWS: u32 = 40_000;
        for (numerator, denominator) in [(3, 10), (1, 50)] {
            let coins = coins(numerator, denominator);
            let mut bits = SeededBits::new(20 + denominator as u64);
            let mut pairs = vec![0_u32; ROWS * ROWS];
            for _ in 0..DRAWS {
                let sample = coins.draw(ROWS as u32, &mut bits);
                assert!(sample.is_sorted() && sample.iter().all(|&row| row < ROWS as u32));
                for &a in &sample {
                    for &b in &sample {
                        pairs[a as usize * ROWS + b as usize] += 1;
                    }
                }
            }
            let p = numerator as f64 / denominator as f64;
            for (place, &count) in pairs.iter().enumerate() {
                let same = place / ROWS == place % ROWS;
                let expected = if same { p } else { p * p };
                let mean = f64::from(DRAWS) * expected;
                let deviation = (mean * (1.0 - expected)).sqrt();
                let off = (f64::from(count) - mean).abs() / deviation;
                // Counts of rare pairs have a longer tail than a normal number: up to nine of their deviations.
                let most = if mean > 100.0 { 6.0 } else { 9.0 };
                assert!(off < most, "{place}: {count} {mean} {deviation}");
            }
        }
    }
}
