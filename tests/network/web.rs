//! The test's own web servers, on every address of the world: what they answer is the test's, what they were sent is kept.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A connection, encrypted or not.
pub(crate) trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

/// What a server does with a request. The connection is kept for the next one unless that fails.
pub(crate) type Answer = dyn Fn(&Request, &mut dyn Wire) -> io::Result<()> + Send + Sync;

#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// A number of the connection that it came by.
    pub(crate) connection: usize,
    /// Where it went.
    pub(crate) to: SocketAddr,
    pub(crate) method: String,
    /// As it stands in the request.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// The body as it came.
    pub(crate) bytes: Vec<u8>,
    /// Everything before the body.
    pub(crate) head: String,
}

impl Request {
    /// The values of all headers of that name.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// The servers of some ports, as the test sees them.
#[derive(Clone)]
pub(crate) struct Web(Arc<Served>);

struct Served {
    answer: Box<Answer>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Where each connection went.
    connections: Vec<SocketAddr>,
    requests: Vec<Request>,
}

impl Web {
    /// Serves these ports until the test ends.
    pub(crate) fn open(
        ports: &[u16],
        answer: impl Fn(&Request, &mut dyn Wire) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let web = Self(Arc::new(Served { answer: Box::new(answer), seen: Mutex::default() }));
        for port in ports {
            web.listen(*port, |served, connection, to, mut stream| served.serve(connection, to, &mut stream));
        }
        web
    }

    /// Serves port 443 encrypted, as whoever is asked for at that address.
    pub(crate) fn open_encrypted(
        identity: impl Fn(IpAddr) -> Arc<ServerConfig> + Send + Sync + 'static,
        answer: impl Fn(&Request, &mut dyn Wire) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let web = Self(Arc::new(Served { answer: Box::new(answer), seen: Mutex::default() }));
        web.listen(443, move |served, connection, to, stream| {
            let tls = ServerConnection::new(identity(to.ip())).map_err(io::Error::other)?;
            served.serve(connection, to, &mut StreamOwned::new(tls, stream))
        });
        web
    }

    fn listen(
        &self,
        port: u16,
        serve: impl Fn(&Served, usize, SocketAddr, TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) {
        // Of both families: an address of IPv4 comes as a mapped one.
        let listener = TcpListener::bind(("::", port)).unwrap_or_else(|error| panic!("port {port}: {error}"));
        let (served, serve) = (self.0.clone(), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (served, serve) = (served.clone(), serve.clone());
                std::thread::spawn(move || {
                    let to = stream.local_addr()?;
                    let to = SocketAddr::new(to.ip().to_canonical(), port);
                    let number = served.note_connection(to);
                    serve(&served, number, to, stream)
                });
            }
        });
    }

    /// The requests so far, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.0.seen.lock().expect("what was seen").requests.clone()
    }

    /// Where the requests so far went: `1.2.3.4:80/path`.
    pub(crate) fn places(&self) -> Vec<String> {
        self.requests().iter().map(|request| format!("{}{}", request.to, request.target)).collect()
    }

    /// Where the connections so far went, with and without a request.
    pub(crate) fn connections(&self) -> Vec<SocketAddr> {
        self.0.seen.lock().expect("what was seen").connections.clone()
    }
}

impl Served {
    fn note_connection(&self, to: SocketAddr) -> usize {
        let mut seen = self.seen.lock().expect("what was seen");
        seen.connections.push(to);
        seen.connections.len()
    }

    fn serve(&self, connection: usize, to: SocketAddr, wire: &mut dyn Wire) -> io::Result<()> {
        while let Some(request) = read_request(connection, to, wire)? {
            self.seen.lock().expect("what was seen").requests.push(request.clone());
            (self.answer)(&request, wire)?;
            wire.flush()?;
        }
        Ok(())
    }
}

/// Reads a request; none if the other side says no more.
fn read_request(connection: usize, to: SocketAddr, wire: &mut dyn Wire) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if !read_more(wire, &mut bytes)? {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let headers: Vec<_> = lines.filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    while bytes.len() < end + length && read_more(wire, &mut bytes)? {}
    let bytes = bytes.split_off(end);
    let body = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(Request { connection, to, method, target, headers, body, bytes, head }))
}

fn read_more(wire: &mut dyn Wire, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 4096];
    let read = wire.read(&mut piece)?;
    bytes.extend_from_slice(&piece[..read]);
    Ok(read > 0)
}

/// An answer with this status line's end, headers and body.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

/// A page of plain text.
pub(crate) fn page(text: &str) -> Vec<u8> {
    answer("200 OK", &[("content-type", "text/plain; charset=utf-8")], text)
}

/// A redirect.
pub(crate) fn redirect(status: u16, location: &str) -> Vec<u8> {
    answer(&format!("{status} Elsewhere"), &[("location", location)], "")
}

/// Waits until the other side closes the connection.
pub(crate) fn hold(wire: &mut dyn Wire) -> io::Result<()> {
    while wire.read(&mut [0; 512])? > 0 {}
    Err(io::ErrorKind::ConnectionAborted.into())
}
