//! The call path from outside: one request, one envelope, one outcome in the audit trail, whatever happens on the way.

mod approvals;
mod arguments;
mod audit;
mod bounds;
mod cache;
mod cancellation;
mod embedder;
mod embeddings;
mod envelope;
mod formats;
mod isolation;
mod leaks;
mod records;
mod registry;
mod repeats;
mod running;
mod seen;
mod soak;
mod state;
mod toolsets;
mod world;
