//! `shop`: functions with types, as a component of any other host has them. It knows nothing of Toolcrib.
#![cfg(target_arch = "wasm32")]
#![expect(unsafe_code, reason = "what the bindings are made of")]

use exports::example::shop::orders::{self, Extras, Fault, Item, Payment};

wit_bindgen::generate!({ world: "shop" });

struct Shop;

/// Nobody can hold one of these but the shop itself.
struct Basket;

impl orders::GuestBasket for Basket {
    fn new() -> Self {
        Self
    }
}

impl orders::Guest for Shop {
    type Basket = Basket;

    fn find(name: String) -> Result<Item, Fault> {
        match name.as_str() {
            "lamp" => Ok(Item { name, price: 1_999, note: None }),
            "moon" => Ok(Item { name, price: u64::MAX, note: Some("far away".into()) }),
            "map" => Err(Fault::SoldOut),
            _ => Err(Fault::UnknownItem),
        }
    }

    fn buy(item: Item, count: u8, how: Payment, extras: Extras) -> Result<u64, String> {
        let price = item.price.checked_mul(count.into()).ok_or("that is more than there is")?;
        match how {
            Payment::Cash if price > 10_000 => Err("so much is not paid in cash".into()),
            Payment::Cash | Payment::Card(_) => Ok(price + if extras.contains(Extras::GIFT_WRAP) { 100 } else { 0 }),
        }
    }

    fn total(prices: Vec<u64>) -> u64 {
        prices.iter().sum()
    }
}

impl Guest for Shop {
    fn picture(size: u32) -> Vec<u8> {
        vec![7; size as usize]
    }

    fn fail(how: String) -> String {
        match how.as_str() {
            "panic" => panic!("this is the reason"),
            "spin" => loop {
                std::hint::black_box(0);
            },
            "memory" => vec![1_u8; 1 << 30].len().to_string(),
            "file" => format!("{:?}", std::fs::read_to_string("/etc/hostname")),
            "directory" => format!("{:?}", std::fs::read_dir("/").map(Iterator::count)),
            "network" => format!("{:?}", std::net::TcpStream::connect("127.0.0.1:80").map(|_| "connected")),
            "environment" => format!("{:?}", std::env::vars().collect::<Vec<_>>()),
            "arguments" => format!("{:?}", std::env::args().collect::<Vec<_>>()),
            "large" => "x".repeat((1 << 20) + 1),
            "escape" => "red: \u{1b}[31m, and \u{202e}hidden".into(),
            other => other.into(),
        }
    }

    fn wait() {
        std::thread::sleep(std::time::Duration::from_secs(3_600));
    }
}

export!(Shop);
