//! The `weft` program; everything is in the libraries.

/// Benchmarks print how often the rivals allocate.
#[global_allocator]
static ALLOCATOR: weft::CountingAllocator = weft::CountingAllocator;

fn main() -> std::process::ExitCode {
    weft_program::cli::main()
}
