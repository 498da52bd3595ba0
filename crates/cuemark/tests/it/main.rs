//! Requests as people meet them: written down, typed on a command line, run on small files.

mod requests;
mod scoring;
