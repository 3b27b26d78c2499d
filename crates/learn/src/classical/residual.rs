//! What an example's answer has that scores do not say, as integers.
//!
//! **Definition.** Scores of classes are the logarithms of their odds. For two classes there is one score, of the second against the first, and one residual, the answer less its probability; for more
//!   there is a score for each class, and its residual is `1 - p` for the example's own class and `-p` for others.
//! **Claim.** Residuals are a function of the scores and the class, and whatever the scores are, in units of `2^-18`: for two classes at most 1 in size; for more at most 2 in L1, and
//!   the sum of their squares is at most 2. All are reached.
//! **Proof.** Probabilities are computed in floats, and clamped as integers from 0 to 1 in units. For two classes the residual is `1 - p` or `-p`. For more, the other classes are cut, one after the other, to what is left of 1,
//!   so that their sum `s` is at most 1, and the own class has the residual `s`: in L1 that is `2s`, and the squares sum to at most `s² + s²`, since `Σ p² <= (Σ p)²`.
//!   With `p = 1` for one wrong class all are reached. ∎

use super::interval::UNIT;

/// How many scores there are for so many classes.
pub(super) fn scores_of(classes: usize) -> usize {
    match classes {
        2 => 1,
        more => more,
    }
}

/// The bound of the claim, on L1 and on the sum of squares.
pub(super) fn length(classes: usize) -> u64 {
    match classes {
        2 => 1,
        _ => 2,
    }
}

/// Writes the residuals of an example of this class with these scores.
pub(super) fn residuals(scores: &[f64], class: usize, residuals: &mut [i64]) {
    if let ([score], [residual]) = (scores, &mut *residuals) {
        let own = i64::from(class == 1) * UNIT;
        *residual = own - units(1.0 / (1.0 + (-score).exp()));
        return;
    }
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let odds = |score: f64| (score - largest).exp();
    let total: f64 = scores.iter().map(|score| odds(*score)).sum();
    let mut left = UNIT;
    for (other, (residual, score)) in residuals.iter_mut().zip(scores).enumerate() {
        if other != class {
            let share = units(odds(*score) / total).min(left);
            left -= share;
            *residual = -share;
        }
    }
    if let Some(own) = residuals.get_mut(class) {
        *own = UNIT - left;
    }
}

/// A probability, clamped to be one; nothing if it is no number.
fn units(probability: f64) -> i64 {
    ((probability * UNIT as f64).round() as i64).clamp(0, UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::seed;
    use whit_testkit::SeededBits;

    fn of(scores: &[f64], class: usize) -> Vec<i64> {
        let mut found = vec![7; scores.len()];
        residuals(scores, class, &mut found);
        found
    }

    #[test]
    fn closed_form() {
        assert_eq!(of(&[0.0], 1), [UNIT / 2]);
        assert_eq!(of(&[0.0], 0), [-UNIT / 2]);
        assert_eq!(of(&[1e9], 0), [-UNIT]);
        assert_eq!(of(&[-1e9], 1), [UNIT]);
        let quarter = UNIT / 4;
        assert_eq!(
            of(&[1.0; 4], 2),
            [-quarter, -quarter, 3 * quarter, -quarter]
        );
        assert_eq!(of(&[0.0, 900.0, 0.0], 0), [UNIT, -UNIT, 0]);
        let third = of(&[0.0, 2.0_f64.ln(), 0.0], 1);
        assert_eq!(third, [-quarter, 2 * quarter, -quarter]);
        assert_eq!(
            (scores_of(2), scores_of(3), length(2), length(3)),
            (1, 3, 1, 2)
        );
    }

    #[test]
    fn whatever_the_scores_are_residuals_are_short() {
        let mut bits = SeededBits::new(seed(771));
        let nasty = [
            0.0,
            -0.0,
            1e308,
            -1e308,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            700.0,
            -745.0,
        ];
        let mut worst = [(0, 0); 2];
        for _ in 0..20_000 {
            let classes = 2 + bits.below(4) as usize;
            let mut score = |_| match bits.below(2) {
                0 => nasty[bits.below(9) as usize],
                _ => bits.below(2001) as f64 / 100.0 - 10.0,
            };
            let scores: Vec<f64> = (0..scores_of(classes)).map(&mut score).collect();
            let found = of(&scores, bits.below(classes as u64) as usize);
            let l1: i64 = found.iter().map(|r| r.abs()).sum();
            let square: i64 = found.iter().map(|r| r * r).sum();
            let most = length(classes) as i64;
            assert!(
                l1 <= most * UNIT && square <= most * UNIT * UNIT,
                "{scores:?}: {found:?}"
            );
            let worst = &mut worst[usize::from(classes > 2)];
            *worst = (worst.0.max(l1), worst.1.max(square));
        }
        assert_eq!(worst, [(UNIT, UNIT * UNIT), (2 * UNIT, 2 * UNIT * UNIT)]);
    }
}
