//! `cuemark completions` and `cuemark man`: what shells and manuals want to know about the program.

use camino::Utf8PathBuf;
use clap::Command;
use clap_complete::Shell;
use cuemark_core::text::counted;
use cuemark_formats::WholeFile;

use crate::input::Force;
use crate::output::Outcome;

/// Print a script that completes commands and flags in a shell.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Write a manual page for every command into a folder.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The folder; it is made if need be.
    #[arg(value_name = "DIR")]
    folder: Utf8PathBuf,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn completions(args: &CompletionsArgs, mut program: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "cuemark", &mut script);
    Outcome::ok(String::from_utf8_lossy(&script))
}

pub(crate) fn man(args: &ManArgs, mut program: Command) -> anyhow::Result<Outcome> {
    program.build();
    let mut written = 0;
    write_pages(&program, "cuemark", args, &mut written)?;
    Ok(Outcome::ok(format!("wrote {} to {}", counted(written, "manual page", "manual pages"), args.folder)))
}

/// A page for `command` and for each command below it: `cuemark-index-create.1`.
fn write_pages(command: &Command, name: &str, args: &ManArgs, written: &mut usize) -> anyhow::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name).render(&mut page)?;
    WholeFile::write_all_to(args.folder.join(format!("{name}.1")), args.force.overwrite(), &page)?;
    *written += 1;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        write_pages(below, &format!("{name}-{}", below.get_name()), args, written)?;
    }
    Ok(())
}
