//! What ffmpeg says on the way: the times of frames, and complaints.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The longest line that is looked at.
const LINE: u64 = 4096;

/// How often ffmpeg complained, and of what first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Complaints {
    pub(super) count: usize,
    pub(super) first: Option<String>,
}

impl Complaints {
    fn note(&mut self, line: &str) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(without_origin(line).to_owned());
        }
    }
}

/// Reads along until ffmpeg is done. Times of frames come out of the receiver as they are announced.
pub(super) fn listen(from: impl Read + Send + 'static) -> (JoinHandle<Complaints>, Receiver<f64>) {
    let (times, announced) = channel();
    (std::thread::spawn(move || read(BufReader::new(from), &times)), announced)
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

/// The message itself, without `[h264 @ 0x55…] [error]` in front: addresses differ from run to run.
fn without_origin(line: &str) -> &str {
    let mut rest = line;
    while let Some(after) = rest.strip_prefix('[').and_then(|inside| inside.split_once("] ")) {
        rest = after.1;
    }
    rest
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
        let (listener, times) = listen(said.as_bytes());
        let complaints = listener.join().unwrap();
        assert_eq!(complaints.count, 2);
        assert_eq!(complaints.first.as_deref(), Some("error while decoding MB 3 4"));
        assert_eq!(times.iter().collect::<Vec<_>>(), [0.0, 0.033_333_3]);
    }
}
