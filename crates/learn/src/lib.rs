//! Private learning: models trained so that no one's presence in the data can be told from them.

pub mod aligned;
#[cfg(test)]
mod canary_test;
pub mod card;
pub mod checkpoint;
pub mod classical;
pub mod clip;
pub mod clipped_sum;
pub mod curve;
pub mod data;
pub mod draft;
mod error;
pub mod evaluate;
pub mod features;
pub mod layer;
pub mod loss;
mod matmul;
pub mod model;
pub mod network;
pub mod onnx;
pub mod optimizer;
pub mod pate;
pub mod payment;
pub mod plan;
mod poisson;
pub mod recipe;
pub mod safetensors;
pub mod sampler;
pub mod scatter;
pub mod schedule;
pub mod search;
mod tensor;
pub mod train;
pub mod validate;

pub use draft::{AdaptiveDraft, Draft, FactorDraft, NoiseDraft, SamplerDraft};
pub use error::{Error, Result};
pub use features::Features;
pub use optimizer::{Average, Optimizer, Rule};
pub use payment::{Payer, Payment, Priced, Uncharged};
pub use plan::{Correlated, Noise, Plan, Summary};
pub use recipe::Recipe;
pub use sampler::{Batch, Sampler};
pub use scatter::Scattering;
pub use schedule::Schedule;
pub use search::{Chosen, SearchPlan};
pub use train::{Clipping, Method, Trainer};
