//! Frames as rows: one feature row per clip.
