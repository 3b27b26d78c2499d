//! A run that is kept: what it was is written to its [`Place`] now and then, and no step is taken before the place has counted it.

use std::num::NonZeroUsize;

use whit_core::Secret;

use super::{Method, Trainer};
use crate::checkpoint::{Checkpoint, CheckpointError, Place, same_process};
use crate::clip::AdaptiveQuantile;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::network::Network;
use crate::payment::Payment;
use crate::plan::Plan;

/// The names under which a checkpoint keeps the optimizer.
const FIRST: &str = "first";
const SECOND: &str = "second";
const AVERAGE: &str = "average";
const TAKEN: &str = "taken";
const AVERAGED: &str = "averaged";
/// And the clip norm of the next step, where it moves.
const CLIP: &str = "clip";
/// And the turns of a cyclic run, which its event does not tell apart.
const TURNS: [&str; 2] = ["bins", "band"];

/// A run that is kept on disk.
pub(super) struct Kept {
    place: Place,
    checkpoint: Checkpoint,
    /// It is written about this often.
    interval: u64,
    /// Steps that were counted and not taken yet.
    granted: u64,
    /// Steps that were taken and not written yet.
    pub(super) fresh: u64,
}

impl Trainer {
    /// The run that was begun in a place, as it was kept there: steps that were begun and not kept are lost. About every `interval` steps it
    /// is written, and no step is taken before the place has counted it. Refused if all steps were begun and none is kept: what is left then are the
    /// initial parameters, which are no model of the plan.
    pub fn kept(
        plan: &Plan,
        network: Network,
        data: Secret<Dataset>,
        method: Method,
        place: Place,
        interval: NonZeroUsize,
    ) -> Result<Self> {
        let path = || place.path().to_owned();
        let not_begun = || CheckpointError::NotBegun { path: path() };
        let mut checkpoint = place.load()?.ok_or_else(not_begun)?;
        let event = plan.event();
        if checkpoint.run().event != *event || checkpoint.run().steps_total != plan.steps() {
            return Err(CheckpointError::OtherPlan.into());
        }
        same_turns(plan, &mut checkpoint)?;
        if checkpoint.is_lost() {
            return Err(CheckpointError::Lost { path: path() }.into());
        }
        let (begun, payer) = (checkpoint.steps_begun(), checkpoint.payer().clone());
        // At the end of a run there is nothing to draw, wherever its last epoch was cut.
        let payment = (begun < plan.steps())
            .then(|| Payment::rest(event.fingerprint(), payer.clone(), begun));
        let whole = (checkpoint.parameters.clone(), payer, payment);
        let mut trainer = Self::assemble(plan, network, whole, data, method)?;
        trainer.restore(&checkpoint)?;
        trainer.kept = Some(Kept {
            place,
            checkpoint,
            interval: (interval.get() as u64)
                .min(plan.steps())
                .next_multiple_of(plan.epoch()),
            granted: 0,
            fresh: 0,
        });
        Ok(trainer)
    }

    /// What the optimizer and the clip norm were.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let damaged = || Error::from(CheckpointError::Damaged);
        let vector = |name| checkpoint.vectors.get(name).cloned().unwrap_or_default();
        let count = |name| match checkpoint.scalars.get(name) {
            Some(&count) if count >= 0.0 => Ok(count as u64),
            None => Ok(0),
            _ => Err(damaged()),
        };
        if checkpoint.steps_kept() == 0 {
            return Ok(());
        }
        let state = [vector(FIRST), vector(SECOND)];
        self.method.optimizer.restore(count(TAKEN)?, state)?;
        if let Some(average) = &mut self.method.average {
            average.restore(count(AVERAGED)?, vector(AVERAGE))?;
        }
        if let Some(moving) = &mut self.moving {
            let norm = checkpoint.scalars.get(CLIP).ok_or_else(damaged)?;
            *moving = moving.at(*norm)?;
        }
        Ok(())
    }

    /// How many steps the parameters hold: fewer than were begun, if some were lost.
    pub fn steps_kept(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.checkpoint.steps_kept() + kept.fresh,
            None => self.taken(),
        }
    }

    /// Writes what was done, and gives back the steps that were counted and not taken, but for those of an epoch that was begun: whoever stops now and goes on later has lost
    /// nothing, or what was left of that epoch. The run may go on at once, too: the next step is counted anew.
    pub fn pause(&mut self) -> Result<()> {
        let epoch = self.plan.epoch();
        self.write(|kept| {
            let Kept {
                place,
                checkpoint,
                granted,
                ..
            } = kept;
            place.give_back(checkpoint, granted, epoch)
        })
    }

    /// How many steps are spent, those included that were counted beforehand.
    pub fn steps_begun(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.checkpoint.steps_begun(),
            None => self.taken(),
        }
    }

    /// The next step is begun where the run is kept, with some that follow, before it is taken. What was done since the last time is written with that.
    pub(super) fn count(&mut self) -> Result<()> {
        // Steps that were granted are taken without a write, which would find out.
        same_process(self.process)?;
        if self.kept.as_ref().is_some_and(|kept| kept.granted == 0) {
            self.write(|kept| {
                kept.granted = kept.place.begin(&mut kept.checkpoint, kept.interval)?;
                Ok(())
            })?;
        }
        let steps = self.plan.steps();
        let Some(kept) = &mut self.kept else {
            return Ok(());
        };
        kept.granted = kept
            .granted
            .checked_sub(1)
            .ok_or(Error::StepsTaken { steps })?;
        Ok(())
    }

    /// Writes what was done since the last time.
    pub(super) fn keep(&mut self) -> Result<()> {
        self.write(|kept| kept.place.keep(&mut kept.checkpoint))
    }

    /// Notes what was done since the last time, and writes it as `write` does.
    fn write(
        &mut self,
        write: impl FnOnce(&mut Kept) -> std::result::Result<(), CheckpointError>,
    ) -> Result<()> {
        let Some(kept) = &mut self.kept else {
            return Ok(());
        };
        if kept.fresh > 0 {
            let state = (&self.parameters[..], &self.method, self.moving.as_ref());
            save(state, &mut kept.checkpoint);
            kept.checkpoint.done(std::mem::take(&mut kept.fresh));
        }
        Ok(write(kept)?)
    }
}

/// Notes what a run is now: parameters, what becomes of noisy sums, and the clip norm where it moves.
pub(super) fn save(
    (parameters, method, moving): (&[f32], &Method, Option<&AdaptiveQuantile>),
    checkpoint: &mut Checkpoint,
) {
    parameters.clone_into(&mut checkpoint.parameters);
    let optimizer = &method.optimizer;
    let [first, second] = optimizer.state().map(<[f32]>::to_vec);
    let mut keep = |name: &str, vector, count: Option<(&str, u64)>| {
        checkpoint.vectors.insert(name.into(), vector);
        if let Some((name, count)) = count {
            checkpoint.scalars.insert(name.into(), count as f64);
        }
    };
    keep(FIRST, first, Some((TAKEN, optimizer.taken())));
    keep(SECOND, second, None);
    if let Some(average) = &method.average {
        let (taken, sums) = average.state();
        keep(AVERAGE, sums.to_vec(), Some((AVERAGED, taken)));
    }
    if let Some(moving) = moving {
        checkpoint.scalars.insert(CLIP.into(), moving.norm());
    }
}

/// Turns are written with the first steps that are begun, and are those of all others.
fn same_turns(plan: &Plan, checkpoint: &mut Checkpoint) -> Result<()> {
    let Some(turns) = plan.turns() else {
        return Ok(());
    };
    for (name, number) in TURNS.into_iter().zip(turns) {
        // Bins and bands are below 2^53.
        let number = number as f64;
        if checkpoint.steps_begun() == 0 {
            checkpoint.scalars.insert(name.into(), number);
        } else if checkpoint.scalars.get(name) != Some(&number) {
            return Err(CheckpointError::OtherPlan.into());
        }
    }
    Ok(())
}
