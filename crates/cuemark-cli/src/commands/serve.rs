//! `cuemark serve`: an index over HTTP, with a page.

use std::net::SocketAddr;

use camino::Utf8PathBuf;
use cuemark::IndexPlace;
use cuemark_server::ServerOptions;

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
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Let the API add videos from this folder; may be repeated.
    #[arg(long, value_name = "DIR")]
    allow_add: Vec<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let index = args.place.open(None)?;
    // From the environment, since everybody on the machine can read a command line.
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    let options =
        ServerOptions { listen: args.listen, token, addable: args.allow_add.clone(), ..ServerOptions::default() };
    cuemark_server::serve(index, options, |address| say(&format!("listening on http://{address}")))?;
    Ok(Outcome::ok(""))
}
