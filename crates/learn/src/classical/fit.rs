//! What all classical plans have in common: what they are made for, what they cost, and a fit.
//!
//! **Claim.** Data of another shape than a plan was made for are refused before anybody pays: [`Classical::on`] looks at their public shape alone, and takes
//! no payment. What it gives can be fitted, and takes one.

use whit_accounting::Bracket;
use whit_core::{Entropy, Secret};
use whit_mechanism::Release;

use super::Budget;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::payment::{Payment, Priced};

/// A plan of one fit, made from public numbers alone.
pub trait Classical: Priced + Sized {
    /// What a fit gives. Public.
    type Model;

    /// The examples that it was made for.
    fn takes(&self) -> Takes;

    /// What it costs, and how much noise it adds.
    fn terms(&self) -> Terms;

    /// Spends the plan's event. For [`Fit::release`], which has seen to it that the data have the plan's shape. Nothing may fail for what is in the data.
    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Self::Model>>;

    /// The fit to these data, not paid for yet. Refused for data of another shape, which is public.
    fn on<'a>(&'a self, data: &'a Secret<Dataset>) -> Result<Fit<'a, Self>> {
        let shape = data.as_ref().expose();
        self.takes().check(shape.width(), shape.classes())?;
        Ok(Fit { plan: self, data })
    }
}

/// A plan with data of its shape. Only [`Classical::on`] makes it.
pub struct Fit<'a, Plan> {
    plan: &'a Plan,
    data: &'a Secret<Dataset>,
}

impl<'a, Plan: Classical> Fit<'a, Plan> {
    /// Uses the payment up, and gives the model with the event that it cost.
    pub fn release(
        self,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Plan::Model>> {
        Plan::spend(self, payment, entropy)
    }

    /// What is fitted.
    pub(super) fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// To what. All examples have the plan's features, and its classes or numbers.
    pub(super) fn data(&self) -> &'a Secret<Dataset> {
        self.data
    }
}

/// What a plan costs, and how much noise it adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// What was asked for.
    pub budget: Budget,
    /// What the event costs at the budget's delta: no less than the lower end, which is zero where nothing is proven, and no more than the upper. Nor does the fit cost more than that; it may cost a little less than the lower end, where examples are not quite as long as the event says.
    pub epsilon: Bracket,
    /// The standard deviation of the noise of each number that is released, in the unit that the model's file names: for sums, what an example adds to a count.
    pub deviation: f64,
}

/// The examples that a plan was made for. Declared, so public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes {
    /// How many numbers an example has.
    pub features: usize,
    /// What is learnt of it.
    pub answers: Answers,
}

/// What is learnt of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// One of so many classes.
    Classes(u32),
    /// A number.
    Numbers,
    /// Nothing: whatever examples are labelled with is not looked at.
    Nothing,
}

impl Takes {
    /// Refuses examples of another width, or with other answers: so many classes, or `None` for numbers.
    pub fn check(self, given: usize, classes: Option<u32>) -> Result<()> {
        let declared = self.features;
        if given != declared {
            return Err(Error::OtherColumns { declared, given });
        }
        let declared = match self.answers {
            Answers::Classes(count) => Some(count),
            Answers::Numbers => None,
            Answers::Nothing => return Ok(()),
        };
        match classes == declared {
            true => Ok(()),
            false => Err(Error::OtherLabels {
                declared,
                given: classes,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Fault;

    #[test]
    fn other_shapes_are_refused_with_what_would_pass() {
        let takes = |answers| Takes {
            features: 2,
            answers,
        };
        let check = |answers, width, classes| {
            let refused = takes(answers).check(width, classes).err();
            refused.map(|error| (error.code(), error.suggestion()))
        };
        for answers in [Answers::Classes(3), Answers::Numbers, Answers::Nothing] {
            let (code, passes) = check(answers, 1, Some(3)).expect("another width");
            assert_eq!(code, "other_columns");
            assert_eq!(
                passes,
                "declare 1 features, or give data of the declared ones"
            );
        }
        for (answers, given, passes) in [
            (Answers::Classes(3), Some(2), "give data with 3 classes"),
            (Answers::Classes(3), None, "give data with 3 classes"),
            (Answers::Numbers, Some(1), "give data with numbers"),
        ] {
            let refused = check(answers, 2, given).expect("other answers");
            assert_eq!(refused, ("other_labels", passes.into()));
        }
        assert_eq!(check(Answers::Classes(3), 2, Some(3)), None);
        assert_eq!(check(Answers::Numbers, 2, None), None);
        assert_eq!(check(Answers::Nothing, 2, Some(9)), None);
        assert_eq!(check(Answers::Nothing, 2, None), None);
    }
}
