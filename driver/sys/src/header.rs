//! Everything that is bound, against the header and the compiler of the system.
//!
//! A program in C asserts it, line by line, and is not run: that it compiles is the comparison, and
//! what the header has otherwise, the compiler reports by name. Without a compiler or the header
//! (libibverbs-dev) the test says so and passes; with `REQUIRE_RXE=1` it fails.

use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::offset_of;
use std::process::{Command, Stdio};

use crate::exported::{IN_ORDER, PROTOTYPES};
use crate::types::{Field, MEMBERS, SHAPES, Shape, verbs_context};

/// A type of Rust, as C has it.
fn in_c(kind: &str) -> String {
    let kind = kind.trim();
    let pointed = |to: &str| {
        let to = in_c(to);
        if to.ends_with('*') { format!("{to}*") } else { format!("{to} *") }
    };
    if let Some(to) = kind.strip_prefix("*mut ") {
        return pointed(to);
    }
    if let Some(to) = kind.strip_prefix("*const ") {
        return format!("const {}", pointed(to));
    }
    if let Some(enumeration) = kind.strip_suffix("::Type") {
        return format!("enum {enumeration}");
    }
    match kind {
        "()" | "c_void" => "void".to_owned(),
        "c_char" => "char".to_owned(),
        "c_int" => "int".to_owned(),
        "u8" => "uint8_t".to_owned(),
        "u32" => "uint32_t".to_owned(),
        "usize" => "size_t".to_owned(),
        "isize" => "ssize_t".to_owned(),
        structure => format!("struct {structure}"),
    }
}

/// The type of a pointer to a function, as C has it; `None` for any other type.
fn function_in_c(kind: &str) -> Option<String> {
    // The compiler breaks long types where it likes.
    let kind = kind.split_whitespace().collect::<Vec<_>>().join(" ");
    let kind = kind.strip_prefix("Option<").and_then(|it| it.strip_suffix('>')).unwrap_or(&kind);
    let (args, answer) = kind.strip_prefix("unsafe extern \"C\" fn(")?.split_once(") -> ")?;
    let args: Vec<String> =
        args.split(',').filter(|arg| !arg.trim().is_empty()).map(in_c).collect();
    Some(format!("{} (*)({})", in_c(answer), args.join(", ")))
}

/// Has the program assert `condition`, which is also what the compiler reports.
fn assert(program: &mut String, condition: &str) {
    writeln!(program, "_Static_assert({condition}, \"{condition}\");").unwrap();
}

fn assert_shape(program: &mut String, Shape { name, len, fields }: &Shape) {
    if let Some(len) = len {
        assert(program, &format!("sizeof({name}) == {len}"));
    }
    for Field { name: field, at, len, kind } in *fields {
        // Places between those that are used.
        if field.starts_with('_') {
            continue;
        }
        let field = field.trim_start_matches("r#");
        let there = format!("(({name} *)0)->{field}");
        assert(program, &format!("offsetof({name}, {field}) == {at}"));
        assert(program, &format!("sizeof({there}) == {len}"));
        if let Some(kind) = function_in_c(kind) {
            let is_same = "__builtin_types_compatible_p";
            assert(program, &format!("{is_same}(__typeof__({there}), {kind})"));
        }
    }
}

/// The program that compiles if the header is as it is bound.
fn program() -> String {
    // The functions of these names, and not what the header puts in their place.
    let mut program =
        "#include <stddef.h>\n#include <sys/types.h>\n#include <infiniband/verbs.h>\n\
                       #undef ibv_query_port\n#undef ibv_reg_mr\n"
            .to_owned();
    for (member, value) in MEMBERS {
        assert(&mut program, &format!("{member} == {value}"));
    }
    for shape in SHAPES {
        assert_shape(&mut program, shape);
    }
    let end = offset_of!(verbs_context, context);
    for (field, at) in [
        ("query_port", offset_of!(verbs_context, query_port)),
        ("sz", offset_of!(verbs_context, sz)),
    ] {
        let of = |field: &str| format!("offsetof(struct verbs_context, {field})");
        assert(&mut program, &format!("{} - {} == {}", of("context"), of(field), end - at));
    }
    // A declaration that is not the header's is an error.
    for (name, _, args, answer) in PROTOTYPES.iter().chain([&IN_ORDER]) {
        let args: Vec<String> = args.iter().map(|arg| in_c(arg)).collect();
        writeln!(program, "{} {name}({});", in_c(answer), args.join(", ")).unwrap();
    }
    program
}

/// What the compiler says about a program.
fn compile(program: &str) -> Result<(), String> {
    let mut compiler = Command::new("cc")
        .args(["-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cc: {error}"))?;
    // The compiler reads to the end before it fills a pipe of its own.
    let written = compiler.stdin.take().unwrap().write_all(program.as_bytes());
    let output = compiler.wait_with_output().unwrap();
    if output.status.success() {
        written.map_err(|error| error.to_string())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Whether there is a header to compare with.
fn is_here() -> bool {
    let found = compile("#include <infiniband/verbs.h>\n");
    if let Err(errors) = &found {
        assert!(!must_run(), "the header cannot be compared with: {errors}");
        eprintln!("skipped, there is no header to compare with: {errors}");
    }
    found.is_ok()
}

/// Whether the tests that need the header or the library must not be skipped.
pub(crate) fn must_run() -> bool {
    std::env::var_os("REQUIRE_RXE").is_some_and(|value| value == "1")
}

#[test]
fn the_header_is_as_it_is_bound() {
    if !is_here() {
        return;
    }
    let program = program();
    if let Err(errors) = compile(&program) {
        panic!("{program}\n{errors}");
    }
}

#[test]
fn each_kind_of_drift_is_found() {
    if !is_here() {
        return;
    }
    let program = program();
    for (bound, drifted, named) in [
        ("IBV_QPS_ERR == 6", "IBV_QPS_ERR == 5", "IBV_QPS_ERR"),
        ("sizeof(struct ibv_qp_attr) == 144", "sizeof(struct ibv_qp_attr) == 136", "ibv_qp_attr"),
        ("offsetof(struct ibv_wc, slid) == 42", "offsetof(struct ibv_wc, slid) == 44", "slid"),
        ("query_port) == 320", "query_port) == 312", "query_port"),
        ("int (*)(struct ibv_cq *, int, struct ibv_wc *)", "int (*)(struct ibv_cq *)", "poll_cq"),
        ("int ibv_dereg_mr(struct ibv_mr *)", "int ibv_dereg_mr(struct ibv_pd *)", "ibv_dereg_mr"),
    ] {
        assert!(program.contains(bound), "{bound}");
        let errors = compile(&program.replace(bound, drifted)).expect_err(drifted);
        assert!(errors.contains(named), "{drifted}: {errors}");
    }
}

#[test]
fn types_are_written_as_c_has_them() {
    for (rust, c) in [
        ("*mut c_int", "int *"),
        ("*mut *mut ibv_device", "struct ibv_device **"),
        ("*const c_char", "const char *"),
        ("ibv_mw_type::Type", "enum ibv_mw_type"),
        ("()", "void"),
    ] {
        assert_eq!(in_c(rust), c);
    }
    let function = "Option<unsafe extern \"C\" fn(*mut ibv_pd, u8,) -> *mut ibv_mw>";
    assert_eq!(function_in_c(function).unwrap(), "struct ibv_mw * (*)(struct ibv_pd *, uint8_t)");
    assert_eq!(function_in_c("u32"), None);
}
