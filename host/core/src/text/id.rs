//! Names that nobody can guess.

/// Returns 128 random bits in hex.
pub fn random_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    hex::encode(bytes)
}
