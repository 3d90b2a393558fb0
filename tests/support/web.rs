//! A web server on a loopback port, for pages that a tool or a benchmark fetches. Servers of bad manners are in `tests/network`.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Answers every request with the page for its path, as HTML, over connections that stay open.
pub fn serve(page: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let page = Arc::new(page);
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let page = page.clone();
            std::thread::spawn(move || _ = answer(&connection, &*page));
        }
    });
    address
}

fn answer(connection: &TcpStream, page: &dyn Fn(&str) -> String) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(connection), connection);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let page = page(head.split(' ').nth(1).unwrap_or_default());
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n", page.len());
        writer.write_all((head + &page).as_bytes())?;
    }
}
