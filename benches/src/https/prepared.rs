//! Prepared requests on one connection, one after another.
//!
//! The request is encoded once, and nothing but the TLS of the client is between the socket and the
//! clock, so nearly all of the measured time is the time of the server.

use std::io::{BufRead, BufReader, Read, Write};
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

/// A connection without tasks.
pub struct BlockingConnection(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl BlockingConnection {
    /// Connects to a server, whose certificate is not checked.
    ///
    /// # Errors
    /// Returns an error if the server does not accept the connection.
    pub fn open(address: &Address) -> Result<Self> {
        let stream = TcpStream::connect(&address.host)?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let client = ClientConnection::new(Arc::new(client_config()?), name)?;
        Ok(Self(BufReader::new(StreamOwned::new(client, stream))))
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
