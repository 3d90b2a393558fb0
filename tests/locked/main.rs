//! Locked deployments: the operator's policy names the plugins that may be there, and nothing that a user, a project or a model does adds one.

mod audit;
mod changes;
mod check;
mod directories;
mod frozen;
mod machine;
mod pins;
mod programs;
mod races;
mod read_only;
mod rig;
mod roads;
mod roots;
mod signed;
mod state;
mod succession;
mod upstream;
