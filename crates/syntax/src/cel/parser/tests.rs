use super::parse;
use crate::cel::ast::{Expr, ExprKind, Literal};
use crate::cel::source::Source;
use crate::cel::stack;

/// Writes a tree in a short form: calls as `f(a, b)`, and comprehensions as `fold(..)`.
fn show(expr: &Expr) -> String {
    let all = |exprs: &[&Expr]| exprs.iter().map(|e| show(e)).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => format!("{text:?}"),
        ExprKind::Literal(Literal::Bytes(bytes)) => format!("b{bytes:?}"),
        ExprKind::Literal(Literal::Double(value)) => format!("{value:?}"),
        ExprKind::Literal(Literal::Uint(value)) => format!("{value}u"),
        ExprKind::Literal(Literal::Int(value)) => value.to_string(),
        ExprKind::Literal(Literal::Bool(value)) => value.to_string(),
        ExprKind::Literal(Literal::Null) => "null".to_owned(),
        ExprKind::Ident(name) => name.clone(),
        ExprKind::Select {
            operand,
            field,
            is_test,
        } => {
            let test = if *is_test { "has " } else { "" };
            format!("{test}{}.{field}", show(operand))
        }
        ExprKind::Call {
            target,
            function,
            args,
        } => {
            let args: Vec<&Expr> = args.iter().collect();
            match target {
                Some(target) => format!("{}.{function}({})", show(target), all(&args)),
                None => format!("{function}({})", all(&args)),
            }
        }
        ExprKind::List(elements) => {
            let shown = elements.iter().map(|element| {
                let mark = if element.is_optional { "?" } else { "" };
                format!("{mark}{}", show(&element.value))
            });
            format!("[{}]", shown.collect::<Vec<_>>().join(", "))
        }
        ExprKind::Map(entries) => {
            let shown = entries.iter().map(|entry| {
                let mark = if entry.is_optional { "?" } else { "" };
                format!("{mark}{}: {}", show(&entry.key), show(&entry.value))
            });
            format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
        }
        ExprKind::Struct { type_name, .. } => format!("{type_name}{{}}"),
        ExprKind::Comprehension(fold) => {
            let parts = [
                &fold.range,
                &fold.init,
                &fold.condition,
                &fold.step,
                &fold.result,
            ];
            let second = fold.second.as_deref().unwrap_or("-");
            format!("fold({}, {second}, {})", fold.variable, all(&parts))
        }
        ExprKind::Unspecified => "nothing".to_owned(),
    }
}

fn parsed(text: &str) -> String {
    let parse_and_show = || {
        let source = Source::new(text);
        match parse(&source) {
            Ok(parsed) => show(&parsed.expr),
            Err(issues) => source.display(&issues),
        }
    };
    stack::run(stack::is_deep(text), parse_and_show).unwrap()
}

#[test]
fn expressions_are_parsed_by_precedence() {
    for (text, expected) in [
        ("1 + 2 * 3", "_+_(1, _*_(2, 3))"),
        ("1 - 2 - 3", "_-_(_-_(1, 2), 3)"),
        ("a || b && c", "_||_(a, _&&_(b, c))"),
        ("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("!!a", "a"),
        ("!a", "!_(a)"),
        ("-a", "-_(a)"),
        ("-1", "-1"),
        ("a.b.c(d)[e]", "_[_](a.b.c(d), e)"),
        ("a.?b[?c]", "_[?_](_?._(a, \"b\"), c)"),
        ("[?a, b]", "[?a, b]"),
        ("{?a: b, 'c': 1u}", "{?a: b, \"c\": 1u}"),
        ("x in [1]", "@in(x, [1])"),
        ("has(a.b)", "has a.b"),
        (".a.b", ".a.b"),
        ("0x1F + 1e3 + .5", "_+_(_+_(31, 1000.0), 0.5)"),
        (
            "r'\\n' + '\\n' + b'\\xff'",
            "_+_(_+_(\"\\\\n\", \"\\n\"), b[255])",
        ),
        ("pkg.T{}", "pkg.T{}"),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn macros_are_expanded() {
    let accumulated = "@result";
    for (text, expected) in [
        (
            "l.all(x, x)",
            format!(
                "fold(x, -, l, true, @not_strictly_false({accumulated}), _&&_({accumulated}, x), \
                 {accumulated})"
            ),
        ),
        (
            "l.map(x, x > 1, x)",
            format!(
                "fold(x, -, l, [], true, _?_:_(_>_(x, 1), _+_({accumulated}, [x]), {accumulated}), \
                 {accumulated})"
            ),
        ),
        (
            "m.transformMap(k, v, v)",
            format!(
                "fold(k, v, m, {{}}, true, cel.@mapInsert({accumulated}, k, v), {accumulated})"
            ),
        ),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn syntax_errors_have_the_texts_of_cel_go() {
    for (text, expected) in [
        (
            "self.",
            "1:6: Syntax error: no viable alternative at input '.'",
        ),
        (
            "a b",
            "1:3: Syntax error: extraneous input 'b' expecting <EOF>",
        ),
        (
            "a b c",
            "1:3: Syntax error: mismatched input 'b' expecting <EOF>",
        ),
        ("(1", "1:3: Syntax error: missing ')' at '<EOF>'"),
        (
            "[1, 2",
            "1:6: Syntax error: mismatched input '<EOF>' expecting {']', ','}",
        ),
        ("{1 2}", "1:4: Syntax error: missing ':' at '2'"),
        (
            "f(1 2)",
            "1:5: Syntax error: extraneous input '2' expecting ')'",
        ),
        (
            "a ? b",
            "1:6: Syntax error: mismatched input '<EOF>' expecting ':'",
        ),
        (
            "a.true",
            "1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER",
        ),
        (
            "a = b",
            "1:3: Syntax error: token recognition error at: '= '",
        ),
        (
            "'abc",
            "1:1: Syntax error: token recognition error at: ''abc'",
        ),
        ("if", "1:1: reserved identifier: if"),
        ("a.`b`", "1:3: unsupported syntax: '`'"),
        ("99999999999999999999", "1:1: invalid int literal"),
        ("'\\ud800'", "1:1: invalid unicode code point"),
        ("x.map(1, 2)", "1:7: argument is not an identifier"),
        ("x.all(i, i, true)", "1:10: duplicate variable name: i"),
        ("has(a)", "1:5: invalid argument to has() macro"),
    ] {
        let shown = parsed(text);
        let first = shown.lines().next().unwrap();
        assert_eq!(first, format!("ERROR: <input>:{expected}"), "{text}");
    }
}

#[test]
fn errors_show_the_line_and_a_mark() {
    assert_eq!(
        parsed("1 +\n\t'ä' b"),
        "ERROR: <input>:2:6: Syntax error: extraneous input 'b' expecting <EOF>\n |  'ä' b\n | ..\u{ff0e}..^"
    );
}

#[test]
fn depth_and_length_are_limited() {
    let limit = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
    assert_eq!(parsed(&"(".repeat(300)), limit);
    let limit = "ERROR: <input>:-1:0: max recursion depth exceeded";
    assert_eq!(parsed(&format!("1{}", "+1".repeat(251))), limit);
    assert_eq!(parsed(&format!("a{}", ".b".repeat(30_000))), limit);
    assert!(!parsed(&format!("1{}", "+1".repeat(250))).contains("ERROR"));
    assert!(!parsed(&format!("{}1{}", "(".repeat(249), ")".repeat(249))).contains("ERROR"));
    let long = parsed(&"a".repeat(100_001));
    assert!(long.contains("expression code point size exceeds limit: size: 100001, limit 100000"));
    assert!(!parsed(&format!("a{}", " || a".repeat(10_000))).contains("ERROR"));
}
