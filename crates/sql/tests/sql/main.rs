//! Statements from text to answer, in one binary: the engine takes long to link.

mod attacks;
mod meter;
mod queries;
mod shop;
