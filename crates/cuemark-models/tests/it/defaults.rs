//! Defaults of methods whose settings all have one, as their documentation states them: one that changes silently changes what a
//! run file means.

use cuemark_models::registry::find;

const STATED: [(&str, &str); 3] = [
    (
        "drn",
        "clips = 32\nlstm = 512\nlstm_layers = 1\nfirst = 256\npyramid = 512\nposition = 256\ntower = 1\n\
         levels = [{ stride = 1, from = -1.0, to = 6.0 }, { stride = 2, from = 5.6, to = 11.0 },\n\
         { stride = 4, from = 11.0, to = 1e8 }]\n\
         alpha = 0.25\ngamma = 2.0\noverlap = 0.9\nclamp = 'all'\nmin_score = 0.05\ntop = 32\n\
         word_vectors = 'given'\nnms = 0.45",
    ),
    (
        "lgi",
        "clips = 128\nhidden = 512\nquery = 512\nhead = 512\nattention = { words = 256, phrases = 256, clips = 256 }\n\
         lstm_layers = 2\nphrases = 3\nkernel = 15\nlocal_blocks = 1\nblocks = 2\nheads = 4\noutput = 'sigmoid'\n\
         spread = 0.3\nattention_weight = 1.0\nphrase_weight = 1.0\ndropout = 0.5\nword_vectors = 'given'\n\
         padded_clips = 'masked'",
    ),
    (
        "plrn",
        "clips = 128\nwords = 20\nword_places = 'each'\nhidden = 512\nquery = 512\nhead = 512\n\
         attention = { words = 256, phrases = 256, clips = 256 }\nlstm_layers = 2\nkernel = 15\nlocal_blocks = 1\n\
         blocks = 2\nheads = 4\noutput = 'sigmoid'\nattention_weight = 1.0\ncentre_weight = 1.0\ndropout = 0.5\n\
         word_vectors = 'given'\npadded_clips = 'masked'",
    ),
];

#[test]
fn a_table_that_says_nothing_means_what_the_documentation_states() {
    for (name, stated) in STATED {
        let stated: toml::Table = stated.parse().unwrap();
        assert_eq!(find(name).unwrap().settings(&toml::Table::new()).unwrap(), stated, "{name}");
    }
}
