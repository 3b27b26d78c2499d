//! A value computed from private data.

/// Wraps what private data has touched. It cannot be printed, compared or serialised, and only a mechanism turns it into a
/// release.
///
/// ```compile_fail
/// # use whit_core::Secret;
/// println!("{:?}", Secret::new(42));
/// ```
#[must_use = "a secret that is dropped was computed for nothing"]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Marks a value as private.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Computes on, still in secret. What `compute` does must not be seen from outside: no output, no error, no panic, and
    /// no time that depends on the value.
    pub fn map<U>(self, compute: impl FnOnce(T) -> U) -> Secret<U> {
        Secret(compute(self.0))
    }

    /// Borrows the wrapped value, still in secret.
    pub const fn as_ref(&self) -> Secret<&T> {
        Secret(&self.0)
    }

    /// Takes the value out. Whoever calls this owns the guarantee: only mechanisms and bounded aggregation should.
    pub fn expose(self) -> T {
        self.0
    }
}
