//! A token server, as providers of mail have one: what it was asked, and what a test has it answer.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// The name of the server.
pub const TOKENS: &str = "oauth2.example.com";

/// What it was sent.
#[derive(Clone, Debug)]
pub struct Posted {
    /// The path.
    pub path: String,
    /// The fields of the form, as they were written.
    pub form: Vec<(String, String)>,
}

impl Posted {
    /// The value of a field, as it was written; empty where there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        self.form.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

/// The server.
pub struct Tokens {
    /// Where it listens.
    pub port: u16,
    asked: Arc<Mutex<Vec<Posted>>>,
}

impl Tokens {
    /// Serves by a certificate. What it answers may depend on how many requests there were, from 1.
    #[must_use]
    pub fn new(
        certificate: Arc<ServerConfig>,
        answer: impl Fn(usize, &Posted) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (hears, answer) = (asked.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (hears, answer, certificate) = (hears.clone(), answer.clone(), certificate.clone());
                std::thread::spawn(move || -> std::io::Result<()> {
                    let greeted = ServerConnection::new(certificate).expect("a configuration that can be used");
                    let mut wire = BufReader::new(StreamOwned::new(greeted, socket));
                    let posted = read(&mut wire)?;
                    let count = {
                        let mut heard = hears.lock().expect("no test panics while it holds the requests");
                        heard.push(posted.clone());
                        heard.len()
                    };
                    let wire = wire.get_mut();
                    wire.write_all(&answer(count, &posted))?;
                    wire.conn.send_close_notify();
                    wire.flush()
                });
            }
        });
        Self { port, asked }
    }

    /// What it was sent, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Posted> {
        self.asked.lock().expect("no test panics while it holds the requests").clone()
    }
}

/// An answer with a token that counts for so many seconds, and more fields, each with a comma before it.
#[must_use]
pub fn token(token: &str, expires_in: u32, more: &str) -> Vec<u8> {
    let body = format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":{expires_in}{more}}}"#);
    answer("200 OK", "content-type: application/json\r\n", &body)
}

/// Any answer.
#[must_use]
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).into()
}

fn read(wire: &mut impl BufRead) -> std::io::Result<Posted> {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if wire.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    wire.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let field = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(Posted { path, form: body.split('&').filter_map(field).collect() })
}
