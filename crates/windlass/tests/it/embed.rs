//! The example of embedding is run as it stands.

#[path = "../../examples/embed.rs"]
mod example;

#[test]
fn the_example_runs() {
    example::main().expect("it ends well");
}
