//! Statements from text to answer, in one binary: the engine takes long to link.

mod attacks;
mod bombs;
mod coverage;
mod files;
mod meter;
mod queries;
mod shop;
mod victim;
