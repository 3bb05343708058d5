//! The `proxlift` command.

fn main() -> std::process::ExitCode {
    proxlift_cli::main()
}
