//! Compiles the crate again when the page was built.

fn main() {
    println!("cargo::rerun-if-changed=dist");
    println!("cargo::rerun-if-changed=demo");
}
