//! `raider`: makes the attack that its caller names, and says what it got. `http` and `files` have the attacks.
#![cfg(target_arch = "wasm32")]
#![expect(missing_docs, unsafe_code, reason = "what the bindings are made of")]

mod files;
mod http;

use wasip2::http::types::{IncomingRequest, ResponseOutparam};

wit_bindgen::generate!({ world: "raider" });

struct Raider;

impl Guest for Raider {
    fn attack(name: String, argument: String) -> Result<String, String> {
        match name.as_str() {
            "raw-url" => http::raw_url(&argument),
            "header" => http::header(&argument),
            "late-header" => http::late_header(&argument),
            "many" => http::many(&argument),
            "unread" => http::unread(&argument),
            "drop" => http::drop_early(&argument),
            "abandon" => http::abandon(&argument),
            "leave" => http::leave(&argument),
            "endless-body" => http::endless_body(&argument),
            "endless-answer" => http::endless_answer(&argument),
            "short-body" => http::wrong_length(&argument, "10", b"12345"),
            "long-body" => http::wrong_length(&argument, "5", b"1234567890"),
            "missing-body" => http::missing_body(&argument),
            "trailers" => http::trailers(&argument),
            "timeouts" => http::timeouts(&argument),
            "fill-fields" => http::fill_fields(&argument),
            "hoard-fields" => http::hoard_fields(&argument),
            "guess-outparam" => http::guess_outparam(&argument),

            "preopens" => files::preopens(),
            "open" => files::open(&argument),
            "read" => files::read(&argument),
            "stat" => files::stat(&argument),
            "readlink" => files::readlink(&argument),
            "symlink-at" => files::symlink_at(&argument),
            "link-at" => files::link_at(&argument),
            "rename-at" => files::rename_at(&argument),
            "unlink" => files::unlink(&argument),
            "set-times" => files::set_times(&argument),
            "write" => files::write(&argument),
            "write-through-reader" => files::write_through_reader(&argument),
            "create" => files::create(&argument),
            "truncate" => files::truncate(&argument),
            "set-size" => files::set_size(&argument),
            "sparse" => files::sparse(&argument),
            "fill" => files::fill(&argument),
            "descriptors" => files::descriptors(&argument),
            "listing" => files::listing(&argument),
            "listings" => files::listings(&argument),
            "streams" => files::streams(&argument),
            "metadata-hash" => files::metadata_hash(&argument),
            "sync" => files::sync(&argument),
            _ => Err(format!("there is no attack `{name}`")),
        }
    }
}

/// Never answers, and keeps what it would answer with.
impl wasip2::exports::http::incoming_handler::Guest for Raider {
    fn handle(_: IncomingRequest, response: ResponseOutparam) {
        std::mem::forget(response);
    }
}

/// Splits an argument into its first line and the rest.
fn first_line(argument: &str) -> Result<(&str, &str), String> {
    argument.split_once('\n').ok_or("the argument needs two lines".into())
}

/// The number in the first line of an argument, and the rest.
fn number(argument: &str) -> Result<(u64, &str), String> {
    let (number, rest) = first_line(argument)?;
    Ok((number.parse().map_err(|_| "the first line is not a number")?, rest))
}

export!(Raider);
wasip2::http::proxy::export!(Raider);
