//! `buyer`: asks whoever is composed with it what things cost. Alone it cannot be linked.
#![cfg(target_arch = "wasm32")]
#![expect(unsafe_code, reason = "what the bindings are made of")]

use example::shop::orders::{Extras, Payment, buy, find};

wit_bindgen::generate!({ world: "buyer", generate_all });

struct Buyer;

impl Guest for Buyer {
    fn quote(name: String, count: u8) -> Result<String, String> {
        let item = find(&name).map_err(|fault| format!("no `{name}`: {}", fault.name()))?;
        let price = buy(&item, count, &Payment::Card("1".into()), Extras::GIFT_WRAP)?;
        Ok(format!("{count} of {}: {}.{:02}", item.name, price / 100, price % 100))
    }
}

export!(Buyer);
