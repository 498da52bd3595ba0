//! Reads sentences from standard input, one a line, and prints each with its tags, its phrases and its dependencies,
//! tab-separated: for looking at what the parser makes of real queries.

#![allow(clippy::print_stdout)]

use std::io::BufRead;

use cuemark_text::shallow_parse;

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let parse = shallow_parse(&line?);
        let tokens: Vec<String> = parse.tokens.iter().map(|token| format!("{}/{}", token.text, token.tag)).collect();
        let list = |nouns: &[usize]| nouns.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let phrases: Vec<String> = parse.phrases.iter().map(|p| format!("{}:{}", p.verb, list(&p.nouns))).collect();
        let hangs: Vec<String> =
            parse.dependencies.iter().map(|d| format!("{}-{}>{}", d.head, d.relation, d.dependent)).collect();
        println!("{}\t{}\t{}", tokens.join(" "), phrases.join(" "), hangs.join(" "));
    }
    Ok(())
}
