//! How a batch is gone through: which micro-batches there are, who takes them, and where their sums are carried.
//!
//! A thread takes micro-batches one after the other. If sums are taken jointly, all of a group are summed once every one of
//! them was differentiated, piece by piece: each half of the group by itself, and then the two sums are added. A piece is at home with one of the
//! halves. So two threads, each with one half and the pieces at home there, need to hand each other sums only, which are smaller than what they are
//! made of. Who takes what changes nothing: a sum is formed in the same order by whoever forms it, which of two sums comes first does not
//! matter to their sum, and whole numbers are added in any order.

use std::ops::{AddAssign, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};

use whit_mechanism::crew;

use super::BatchRows;
use crate::clip::{Clip, Clipped};
use crate::layer::{Kept, Prepared, Sum};
use crate::network::{Buffers, Grouping, Network, Weights};
use crate::tensor::sized;

/// Up to so many parameters each thread has a total of its own.
const OWN_TOTAL: usize = 1 << 15;

/// Parameters that are carried under one lock.
const CARRIED: usize = 1 << 14;

/// What a thread has for itself.
#[derive(Default)]
pub(super) struct Worker {
    pub(super) buffers: Buffers,
    partial: Vec<f32>,
    other: Vec<f32>,
    squares: Vec<f64>,
    own: Vec<f32>,
    /// The weights of this step, where each thread packs them for itself and has done so.
    prepared: Vec<Prepared>,
    is_prepared: bool,
    pub(super) below: i64,
}

/// What threads leave for each other in a joint sum.
#[derive(Default)]
pub(super) struct Waiting {
    /// Micro-batches that were differentiated, each layer by layer.
    kept: Vec<Mutex<Vec<Kept>>>,
    left: Left,
}

/// Pieces of the sums over one half of a group, for whoever has the other.
#[derive(Default)]
struct Left(Vec<Mutex<Piece>>);

/// The sum of one half, if it is there.
#[derive(Default)]
struct Piece {
    sum: Vec<f32>,
    is_there: bool,
}

impl Left {
    /// Room for so many, and none is there, whatever a step that panicked has left.
    fn clear_for(&mut self, count: usize) {
        self.0.resize_with(self.0.len().max(count), Mutex::default);
        for piece in &mut self.0 {
            let piece = piece.get_mut().unwrap_or_else(PoisonError::into_inner);
            piece.is_there = false;
        }
    }
}

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
        if network.grouping(slots).is_joint() && least > 1 {
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

    /// The micro-batches that are carried together: as many as are allowed.
    pub(super) fn groups(&self, grouping: Grouping) -> Vec<Range<usize>> {
        let (count, most) = (self.micro_batches, grouping.most());
        (0..count)
            .step_by(most)
            .map(|first| first..(first + most).min(count))
            .collect()
    }
}

/// The halves of so many micro-batches that are summed jointly. One alone is in the second.
pub(super) fn halves(count: usize) -> [Range<usize>; 2] {
    [0..count / 2, count / 2..count]
}

/// A piece of a sum: the sums of two halves of the examples, or the one that there is and nothing.
pub(super) type Halves<'a> = [&'a [f32]; 2];

/// A piece of the total.
struct Place<'a, T> {
    layer: usize,
    piece: usize,
    /// The half of a group with which it is at home.
    home: usize,
    total: Mutex<Carried<'a, T>>,
}

/// What was carried, and whether nothing was so far.
struct Carried<'a, T> {
    total: &'a mut [T],
    fresh: bool,
}

impl<T> Place<'_, T> {
    fn carry(&self, sum: Halves, carry: impl Fn(&mut [T], Halves, bool)) {
        let mut carried = lock(&self.total);
        let fresh = std::mem::replace(&mut carried.fresh, false);
        carry(carried.total, sum, fresh);
    }
}

/// The weights of a step.
#[derive(Clone, Copy)]
pub(super) struct Packed<'a> {
    pub(super) params: &'a [f32],
    /// As products want them, for all threads; or each makes them for itself.
    pub(super) common: Option<&'a [Prepared]>,
}

/// A batch on its way through a network.
pub(super) struct Step<'a, F> {
    pub(super) network: &'a Network,
    /// Examples of a micro-batch, at most.
    pub(super) slots: usize,
    pub(super) weights: Packed<'a>,
    pub(super) batch: BatchRows<'a>,
    /// Sets the factors of a micro-batch that was differentiated.
    pub(super) factors: F,
}

impl<F: Fn(&mut Worker) + Sync> Step<'_, F> {
    /// Sums the batch in floats. `carry(total, halves, fresh)` adds a sum to a piece of the total, or writes it there if it is
    /// fresh.
    pub(super) fn narrow<T: Send + Copy + Default + AddAssign>(
        &self,
        workers: &mut [Worker],
        waiting: &mut Waiting,
        total: &mut [T],
        carry: impl Fn(&mut [T], Halves, bool) + Sync,
    ) {
        let cut = Cut::new(self.network, self.slots, self.batch.rows.len());
        let grouping = self.network.grouping(self.slots);
        let groups = cut.groups(grouping);
        match grouping {
            _ if groups.is_empty() => total.fill(T::default()),
            Grouping::Joint(_) => {
                let places = self.places(total);
                for group in groups {
                    self.jointly(cut, group, workers, waiting, &places, &carry);
                }
            }
            Grouping::Loose(_) => self.loosely(cut, &groups, workers, total, carry),
        }
    }

    /// The pieces of the total. The first half of all parameters, or a little more, is at home with the first half of a group.
    fn places<'b, T>(&self, total: &'b mut [T]) -> Vec<Place<'b, T>> {
        let (middle, mut first) = (total.len().div_ceil(2), 0);
        let mut rest = total;
        let pieces = self.network.joint_pieces();
        let places = pieces.map(|(layer, piece, len)| {
            let (total, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            let home = usize::from(first + len / 2 >= middle);
            first += len;
            Place {
                layer,
                piece,
                home,
                total: Mutex::new(Carried { total, fresh: true }),
            }
        });
        places.collect()
    }

    /// Each thread adds up the micro-batches of a group and carries their sum, and so on. It carries small sums to a total of its own, since
    /// it would have to fetch a common one from the others' caches again and again.
    fn loosely<T: Send + Copy + Default + AddAssign>(
        &self,
        cut: Cut,
        groups: &[Range<usize>],
        workers: &mut [Worker],
        total: &mut [T],
        carry: impl Fn(&mut [T], Halves, bool) + Sync,
    ) {
        total.fill(T::default());
        let len = total.len();
        let sum = |worker: &mut Worker, group: usize| {
            sized(&mut worker.partial, len).fill(0.0);
            for micro_batch in groups[group].clone() {
                self.differentiate(worker, cut.rows(micro_batch));
                let sum = Sum::Narrow(&mut worker.partial[..len]);
                self.network.accumulate(&mut worker.buffers, sum);
            }
        };
        if len <= OWN_TOTAL {
            let (first, others) = workers.split_at_mut(1);
            let mut totals = vec![vec![T::default(); len]; others.len().min(groups.len())];
            let own = first.iter_mut().zip([&mut *total]);
            let others = others.iter_mut().zip(&mut totals);
            let own: Vec<_> = own
                .chain(others.map(|(w, total)| (w, &mut total[..])))
                .collect();
            let parts = crew::even(0..groups.len(), own.len());
            crew::share(own, parts, |(worker, total), group| {
                sum(worker, group);
                carry(total, [&worker.partial[..len], &[]], false);
            });
            for more in totals {
                total.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
            }
            return;
        }
        let places: Vec<_> = total.chunks_mut(CARRIED).map(Mutex::new).collect();
        parallel(workers, groups.len(), |worker, group| {
            sum(worker, group);
            let sums = worker.partial[..len].chunks(CARRIED);
            for (place, sum) in places.iter().zip(sums) {
                carry(&mut lock(place), [sum, &[]], false);
            }
        });
    }

    /// All threads differentiate a group, then sum it.
    fn jointly<T: Send>(
        &self,
        cut: Cut,
        group: Range<usize>,
        workers: &mut [Worker],
        waiting: &mut Waiting,
        places: &[Place<T>],
        carry: impl Fn(&mut [T], Halves, bool) + Sync,
    ) {
        let count = group.len();
        let kept = &mut waiting.kept;
        kept.resize_with(kept.len().max(count), Mutex::default);
        // More threads than two would hand each other more than they save.
        if workers.len() == 2 && count > 1 {
            return self.apart(cut, group, workers, waiting, places, carry);
        }
        parallel(workers, count, |worker, index| {
            let rows = cut.rows(group.start + index);
            self.keep(worker, rows, &kept[index]);
        });
        let kept: Vec<_> = kept[..count].iter().map(lock).collect();
        let kept: Vec<&[Kept]> = kept.iter().map(|layers| &***layers).collect();
        let [first, second] = halves(count).map(|half| &kept[half]);
        parallel(workers, places.len(), |worker, at| {
            let place = &places[at];
            let sum = sized(&mut worker.partial, self.len(place));
            self.joint_sum(place, second, sum);
            if first.is_empty() {
                return place.carry([sum, &[]], &carry);
            }
            let other = sized(&mut worker.other, sum.len());
            self.joint_sum(place, first, other);
            place.carry([sum, other], &carry);
        });
    }

    /// Each of two threads differentiates one half of a group and sums it, piece by piece, those first that are at home with the other. Whoever
    /// comes second to a piece finds the sum of the other half there, and carries both: nobody waits for the other to be done.
    fn apart<T: Send>(
        &self,
        cut: Cut,
        group: Range<usize>,
        workers: &mut [Worker],
        waiting: &mut Waiting,
        places: &[Place<T>],
        carry: impl Fn(&mut [T], Halves, bool) + Sync,
    ) {
        let Waiting { kept, left } = waiting;
        left.clear_for(places.len());
        let each = workers.iter_mut().zip(halves(group.len())).enumerate();
        crew::side_by_side(each, |(half, (worker, indices))| {
            for index in indices.clone() {
                self.keep(worker, cut.rows(group.start + index), &kept[index]);
            }
            let kept: Vec<_> = kept[indices].iter().map(lock).collect();
            let kept: Vec<&[Kept]> = kept.iter().map(|layers| &***layers).collect();
            let with = |home: usize| (0..places.len()).filter(move |&at| places[at].home == home);
            for at in with(1 - half).chain(with(half)) {
                let (place, left) = (&places[at], &mut *lock(&left.0[at]));
                let len = self.len(place);
                if left.is_there {
                    let sum = sized(&mut worker.partial, len);
                    self.joint_sum(place, &kept, sum);
                    place.carry([sum, &left.sum[..len]], &carry);
                } else {
                    self.joint_sum(place, &kept, sized(&mut left.sum, len));
                    left.is_there = true;
                }
            }
        });
    }

    /// Differentiates a micro-batch and keeps it.
    fn keep(&self, worker: &mut Worker, rows: Range<usize>, kept: &Mutex<Vec<Kept>>) {
        self.differentiate(worker, rows);
        self.network.keep(&mut worker.buffers, &mut lock(kept));
    }

    fn len<T>(&self, place: &Place<T>) -> usize {
        self.network.joint_len(place.layer, place.piece)
    }

    fn joint_sum<T>(&self, place: &Place<T>, kept: &[&[Kept]], sum: &mut [f32]) {
        let Place { layer, piece, .. } = *place;
        self.network.joint_sum(layer, piece, kept, sum);
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
        let Packed { params, common } = self.weights;
        if common.is_none() && !worker.is_prepared {
            self.network.prepare(params, 1, &mut worker.prepared);
            worker.is_prepared = true;
        }
        let prepared = common.unwrap_or(&worker.prepared);
        let weights = Weights { params, prepared };
        self.network.differentiate(weights, &mut worker.buffers);
        (self.factors)(worker);
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
    /// Forgets the step before.
    pub(super) fn begin(&mut self) {
        self.is_prepared = false;
        self.below = 0;
    }

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

/// Calls `work` with each number below `count`, on all workers.
fn parallel(workers: &mut [Worker], count: usize, work: impl Fn(&mut Worker, usize) + Sync) {
    let parts = crew::even(0..count, workers.len());
    crew::share(workers, parts, |worker, index| work(worker, index));
}

/// Memory that a panic left is as good as any: whoever uses it writes all of it first.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
