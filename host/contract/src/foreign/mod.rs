//! Components that were not written for Toolcrib: their exported functions as tools, and JSON in place of typed values.
//!
//! What is here reads types and converts values. Who links, runs and confines such a component is elsewhere.
//!
//! - `exports.rs`: from the bytes of a component to its functions, with the names and schemas of tools.
//! - `docs.rs`: what its authors wrote about its types.
//! - `names.rs`: what the tools are called.
//! - `schema.rs`: WIT types as JSON Schema; its table says how each type is written.
//! - `values.rs`: values from JSON, and results as JSON, by the same table.

mod docs;
mod exports;
mod names;
mod schema;
mod values;

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod sample;

pub use exports::{Exports, Function, Signature, Unread, check_depth, check_type_scopes, exports};
pub use schema::Bounds;
pub use values::{Outcome, arguments, json_of, result, value_of};
