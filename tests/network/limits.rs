//! S-dyn-10: servers that send too much, too slowly or nothing. The call ends, the host has not grown, and the next call works.

use crate::host::Host;
use crate::names::Names;
use crate::web::{Request, Web, Wire, answer, hold, page};
use crate::world::in_a_world;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::json;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use toolcrib_tests::envelope::{kind, said};
use toolcrib_tests::resident_kib;

const PUBLIC: &str = "93.184.216.34";
/// What a flood would come to if nobody stopped it.
const FLOOD: u64 = 1 << 30;
/// What of a flood may have left the server when it is stopped: what is read, 8 MiB without the frames of chunks, and what the kernel
/// keeps on both sides, which grows to 32 MiB while the reader is slow (`tcp_rmem`).
const ENOUGH: u64 = 64 << 20;
/// What the host may grow by over all of them, in KiB.
const GROWTH: u64 = 24 << 10;

/// Kinds of errors that tell of a limit, or of a server that keeps no rule.
const STOPPED: &[&str] = &["limit", "timed_out", "unavailable", "execution_failed"];
/// The beginning of an endless page is a page too.
const CUT: &[&str] = &["ok", "limit", "timed_out"];
const TIMED_OUT: &[&str] = &["timed_out"];
const LIMIT: &[&str] = &["limit"];

/// What a server does at a path, and what may come of it.
const CASES: [(&str, &[&str]); 22] = [
    ("/stall", TIMED_OUT),
    ("/stall-in-headers", TIMED_OUT),
    ("/stall-in-body", TIMED_OUT),
    ("/drip-headers", TIMED_OUT),
    ("/drip-body", TIMED_OUT),
    ("/drip-chunks", TIMED_OUT),
    ("/long-header", STOPPED),
    ("/many-headers", STOPPED),
    ("/large-headers", LIMIT),
    ("/long-status", STOPPED),
    ("/endless-continue", STOPPED),
    ("/million-continues", &["ok", "limit", "timed_out", "unavailable"]),
    ("/endless-body", CUT),
    ("/endless-chunks", CUT),
    ("/endless-small-chunks", CUT),
    ("/endless-chunk-extension", STOPPED),
    ("/endless-trailers", STOPPED),
    ("/huge-length", CUT),
    ("/impossible-length", STOPPED),
    ("/two-lengths", STOPPED),
    ("/gzip-bomb", LIMIT),
    ("/deflate-bomb", LIMIT),
];

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Servers of bad manners.
struct Rogue {
    gzip: Vec<u8>,
    zlib: Vec<u8>,
    /// Bytes that left for the request at hand.
    sent: Arc<AtomicU64>,
}

impl Rogue {
    fn new(sent: Arc<AtomicU64>) -> Self {
        let (mut gzip, mut zlib) =
            (GzEncoder::new(Vec::new(), Compression::best()), ZlibEncoder::new(Vec::new(), Compression::best()));
        for _ in 0..256 {
            gzip.write_all(&[0; 1 << 20]).expect("memory");
            zlib.write_all(&[0; 1 << 20]).expect("memory");
        }
        Self { gzip: gzip.finish().expect("memory"), zlib: zlib.finish().expect("memory"), sent }
    }

    fn answer(&self, request: &Request, wire: &mut dyn Wire) -> io::Result<()> {
        self.sent.store(0, Ordering::SeqCst);
        let packed = |encoding, body: &[u8]| {
            answer("200 OK", &[("content-type", "text/plain"), ("content-encoding", encoding)], body)
        };
        match request.target.as_str() {
            "/stall" => hold(wire),
            "/stall-in-headers" => self.begin(wire, b"HTTP/1.1 200 OK\r\nx-a:").and_then(|()| hold(wire)),
            "/stall-in-body" => {
                self.begin(wire, b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nabc")?;
                hold(wire)
            }
            "/drip-headers" => self.drip(wire, b"HTTP/1.1 200 OK\r\nx-a: ", b"a"),
            "/drip-body" => self.drip(wire, b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n", b"a"),
            "/drip-chunks" => self.drip(wire, CHUNKED, b"1\r\na\r\n"),
            "/long-header" => self.flood(wire, b"HTTP/1.1 200 OK\r\nx-long: ", &[b'a'; 4096]),
            "/many-headers" => self.flood(wire, b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n"),
            "/large-headers" => {
                let value = "a".repeat(1000);
                let headers: Vec<_> = (0..80).map(|number| (format!("x-{number}"), value.as_str())).collect();
                let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
                self.begin(wire, &answer("200 OK", &headers, "here"))
            }
            "/long-status" => self.flood(wire, b"HTTP/1.1 200 ", &[b'a'; 4096]),
            "/endless-continue" => self.flood(wire, b"", &CONTINUE.repeat(100)),
            "/million-continues" => {
                let some = CONTINUE.repeat(1000);
                (0..1000).try_for_each(|_| self.begin(wire, &some))?;
                self.begin(wire, &page("here"))
            }
            "/endless-body" => self.flood(wire, b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n", &[b'a'; 4096]),
            "/endless-chunks" => self.flood(wire, CHUNKED, &[&b"1000\r\n"[..], &[b'a'; 4096], b"\r\n"].concat()),
            "/endless-small-chunks" => self.flood(wire, CHUNKED, &b"4\r\naaaa\r\n".repeat(500)),
            "/endless-chunk-extension" => self.flood(wire, &[CHUNKED, b"1;a="].concat(), &[b'a'; 4096]),
            "/endless-trailers" => {
                self.flood(wire, &[CHUNKED, b"1\r\na\r\n0\r\n"].concat(), &b"x-a: b\r\n".repeat(500))
            }
            "/huge-length" => {
                let head =
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9223372036854775807\r\n\r\n";
                self.flood(wire, head, &[b'a'; 4096])
            }
            "/impossible-length" => {
                self.begin(wire, b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999999\r\n\r\nabc")?;
                hold(wire)
            }
            "/two-lengths" => {
                self.begin(wire, b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd")?;
                hold(wire)
            }
            "/gzip-bomb" => self.begin(wire, &packed("gzip", &self.gzip)),
            "/deflate-bomb" => self.begin(wire, &packed("deflate", &self.zlib)),
            "/large" => self.begin(wire, &page(&"a line of a large page\n".repeat(5 << 16))),
            _ => wire.write_all(&page("here")),
        }
    }

    fn begin(&self, wire: &mut dyn Wire, bytes: &[u8]) -> io::Result<()> {
        wire.write_all(bytes)?;
        self.sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        Ok(())
    }

    /// Sends the beginning, and then the same again and again.
    fn flood(&self, wire: &mut dyn Wire, begin: &[u8], again: &[u8]) -> io::Result<()> {
        self.begin(wire, begin)?;
        while self.sent.load(Ordering::SeqCst) < FLOOD {
            self.begin(wire, again)?;
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// The same, slowly.
    fn drip(&self, wire: &mut dyn Wire, begin: &[u8], again: &[u8]) -> io::Result<()> {
        self.begin(wire, begin)?;
        loop {
            std::thread::sleep(Duration::from_millis(50));
            self.begin(wire, again)?;
        }
    }
}

#[test]
fn a_server_without_manners_costs_neither_memory_nor_the_next_call() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let sent = Arc::new(AtomicU64::new(0));
        let rogue = Rogue::new(sent.clone());
        Web::open(&[80], move |request, wire| rogue.answer(request, wire));
        let mut host = world.program().set("network.fetch_timeout_secs=5").run();
        for warm_up in ["/page", "/large", "/large", "/page"] {
            host.page(&format!("http://rogue.org{warm_up}"));
        }
        // Each thread of the host keeps some room for the next large body, and which one gets a call is left to chance.
        for largest in ["/endless-body", "/endless-chunks", "/huge-length"].repeat(4) {
            host.fetch(&format!("http://rogue.org{largest}"));
        }
        let before = resident_kib(host.pid());
        for (path, expected) in CASES {
            let begin = Instant::now();
            let answer = host.fetch(&format!("http://rogue.org{path}"));
            let (took, sent) = (begin.elapsed(), sent.load(Ordering::SeqCst));
            let grown = resident_kib(host.pid()).saturating_sub(before);
            let what = if kind(&answer) == "ok" { "ok".into() } else { said(&answer) };
            println!("{path}: {what:.200} ({took:?}, {sent} bytes sent, {grown} KiB grown)");
            assert!(expected.contains(&kind(&answer)), "{path}: {what}, expected {expected:?}");
            assert!(took < Duration::from_secs(30), "{path}: {took:?}");
            // What is thrown away as it comes is bounded by the time alone.
            let is_bounded = sent < ENOUGH || path.ends_with("-continue") || path.ends_with("-continues");
            assert!(is_bounded, "{path}: {sent} bytes were sent before anybody minded");
            host.page(&format!("http://rogue.org/after{path}"));
        }
        let grown = resident_kib(host.pid()).saturating_sub(before);
        assert!(grown <= GROWTH, "the host has grown by {grown} KiB");
    });
}

/// A body that is kept whole by nobody else: the plugin reads up to its own limit, the host up to 8 MiB.
#[test]
fn a_body_ends_where_the_plugin_wanted_and_at_eight_mebibytes_at_most() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        Web::open(&[80], |_, wire| wire.write_all(&page(&"a".repeat(9 << 20))));
        let grant = [r#"http.hosts=["large.org"]"#, r#"http.methods=["GET"]"#];
        // What comes back is the length of the text alone: results have a limit of their own.
        let mut host = world.program().guest("requester", &grant).set("limits.result_kib=65536").run();
        for limit in [0, 1, 1000, 1 << 20] {
            let arguments = json!({ "method": "GET", "url": format!("http://large.org/{limit}"), "limit": limit });
            let answer = host.call("request", arguments);
            let body = answer["result"]["body"].as_str().map(str::len);
            assert_eq!(
                (body, &answer["result"]["truncated"]),
                (Some(limit), &json!(true)),
                "{limit}: {:?}",
                answer["error"]
            );
        }
        let arguments = json!({ "method": "GET", "url": "http://large.org/more", "limit": u32::MAX });
        let answer = host.call("request", arguments);
        let body = answer["result"]["body"].as_str().map_or(0, str::len);
        println!("of 9 MiB came {body} bytes: {}", answer["error"]);
        assert!(body <= 8 << 20, "{body}");
    });
}

#[test]
fn ordinary_compression_is_undone() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let text: String = (0..20_000).map(|number| format!("line {number} of a page\n")).collect();
        let (mut gzip, mut zlib) =
            (GzEncoder::new(Vec::new(), Compression::default()), ZlibEncoder::new(Vec::new(), Compression::default()));
        gzip.write_all(text.as_bytes()).expect("memory");
        zlib.write_all(text.as_bytes()).expect("memory");
        let (gzip, zlib) = (gzip.finish().expect("memory"), zlib.finish().expect("memory"));
        Web::open(&[80], move |request, wire| {
            let (encoding, body) = match request.target.as_str() {
                "/gzip" => ("gzip", &gzip[..]),
                "/deflate" => ("deflate", &zlib[..]),
                "/cut" => ("gzip", &gzip[..gzip.len() / 2]),
                "/false" => ("gzip", &b"this is no gzip"[..]),
                "/unknown" => ("x-unknown", &b"?"[..]),
                _ => ("identity", &b"here"[..]),
            };
            wire.write_all(&answer("200 OK", &[("content-type", "text/plain"), ("content-encoding", encoding)], body))
        });
        let mut host = world.program().run();
        for path in ["/gzip", "/deflate"] {
            let page = host.page(&format!("http://packed.org{path}"));
            assert_eq!(page["bytes"], text.len(), "{page}");
            assert!(page["text"].as_str().is_some_and(|text| text.contains("line 7 of a page")), "{page}");
        }
        for path in ["/false", "/unknown"] {
            let answer = host.fetch(&format!("http://packed.org{path}"));
            assert!(["execution_failed", "unavailable"].contains(&kind(&answer)), "{path}: {answer}");
            println!("{path}: {}", said(&answer));
        }
        // What is there of it may be shown, but never as the whole.
        let cut = host.fetch("http://packed.org/cut");
        assert_ne!(cut["result"]["bytes"], text.len(), "{cut}");
        host.page("http://packed.org/plain");
    });
}

/// Nobody answers at this address, not even that there is nobody.
fn silent_address(host: &mut Host) -> Duration {
    // What a start takes does not count.
    host.denied("http://127.0.0.1/");
    let begin = Instant::now();
    let answer = host.fetch("http://93.184.216.77/");
    let took = begin.elapsed();
    assert!(["timed_out", "unavailable"].contains(&kind(&answer)), "{answer}");
    println!("after {took:?}: {}", said(&answer));
    took
}

#[test]
fn a_connection_that_does_not_come_about_is_waited_for_five_seconds() {
    in_a_world(|world| {
        world.ip(&["route", "add", "93.184.216.77/32", "dev", "lo", "table", "local"]);
        let mut host = world.program().set("network.fetch_timeout_secs=60").run();
        let took = silent_address(&mut host);
        assert!(took < Duration::from_secs(12), "{took:?}");
        let mut host = world.program().set("network.fetch_timeout_secs=1").run();
        let took = silent_address(&mut host);
        assert!(took < Duration::from_millis(4500), "{took:?}");
    });
}

#[test]
fn a_server_that_thinks_for_longer_than_fifteen_seconds_is_not_waited_for() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        Web::open(&[80], |_, wire| hold(wire));
        let mut host = world.program().set("network.fetch_timeout_secs=60").run();
        let begin = Instant::now();
        let answer = host.fetch("http://thinker.org/");
        assert_eq!(kind(&answer), "timed_out", "{answer}");
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    });
}
