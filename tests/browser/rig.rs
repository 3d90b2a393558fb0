//! What these tests share with those of attacks.

pub(crate) use toolcrib_tests::browser::*;
