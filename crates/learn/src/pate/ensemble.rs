//! # An ensemble of teachers
//! Private examples are [dealt out](super::partition), each part teaches one teacher, without any noise, and each teacher votes on public queries. What comes out is a `Secret<Votes>`, which nothing but an
//! aggregator turns into anything public.
//!
//! **Claim.** Neighbouring data sets, in the relation of the [`Rule`], give votes in which one teacher's differ, on all queries at once and in any way.
//! **Proof.** 1. Neighbours deal the same examples in the same order to all teachers but one (`partition.rs`). 2. What a teacher sees of its examples is a function of each of them and of public constants (`view.rs`).
//! 3. A teacher is a function of what it sees, of its own number and of public words ([`Learn`]): teachers share no state, and each is made on one thread. A teacher without examples votes, too. 4. Its votes are a function of the teacher and of the queries.
//! So all other teachers have the same votes, bit by bit. ∎ The votes carry that relation, and terms for another one are refused. It is what `whit_mechanism::gaussian_noisy_max` requires.
//!
//! **Nothing else leaves.** Teachers are dropped once they have voted. Nothing fails for what is in the data: shapes are refused before a teacher is trained. How long it takes depends on the sizes of parts, and whoever watches
//! the clock, or the owner's progress, can see that. Votes that wait on the owner's disk are [marked private](super::ballots).

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};
use whit_core::Secret;
use whit_mechanism::crew;

use super::ballots::Ballots;
use super::learner::{Learn, classes, said};
use super::partition::{Rule, deal};
use super::view::View;
use super::votes::Votes;
use crate::data::Dataset;
use crate::error::{Error, Result, within};

/// How teachers are made. All of it is public.
#[derive(Clone, Copy)]
pub struct Ensemble<'a> {
    /// How many there are.
    pub teachers: usize,
    /// Which of them learns from an example.
    pub rule: Rule,
    /// The seed of that rule, and of the learners.
    pub seed: u64,
    /// What they see.
    pub view: &'a View,
    /// What they learn by.
    pub learner: &'a dyn Learn,
}

/// Public examples that are asked about, as the view shows them.
#[derive(Clone, Copy)]
pub struct Queries<'a> {
    /// Row by row.
    pub rows: &'a [f32],
}

/// More teachers than this do not come from one machine.
const TEACHERS_MAX: usize = 100_000;

/// How the work is done. Votes do not depend on it.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// On how many threads.
    pub threads: NonZeroUsize,
    /// Where votes are kept, if they are.
    pub ballots: Option<&'a Ballots>,
    /// Hears how many teachers have voted. For the owner: how fast they come tells about their parts.
    pub after: &'a (dyn Fn(usize) + Sync),
}

impl Ensemble<'_> {
    /// Refuses what cannot be for what is public.
    pub fn check(&self, classes_public: Option<u32>) -> Result<usize> {
        let count = self.teachers as f64;
        let passes = (1..=TEACHERS_MAX).contains(&self.teachers);
        within("the number of teachers", count, passes, "from 1 to 100,000")?;
        let classes = classes(classes_public)?;
        self.learner.check(self.view.depth(), classes)?;
        Ok(classes)
    }

    /// Trains teachers, and lets them vote on the queries.
    pub fn votes(
        &self,
        data: &Secret<Dataset>,
        queries: Queries<'_>,
        work: Work<'_>,
    ) -> Result<Secret<Votes>> {
        // Shape and classes are public, and are looked at first.
        let data = data.as_ref().expose();
        let classes = self.check(data.classes())?;
        self.view.lesson(data, &[], NonZeroUsize::MIN)?;
        let count = queries.rows.len() / self.view.depth().max(1);
        let parts = deal(data, self.rule, self.seed, self.teachers);
        let counts = Mutex::new(vec![0_u64; count * classes]);
        let (failed, done) = (Mutex::new(None), AtomicUsize::new(0));
        let lock = |error: Error| {
            let mut failed = failed.lock().unwrap_or_else(|broken| broken.into_inner());
            failed.get_or_insert(error);
        };
        let each = parts.iter().enumerate();
        crew::each(work.threads.get(), each, |(teacher, part)| {
            match self.ballot(data, (teacher, part), queries, classes, work.ballots) {
                Ok(votes) => {
                    let mut counts = counts.lock().unwrap_or_else(|broken| broken.into_inner());
                    for (query, vote) in votes.iter().enumerate() {
                        // A vote for no class is none; no learner of ours gives one.
                        if let Some(count) = counts.get_mut(query * classes + *vote as usize) {
                            *count += u64::from((*vote as usize) < classes);
                        }
                    }
                }
                Err(error) => lock(error),
            }
            (work.after)(done.fetch_add(1, Ordering::Relaxed) + 1);
        });
        if let Some(error) = failed
            .into_inner()
            .unwrap_or_else(|broken| broken.into_inner())
        {
            return Err(error);
        }
        let counts = counts
            .into_inner()
            .unwrap_or_else(|broken| broken.into_inner());
        let votes = Votes::with_teachers(&counts, classes, self.teachers as u64)?;
        Ok(Secret::new(votes.between(self.rule.neighbours())))
    }

    /// The votes of one teacher: on one thread, and of nothing but its own examples.
    fn ballot(
        &self,
        data: &Dataset,
        (teacher, part): (usize, &[usize]),
        queries: Queries<'_>,
        classes: usize,
        ballots: Option<&Ballots>,
    ) -> Result<Vec<u32>> {
        let one = NonZeroUsize::MIN;
        let lesson = self.view.lesson(data, part, one)?;
        let count = queries.rows.len() / self.view.depth().max(1);
        let key = ballots.map(|ballots| ballots.key(&lesson));
        if let (Some(ballots), Some(key)) = (ballots, &key)
            && let Some(votes) = ballots.load(teacher, key, count)
        {
            return Ok(votes);
        }
        let judge = self.learner.learn(lesson, self.seed_of(teacher), one)?;
        let said = said(&judge.scores(queries.rows, one)?, classes);
        let votes: Vec<u32> = said.into_iter().map(|class| class as u32).collect();
        if let (Some(ballots), Some(key)) = (ballots, &key) {
            ballots.keep(teacher, key, &votes)?;
        }
        Ok(votes)
    }

    /// A seed for each teacher, by its number.
    fn seed_of(&self, teacher: usize) -> u64 {
        let mut hash = Sha256::new_with_prefix(b"whit pate teacher");
        hash.update(self.seed.to_le_bytes());
        hash.update((teacher as u64).to_le_bytes());
        let [a, b, c, d, e, f, g, h, ..] = hash.finalize().0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

#[cfg(test)]
#[path = "ensemble_test.rs"]
mod tests;
