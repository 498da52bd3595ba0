//! Writes the pages of `docs/reference/` from the cards in the code: what `cargo xtask site --write` runs.

mod pages;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = camino::Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference"));
    std::fs::create_dir_all(folder)?;
    for page in pages::all()? {
        std::fs::write(folder.join(page.name), page.text)?;
    }
    Ok(())
}
