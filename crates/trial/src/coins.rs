//! Entropy for many draws: the shipped stream cipher, keyed once for a whole trial.
//!
//! A release that ships opens a key of its own each time, which a trial of a billion draws would spend most of its time on. The words are
//! those of the same cipher; some cases open real keys as well, so that both ways are tried.

use std::cell::RefCell;
use std::rc::Rc;

use whit_core::{Bits, Entropy, EntropyFailure};
use whit_mechanism::{ChaChaBits, OsEntropy};

/// One stream, handed out again and again. Stays on its thread.
pub struct Coins(Rc<RefCell<ChaChaBits>>);

impl Coins {
    /// A stream with a fresh key.
    pub fn fresh() -> Result<Self, EntropyFailure> {
        Ok(Self(Rc::new(RefCell::new(OsEntropy::new().open()?))))
    }
}

/// What [`Coins`] hand out.
pub struct Handle(Rc<RefCell<ChaChaBits>>);

impl Bits for Handle {
    const WIDTH: u32 = ChaChaBits::WIDTH;

    #[inline]
    fn word(&mut self) -> u64 {
        self.0.borrow_mut().word()
    }
}

impl Entropy for Coins {
    type Bits = Handle;

    fn open(&mut self) -> Result<Handle, EntropyFailure> {
        Ok(Handle(Rc::clone(&self.0)))
    }
}
