//! Audits of training: what attacks find, beside what plans promise.

pub(crate) mod bar;
pub(crate) mod scores;
pub(crate) mod subject;
pub(crate) mod table2;
