//! What a program says on the way: the times of frames, and complaints.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The longest line that is looked at, in bytes.
const LINE: u64 = 4096;
/// The longest complaint that is kept, in characters.
const COMPLAINT: usize = 300;

/// How often a program complained, and of what first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Complaints {
    pub(crate) count: usize,
    pub(crate) first: Option<String>,
}

impl Complaints {
    fn note(&mut self, line: &str) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(without_origin(line).chars().take(COMPLAINT).collect());
        }
    }
}

/// What a listener hears.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Times of frames in seconds, as they are announced.
    pub(crate) times: Receiver<f64>,
    /// Once, when the program has nothing more to say.
    pub(crate) complaints: Receiver<Complaints>,
}

/// Reads along on a thread of its own until the program is done: one whose words nobody reads stands still when the pipe is
/// full.
pub(crate) fn listen(from: impl Read + Send + 'static) -> Heard {
    let (times, heard_times) = channel();
    let (complaints, heard_complaints) = channel();
    std::thread::spawn(move || complaints.send(read(BufReader::new(from), &times)));
    Heard { times: heard_times, complaints: heard_complaints }
}

fn read(mut from: BufReader<impl Read>, times: &Sender<f64>) -> Complaints {
    let (mut complaints, mut line) = (Complaints::default(), Vec::new());
    loop {
        line.clear();
        // A line without end is read in pieces; what cannot be read ends the listening, not the decoding.
        match from.by_ref().take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return complaints,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if text.contains("[error]") || text.contains("[fatal]") {
            complaints.note(text);
        } else if let Some(time) = announced_time(text) {
            // Nobody listens when times are not asked for.
            let _ = times.send(time);
        }
    }
}

/// The time in a line of the `showinfo` filter, in seconds.
fn announced_time(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once("pts_time:")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The message itself, without `[h264 @ 0x55…] [error]` in front (addresses differ from run to run) and without the address
/// that the open file was handed over by.
fn without_origin(line: &str) -> &str {
    let mut rest = line;
    while let Some(after) = rest.strip_prefix('[').and_then(|inside| inside.split_once("] ")) {
        rest = after.1;
    }
    rest.strip_prefix("file:/proc/self/fd/0: ").unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_complaints_are_told_apart() {
        let said = "[info] Stream mapping:\n\
            [Parsed_showinfo_2 @ 0x1] [info] n:   0 pts:      0 pts_time:0       fmt:rgb24\n\
            [h264 @ 0x5589] [error] error while decoding MB 3 4\n\
            [Parsed_showinfo_2 @ 0x1] [info] n:   1 pts:    512 pts_time:0.0333333 fmt:rgb24\n\
            [error] again\n";
        let heard = listen(said.as_bytes());
        let complaints = heard.complaints.recv().unwrap();
        assert_eq!(complaints.count, 2);
        assert_eq!(complaints.first.as_deref(), Some("error while decoding MB 3 4"));
        assert_eq!(heard.times.iter().collect::<Vec<_>>(), [0.0, 0.033_333_3]);
    }

    #[test]
    fn a_complaint_without_end_is_cut() {
        let heard = listen(std::io::Cursor::new([b"[error] ".to_vec(), vec![b'x'; 1 << 20]].concat()));
        assert_eq!(heard.complaints.recv().unwrap().first.unwrap().len(), COMPLAINT);
    }
}
