//! How a batch is gone through: which micro-batches there are, who takes them, and where their sums are carried.
//!
//! A thread takes micro-batches one after the other. If sums are taken jointly, all of a group are summed once every one of
//! them was differentiated, piece by piece: each piece by one thread, or all by the thread whose group it is. Who takes what changes
//! nothing: a sum is formed in the same order by whoever forms it, and whole numbers are added in any order.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use whit_mechanism::crew;

use super::BatchRows;
use crate::clip::{Clip, Clipped};
use crate::layer::{Kept, Sum};
use crate::network::{Buffers, Grouping, Network, Weights};
use crate::tensor::sized;

/// More threads than this do not have groups of their own, since each keeps what it has made of one.
const APART_THREADS: usize = 8;

/// Parameters that are carried under one lock.
const CARRIED: usize = 1 << 14;

/// What a thread has for itself.
#[derive(Default)]
pub(super) struct Worker {
    pub(super) buffers: Buffers,
    partial: Vec<f32>,
    squares: Vec<f64>,
    own: Vec<f32>,
    kept: Vec<Vec<Kept>>,
    pub(super) below: i64,
}

/// Micro-batches that wait for a joint sum, each layer by layer.
pub(super) type Waiting = Vec<Mutex<Vec<Kept>>>;

/// How a batch is cut, by its size and the network alone: into micro-batches of one size, but for the last.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    examples: usize,
    /// Examples of a micro-batch.
    size: usize,
    pub(super) micro_batches: usize,
}

impl Cut {
    /// Into micro-batches of at most `slots` examples.
    pub(super) fn new(network: &Network, slots: usize, examples: usize) -> Self {
        let mut least = examples.div_ceil(slots);
        // So that two threads have as much to do.
        if network.grouping(slots).is_apart() && least > 1 {
            least = least.next_multiple_of(2);
        }
        let size = examples.div_ceil(least.max(1)).max(1);
        Self {
            examples,
            size,
            micro_batches: examples.div_ceil(size),
        }
    }

    pub(super) fn rows(&self, micro_batch: usize) -> Range<usize> {
        let first = micro_batch * self.size;
        first..(first + self.size).min(self.examples)
    }

    /// The micro-batches that are carried together: as many as are allowed, or, where each thread has groups of its own, an even number
    /// of groups of the same size, if possible.
    pub(super) fn groups(&self, grouping: Grouping) -> Vec<Range<usize>> {
        let count = self.micro_batches;
        match grouping {
            Grouping::Joint(most) | Grouping::Loose(most) => (0..count)
                .step_by(most)
                .map(|first| first..(first + most).min(count))
                .collect(),
            Grouping::Apart(most) => {
                let groups = count.div_ceil(most).next_multiple_of(2).min(count);
                (0..groups)
                    .map(|group| group * count / groups..(group + 1) * count / groups)
                    .collect()
            }
        }
    }
}

/// A piece of the total, and whether nothing was carried there so far.
struct Place<'a, T> {
    total: &'a mut [T],
    fresh: bool,
}

/// A batch on its way through a network.
pub(super) struct Step<'a, F> {
    pub(super) network: &'a Network,
    /// Examples of a micro-batch, at most.
    pub(super) slots: usize,
    pub(super) weights: Weights<'a>,
    pub(super) batch: BatchRows<'a>,
    /// Sets the factors of a micro-batch that was differentiated.
    pub(super) factors: F,
}

impl<F: Fn(&mut Worker) + Sync> Step<'_, F> {
    /// Sums the batch in floats. `carry(total, sum, fresh)` adds a sum to a piece of the total, or writes it there if it is
    /// fresh.
    pub(super) fn narrow<T: Send + Copy + Default>(
        &self,
        workers: &mut [Worker],
        waiting: &mut Waiting,
        total: &mut [T],
        carry: impl Fn(&mut [T], &[f32], bool) + Sync,
    ) {
        let cut = Cut::new(self.network, self.slots, self.batch.rows.len());
        let grouping = self.network.grouping(self.slots);
        let groups = cut.groups(grouping);
        match grouping {
            _ if groups.is_empty() => total.fill(T::default()),
            Grouping::Joint(_) | Grouping::Apart(_) => {
                let mut places = Vec::new();
                let mut rest = total;
                for (at, piece, len) in self.network.joint_pieces() {
                    let (total, others) = rest.split_at_mut(len);
                    let fresh = true;
                    places.push((at, piece, Mutex::new(Place { total, fresh })));
                    rest = others;
                }
                let enough = workers.len() <= groups.len().min(APART_THREADS);
                if grouping.is_apart() && enough {
                    self.apart(cut, &groups, workers, &places, carry);
                } else {
                    self.jointly(cut, &groups, workers, waiting, &places, carry);
                }
            }
            Grouping::Loose(_) => {
                total.fill(T::default());
                self.loosely(cut, &groups, workers, total, carry);
            }
        }
    }

    /// Each thread adds up the micro-batches of a group and carries their sum, and so on.
    fn loosely<T: Send>(
        &self,
        cut: Cut,
        groups: &[Range<usize>],
        workers: &mut [Worker],
        total: &mut [T],
        carry: impl Fn(&mut [T], &[f32], bool) + Sync,
    ) {
        let len = total.len();
        let places: Vec<_> = total.chunks_mut(CARRIED).map(Mutex::new).collect();
        parallel(workers, groups.len(), |worker, group| {
            sized(&mut worker.partial, len).fill(0.0);
            for micro_batch in groups[group].clone() {
                self.differentiate(worker, cut.rows(micro_batch));
                let sum = Sum::Narrow(&mut worker.partial[..len]);
                self.network.accumulate(&mut worker.buffers, sum);
            }
            let sums = worker.partial[..len].chunks(CARRIED);
            for (place, sum) in places.iter().zip(sums) {
                carry(&mut lock(place), sum, false);
            }
        });
    }

    /// Each thread differentiates a group and sums it, and so on.
    fn apart<T: Send>(
        &self,
        cut: Cut,
        groups: &[Range<usize>],
        workers: &mut [Worker],
        places: &[(usize, usize, Mutex<Place<T>>)],
        carry: impl Fn(&mut [T], &[f32], bool) + Sync,
    ) {
        parallel(workers, groups.len(), |worker, group| {
            let mut kept = std::mem::take(&mut worker.kept);
            let micro_batches = groups[group].clone();
            let count = micro_batches.len();
            kept.resize_with(kept.len().max(count), Vec::new);
            for (micro_batch, kept) in micro_batches.zip(&mut kept) {
                self.differentiate(worker, cut.rows(micro_batch));
                self.network.keep(&mut worker.buffers, kept);
            }
            let layers: Vec<&[Kept]> = kept[..count].iter().map(Vec::as_slice).collect();
            // Each begins elsewhere, so that they do not wait for each other.
            let (before, from) = places.split_at(group % 2 * places.len() / 2);
            for (at, piece, place) in from.iter().chain(before) {
                let sum = sized(&mut worker.partial, self.network.joint_len(*at, *piece));
                self.network.joint_sum(*at, *piece, &layers, sum);
                lock(place).carry(sum, &carry);
            }
            worker.kept = kept;
        });
    }

    /// All threads differentiate a group, then sum it, and so on.
    fn jointly<T: Send>(
        &self,
        cut: Cut,
        groups: &[Range<usize>],
        workers: &mut [Worker],
        waiting: &mut Waiting,
        places: &[(usize, usize, Mutex<Place<T>>)],
        carry: impl Fn(&mut [T], &[f32], bool) + Sync,
    ) {
        for group in groups {
            let count = group.len();
            waiting.resize_with(waiting.len().max(count), Mutex::default);
            parallel(workers, count, |worker, index| {
                self.differentiate(worker, cut.rows(group.start + index));
                self.network
                    .keep(&mut worker.buffers, &mut lock(&waiting[index]));
            });
            let kept: Vec<_> = waiting[..count].iter().map(lock).collect();
            let kept: Vec<&[Kept]> = kept.iter().map(|layers| &***layers).collect();
            parallel(workers, places.len(), |worker, index| {
                let (at, piece, place) = &places[index];
                let sum = sized(&mut worker.partial, self.network.joint_len(*at, *piece));
                self.network.joint_sum(*at, *piece, &kept, sum);
                lock(place).carry(sum, &carry);
            });
        }
    }

    /// Sums the batch in `f64`, at most `most` examples at a time, and hands each sum to `carry`. One thread does it.
    pub(super) fn wide(&self, worker: &mut Worker, most: usize, mut carry: impl FnMut(&[f64])) {
        let cut = Cut::new(self.network, self.slots, self.batch.rows.len());
        let mut sum = vec![0.0; self.network.param_len()];
        let mut held = 0;
        for rows in (0..cut.micro_batches).map(|micro_batch| cut.rows(micro_batch)) {
            if held + rows.len() > most {
                carry(&sum);
                sum.fill(0.0);
                held = 0;
            }
            held += rows.len();
            self.differentiate(worker, rows);
            self.network
                .accumulate(&mut worker.buffers, Sum::Wide(&mut sum));
        }
        carry(&sum);
    }

    /// From rows to factors.
    fn differentiate(&self, worker: &mut Worker, rows: Range<usize>) {
        load(self.network, self.batch.part(rows), &mut worker.buffers);
        self.network
            .differentiate(self.weights, &mut worker.buffers);
        (self.factors)(worker);
    }
}

impl<T> Place<'_, T> {
    fn carry(&mut self, sum: &[f32], carry: impl Fn(&mut [T], &[f32], bool)) {
        carry(self.total, sum, self.fresh);
        self.fresh = false;
    }
}

fn load(network: &Network, batch: BatchRows, buffers: &mut Buffers) {
    buffers.shape(network, batch.rows.len());
    buffers.targets.clear();
    buffers.seeds.clear();
    let inputs = buffers.activations[0].chunks_exact_mut(network.input_len());
    for (&row, input) in batch.rows.iter().zip(inputs) {
        let target = batch.examples.load(row, input);
        if target.is_none() {
            input.fill(0.0);
        }
        // What is not a number makes an example that contributes zero, as an empty one does.
        buffers.targets.push(target.unwrap_or(f32::NAN));
    }
    buffers.seeds.extend_from_slice(batch.seeds);
}

impl Worker {
    /// From norms to factors. What is kept of an example that is not finite becomes zero.
    pub(super) fn clip(&mut self, clip: &Clip, margin: f64, network: &Network) {
        let buffers = &mut self.buffers;
        let (examples, layers) = (buffers.examples, network.trained_layers());
        buffers.factors.resize(layers * examples, 0.0);
        self.squares.resize(layers, 0.0);
        self.own.clear();
        self.own.resize(layers, 0.0);
        for example in 0..examples {
            for (layer, square) in self.squares.iter_mut().enumerate() {
                *square = buffers.norms[layer * examples + example];
            }
            let empty = buffers.targets[example].is_nan();
            let mut clipped = clip.factors(margin, &self.squares, &mut self.own);
            if empty {
                self.own.fill(0.0);
                clipped = Clipped::Never;
            }
            for (layer, &factor) in self.own.iter().enumerate() {
                buffers.factors[layer * examples + example] = factor;
            }
            match clipped {
                Clipped::Below => self.below += 1,
                Clipped::Above => {}
                Clipped::Never => network.forget(buffers, example),
            }
        }
    }
}

/// Calls `work` with each number below `count`, on all workers; whoever is free takes the next.
fn parallel(workers: &mut [Worker], count: usize, work: impl Fn(&mut Worker, usize) + Sync) {
    let next = AtomicUsize::new(0);
    let take = |worker: &mut Worker| {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            work(worker, index);
        }
    };
    let threads = workers.len().min(count);
    crew::side_by_side(&mut workers[..threads], take);
}

/// Memory that a panic left is as good as any: whoever uses it writes all of it first.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
