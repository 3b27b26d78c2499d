//! What may leave.

use whit_core::Event;

/// A value that came out of a mechanism, with the event that made it. Only mechanisms in this crate can make one from a
/// [`Secret`](whit_core::Secret). Anyone may compute on a release, which is post-processing as long as the computation sees nothing
/// private besides: a closure given to [`map`](Self::map) must not have taken anything out of a secret.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the budget for a release is spent whether it is looked at or not"]
pub struct Release<T> {
    value: T,
    event: Event,
}

impl<T> Release<T> {
    pub(crate) fn new(value: T, event: Event) -> Self {
        Self { value, event }
    }

    /// The released value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// What was done to the data to get it.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Post-processing: any function of a release is as private as the release.
    pub fn map<U>(self, compute: impl FnOnce(T) -> U) -> Release<U> {
        Release {
            value: compute(self.value),
            event: self.event,
        }
    }

    /// Two releases as one, with both events. Refused if they speak of different neighbour relations.
    pub fn and<U>(self, other: Release<U>) -> whit_core::Result<Release<(T, U)>> {
        Ok(Release {
            value: (self.value, other.value),
            event: self.event.and(other.event)?,
        })
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}
