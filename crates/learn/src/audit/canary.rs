//! White-box canaries.
