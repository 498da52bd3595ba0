//! What `--help` says beside flags: commands in groups, and examples for every one of them.

use clap::Command;

/// The commands by what people come for; the order of the list is that of `cuemark --help`.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Score", &["eval", "compare", "report", "convert", "human-ceiling"]),
    ("Search", &["search", "find", "transcribe", "index", "serve", "mcp", "weights", "demo"]),
    ("Build benchmarks", &["data", "split", "text-bias", "text", "pool", "rank", "world"]),
    ("Train", &["models", "train", "predict", "reproduce", "bench", "features"]),
    ("The program itself", &["completions", "man"]),
];

/// Examples by command, a line each.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "eval",
        &[
            "eval --truth highlight_val_release.jsonl --pred mine.jsonl --preset qvhighlights",
            "eval --truth test.jsonl --pred mine.csv --metrics R1@0.5,R1@0.7,mIoU --ci 95 --format latex",
            "eval --truth test.jsonl --pred - --json < mine.jsonl",
        ],
    ),
    (
        "compare",
        &[
            "compare --truth test.jsonl old.jsonl new.jsonl --metrics R1@0.5,mIoU",
            "compare --truth test.jsonl a.jsonl b.jsonl c.jsonl --preset qvhighlights --format latex --marks",
        ],
    ),
    (
        "report",
        &[
            "report --pred mine.jsonl --truth test.jsonl --train train.jsonl --out report",
            "report --pred a.jsonl --pred b.jsonl --truth test.jsonl --metrics R1@0.5,mIoU --no-intervals --out report",
            "report out/mmn-seed0 out/vslnet-seed0 --split test-iid,test-ood --probe --out report",
        ],
    ),
    (
        "convert",
        &[
            "convert mine.jsonl mine.csv",
            "convert export.json truth.jsonl --from labelstudio",
            "convert mine.jsonl kitchen.vtt --truth test.jsonl --video kitchen --top 1",
        ],
    ),
    (
        "human-ceiling",
        &["human-ceiling charades-sta --root reannotations", "human-ceiling charades-sta --root reannotations --json"],
    ),
    ("search", &["search films \"a dog jumps into a lake\"", "search films \"a ball spins -red\" --clip best.mp4"]),
    (
        "find",
        &["find holiday.mp4 \"a dog jumps into a lake\"", "find talk.mp4 'said: \"thank you\"' --clip thanks.mp4"],
    ),
    (
        "transcribe",
        &["transcribe talk.mp4 --out talk.srt", "transcribe talk.mp4 --to json", "transcribe slides.mp4 --written"],
    ),
    ("index create", &["index create films holiday/", "index create films holiday/*.mp4 --encoder clip"]),
    ("index add", &["index add films more/", "index add films new.mp4"]),
    ("index remove", &["index remove films kitchen", "index remove films kitchen garden"]),
    ("index status", &["index status films", "index status films --videos --json"]),
    ("index verify", &["index verify films", "index verify films --json"]),
    ("index compact", &["index compact films", "index compact films --quiet"]),
    ("index salvage", &["index salvage films --out saved", "index salvage films --out saved --json"]),
    ("index eval", &["index eval films", "index eval films --truth test.jsonl --json"]),
    ("index calibrate", &["index calibrate films", "index calibrate films --truth test.jsonl"]),
    ("serve", &["serve films", "serve films --listen 127.0.0.1:7878"]),
    ("mcp", &["mcp --root ~/films", "mcp --root ~/films --root ~/cuts --allow-write"]),
    ("weights list", &["weights list", "weights list --json"]),
    ("weights pull", &["weights pull i3d efficientnet-lite0 minilm", "weights pull minilm"]),
    ("weights check", &["weights check minilm", "weights check i3d"]),
    ("demo", &["demo --quick", "demo"]),
    ("data list", &["data list", "data list --formats"]),
    ("data check", &["data check charades-sta --root charades", "data check mine.jsonl"]),
    ("data stats", &["data stats charades-sta --root charades", "data stats tvr --root tvr --json"]),
    (
        "data convert",
        &[
            "data convert charades-sta --root charades --out charades.jsonl",
            "data convert tvr --root tvr --out tvr.parquet",
        ],
    ),
    (
        "split make",
        &[
            "split make --protocol cd --dataset charades-sta --root charades --out cd",
            "split make --protocol centre --dataset tacos --root tacos --out centre",
        ],
    ),
    ("split audit", &["split audit cd", "split audit cd --json"]),
    (
        "text-bias",
        &[
            "text-bias --in test.jsonl --mode mask-verb --out masked.jsonl",
            "text-bias --in test.jsonl --mode wrong-query --out wrong.jsonl",
        ],
    ),
    (
        "text parse",
        &[
            "text parse --in test.jsonl --out parses.jsonl",
            "text parse --in test.jsonl --roles srl.jsonl --out parses.jsonl",
        ],
    ),
    ("pool make", &["pool make --in test.jsonl --out pools.jsonl", "pool make --help"]),
    ("pool audit", &["pool audit --in test.jsonl --pools pools.jsonl", "pool audit --help"]),
    ("pool sheet", &["pool sheet --pools pools.jsonl --out sheet.csv", "pool sheet --help"]),
    (
        "rank rewrite",
        &[
            "rank rewrite --in test.jsonl --out rewritten --endpoint https://host/v1 --model NAME",
            "rank rewrite --in test.jsonl --out rewritten --names names.csv",
        ],
    ),
    (
        "rank candidates",
        &[
            "rank candidates --in rewritten.jsonl --captions captions.jsonl --out candidates.jsonl",
            "rank candidates --help",
        ],
    ),
    ("rank consensus", &["rank consensus --in ratings.csv", "rank consensus --help"]),
    ("rank agreement", &["rank agreement --in ratings.csv", "rank agreement --in ratings.csv --json"]),
    (
        "rank pseudo-train",
        &["rank pseudo-train --in train.jsonl --captions captions.jsonl --out pseudo", "rank pseudo-train --help"],
    ),
    (
        "rank export",
        &["rank export --in candidates.jsonl --videos videos.jsonl --out tasks.json", "rank export --help"],
    ),
    ("rank import", &["rank import --in export.json --out ratings.csv", "rank import --help"]),
    ("world make", &["world make --out world", "world make --help"]),
    ("world audit", &["world audit world", "world audit world --json"]),
    ("models list", &["models list", "models list --json"]),
    ("models show", &["models show moment-detr", "models show 2d-tan --json"]),
    (
        "models load",
        &["models load 2d-tan published.pth", "models load qd-detr best.ckpt --config runs/qd-detr/qvhighlights.toml"],
    ),
    ("models export", &["models export out/mmn-seed0", "models export out/mmn-seed0 --to pytorch --out mmn.pt"]),
    ("models check", &["models check mmn --fixture mmn.safetensors", "models check --help"]),
    (
        "train",
        &["train runs/2d-tan/charades-sta.toml --set data.root=charades", "train mine.toml --device cuda --resume"],
    ),
    (
        "predict",
        &[
            "predict out/mmn-seed0 --split test-iid --out mine.jsonl",
            "predict --baseline bias-mode --truth test.jsonl --train train.jsonl --out blind.csv",
            "predict --model 2d-tan --checkpoint theirs.pth --config runs/2d-tan/tacos.toml --split test --out mine.jsonl",
        ],
    ),
    ("reproduce", &["reproduce 2d-tan tacos --check", "reproduce vslnet youcook2 --root youcook2 --features s3d"]),
    ("bench", &["bench --list", "bench overall --quick"]),
    ("features info", &["features info store", "features info store --json"]),
    ("features list", &["features list", "features list --dataset tvr --json"]),
    (
        "features check",
        &[
            "features check charades-i3d features/charades-i3d",
            "features check tvr-i3d tvr_i3d_rgb600_avg_cl-1.5.h5 --json",
        ],
    ),
    ("features extract", &["features extract films/ --out store --encoder i3d", "features extract --help"]),
    ("features convert", &["features convert features.hdf5 --clip-length 1.0 --out store", "features convert --help"]),
    ("features compare", &["features compare store other", "features compare store other --json"]),
    (
        "completions",
        &["completions bash > ~/.local/share/bash-completion/completions/cuemark", "completions zsh > _cuemark"],
    ),
    ("man", &["man ~/.local/share/man/man1", "man pages --force"]),
];

/// The program with examples in every help and its commands in groups.
pub(crate) fn guided(program: Command) -> Command {
    let about = |name: &str| {
        let found = program.find_subcommand(name).and_then(Command::get_about);
        found.map(ToString::to_string).unwrap_or_default()
    };
    let mut text = String::new();
    for (title, names) in GROUPS {
        text += &format!("{title}:\n");
        for name in names {
            text += &row(name, &about(name));
        }
        text.push('\n');
    }
    text += "`cuemark COMMAND --help` has examples.";
    let program = program
        .help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}")
        .after_help(text);
    EXAMPLES.iter().fold(program, |program, (path, lines)| with_examples(program, path, lines))
}

/// A command and what it is for, the second line under the first: the parser would wrap it under the name.
fn row(name: &str, about: &str) -> String {
    const WIDTH: usize = 80;
    let mut row = format!("  {name:14}");
    let mut length = row.len();
    for word in about.split(' ') {
        if length + 1 + word.len() > WIDTH {
            row += &format!("\n  {:14}", "");
            length = 16;
        }
        row += &format!(" {word}");
        length += 1 + word.len();
    }
    row + "\n"
}

/// `program` with examples at the command that `path` names.
fn with_examples(program: Command, path: &str, lines: &[&str]) -> Command {
    let (name, rest) = path.split_once(' ').map_or((path, None), |(name, rest)| (name, Some(rest)));
    if program.find_subcommand(name).is_none() {
        return program;
    }
    program.mut_subcommand(name, |command| match rest {
        Some(rest) => with_examples(command, rest, lines),
        None => {
            let lines: Vec<String> = lines.iter().map(|line| format!("  cuemark {line}")).collect();
            command.after_help(format!("Examples:\n{}", lines.join("\n")))
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Every command that does something, by its way: `index create`.
    fn leaves(command: &Command, way: &str) -> Vec<String> {
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        let found: Vec<String> =
            below.flat_map(|below| leaves(below, format!("{way} {}", below.get_name()).trim())).collect();
        if found.is_empty() { vec![way.to_owned()] } else { found }
    }

    #[test]
    fn every_command_has_examples_and_stands_in_one_group() {
        let program = crate::Cli::command();
        let examples: Vec<&str> = EXAMPLES.iter().map(|(way, _)| *way).collect();
        for leaf in leaves(&program, "") {
            assert!(examples.contains(&leaf.as_str()), "`{leaf}` has no example");
        }
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut names: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
        let mut listed = grouped.clone();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(names, listed);
    }

    #[test]
    fn every_example_without_files_of_its_own_is_understood() {
        for (way, lines) in EXAMPLES {
            for line in lines.iter().filter(|line| !line.ends_with("--help")) {
                let words =
                    line.split(" > ").next().unwrap_or(line).split(" < ").next().unwrap_or(line).replace('"', "");
                let result = guided(crate::Cli::command())
                    .try_get_matches_from(std::iter::once("cuemark").chain(words.split_whitespace()));
                // Quoted sentences fall apart into words here; that is the shell's business.
                let quoted = line.contains('"');
                assert!(result.is_ok() || quoted, "`{way}`: {line}\n{}", result.unwrap_err());
            }
        }
    }
}
