//! Prepared requests on one connection, one after another.
//!
//! The request is encoded once, and nothing but the TLS of the client is between the socket and the
//! clock. The client polls its socket: the time that the system needs to wake the client up is not
//! the server's.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::{Address, client_config};

/// A POST request with its body, as it is sent.
pub struct PreparedRequest(Vec<u8>);

impl PreparedRequest {
    /// Encodes a request with a body in JSON.
    pub fn post(address: &Address, path: &str, body: &str) -> Self {
        let (host, length) = (&address.host, body.len());
        Self(
            format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\
                 Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .into_bytes(),
        )
    }
}

/// A connection without tasks, which keeps its core busy while it waits.
pub struct PollingConnection(BufReader<StreamOwned<ClientConnection, PollingStream>>);

impl PollingConnection {
    /// Connects to a server, whose certificate is not checked.
    ///
    /// # Errors
    /// Returns an error if the server does not accept the connection.
    pub fn open(address: &Address) -> Result<Self> {
        let stream = TcpStream::connect(&address.host)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let name = ServerName::try_from("localhost")?;
        let client = ClientConnection::new(Arc::new(client_config()?), name)?;
        Ok(Self(BufReader::new(StreamOwned::new(
            client,
            PollingStream(stream),
        ))))
    }

    /// Sends a request, and returns the status code and the length of the body in bytes.
    ///
    /// # Errors
    /// Returns an error if the connection fails, or if the response states no length.
    pub fn send(&mut self, request: &PreparedRequest) -> Result<(u16, usize)> {
        self.0.get_mut().write_all(&request.0)?;
        self.0.get_mut().flush()?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let code = line.split(' ').nth(1).context("no status line")?.parse()?;
        let mut length = None;
        loop {
            line.clear();
            ensure!(self.0.read_line(&mut line)? > 0, "the connection ended");
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
        let length = length.context("the response states no length")?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((code, length))
    }
}

/// A socket that is read and written without waiting.
struct PollingStream(TcpStream);

impl PollingStream {
    fn poll<T>(
        &mut self,
        mut operation: impl FnMut(&mut TcpStream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match operation(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                done => return done,
            }
        }
    }
}

impl Read for PollingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.poll(|stream| stream.read(buffer))
    }
}

impl Write for PollingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.poll(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.poll(TcpStream::flush)
    }
}
