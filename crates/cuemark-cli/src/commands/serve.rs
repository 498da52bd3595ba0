//! `cuemark serve`: an index over HTTP, with a page.

use std::net::{SocketAddr, ToSocketAddrs as _};

use camino::Utf8PathBuf;
use cuemark::IndexPlace;
use cuemark_server::{Keeping, ServerOptions};

use crate::output::{Outcome, say};

/// The variable that holds the token.
const TOKEN: &str = "CUEMARK_TOKEN";

/// Serve an index: a page to search with, and an API.
///
/// Listens on this machine only, unless told otherwise; then every request must bring the token that the variable
/// CUEMARK_TOKEN holds. Ctrl-C lets running requests finish.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: IndexPlace,
    /// Where to listen: an address or a name of this machine with a port, or a port alone for this machine only.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878", value_parser = address)]
    listen: SocketAddr,
    /// Let the API add videos from this folder; may be repeated.
    #[arg(long, value_name = "DIR")]
    allow_add: Vec<Utf8PathBuf>,
    /// Keep nothing that clients say: no judgements of answers.
    #[arg(long, conflicts_with = "allow_add")]
    read_only: bool,
}

/// `127.0.0.1:7878`, `localhost:7878` or `7878`.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let mut found =
        text.to_socket_addrs().map_err(|error| format!("an address and a port, such as localhost:7878: {error}"))?;
    found.next().ok_or_else(|| format!("`{text}` is no address of this machine"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let index = args.place.open(None)?;
    // From the environment, since everybody on the machine can read a command line.
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    let keeping = if args.read_only { Keeping::Nothing } else { Keeping::Judgements };
    let addable = args.allow_add.clone();
    let options = ServerOptions { listen: args.listen, token, addable, keeping, ..ServerOptions::default() };
    cuemark_server::serve(index, options, |address| say(&format!("listening on http://{address}")))?;
    Ok(Outcome::ok(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_a_name_and_an_address_are_understood() {
        for text in ["7878", ":7878", "127.0.0.1:7878"] {
            assert_eq!(address(text).unwrap().to_string(), "127.0.0.1:7878");
        }
        assert_eq!(address("localhost:7878").unwrap().port(), 7878);
        assert!(address("7878 please").is_err() && address("99999").is_err());
    }
}
