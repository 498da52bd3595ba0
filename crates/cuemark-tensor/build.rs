//! Compiles our CUDA kernels to PTX when the feature `cuda` is on; otherwise does nothing.

use std::path::PathBuf;
use std::process::Command;

/// Files of kernels in `src/kernels/`.
const KERNELS: [&str; 4] = ["map", "recurrent", "transformer", "volume"];

fn main() {
    for file in KERNELS {
        println!("cargo::rerun-if-changed=src/kernels/{file}.cu");
    }
    for variable in ["CUDA_HOME", "CUDA_COMPUTE_CAP", "NVCC_CCBIN"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if std::env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    for file in KERNELS {
        if let Err(problem) = compile(file) {
            println!("cargo::error={problem}");
        }
    }
}

fn compile(file: &str) -> Result<(), String> {
    let nvcc = std::env::var_os("CUDA_HOME")
        .map_or_else(|| PathBuf::from("nvcc"), |home| PathBuf::from(home).join("bin/nvcc"));
    let out = std::env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?;
    // PTX of an older chip runs on newer ones: the driver compiles it when it is loaded.
    let capability = std::env::var("CUDA_COMPUTE_CAP").unwrap_or_else(|_| "80".to_owned());
    let status = Command::new(&nvcc)
        .args(["--ptx", "-O3", &format!("-arch=compute_{capability}"), &format!("src/kernels/{file}.cu"), "-o"])
        .arg(PathBuf::from(out).join(format!("{file}.ptx")))
        .status()
        .map_err(|error| {
            format!("cannot run {}: {error}; the feature `cuda` needs the CUDA toolkit", nvcc.display())
        })?;
    if status.success() { Ok(()) } else { Err(format!("{} cannot compile src/kernels/{file}.cu", nvcc.display())) }
}
